"""A GPU gives the results that the tests of the CPU device expect of small kernels with
clusters."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptxcpu.cluster_kernels import KERNELS, SIZES, expected_places, places
from tests.ptxcpu.runner import compiled, inputs
from tests.ptxcpu.test_agreement import on_gpu
from tests.ptxcpu.test_cpu_clusters import PLACES, ROW, tiles

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name: str) -> None:
    source, expected = KERNELS[name]
    kernel = compiled(source)
    C = on_gpu(kernel.cubin, kernel.entry, kernel.launch, *inputs(ROW))
    for block, tile in enumerate(tiles(C)):
        assert np.array_equal(tile, expected(block, *inputs(ROW))), block


@pytest.mark.parametrize("cluster", SIZES, ids=str)
def test_special_registers(cluster: tuple[int, int, int]) -> None:
    kernel = compiled(places(cluster))
    C = on_gpu(kernel.cubin, kernel.entry, kernel.launch, *inputs(PLACES))
    assert np.array_equal(C, expected_places(PLACES, cluster))
