"""Thread block clusters on both devices: the same small kernels, the same bits."""

from __future__ import annotations

import pytest

from problem.cases import Shape
from tests.devices.cpu.cluster_kernels import KERNELS, SIZES, places
from tests.devices.cpu.runner import Runner, inputs
from tests.devices.cpu.test_agreement import same_bits

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(cpu: Runner, name: str) -> None:
    same_bits(cpu, KERNELS[name][0], 0, *inputs(Shape(16, 16, 64)))


@pytest.mark.parametrize("cluster", SIZES, ids=str)
def test_special_registers(cpu: Runner, cluster: tuple[int, int, int]) -> None:
    same_bits(cpu, places(cluster), 0, *inputs(Shape(33, 5, 70)))
