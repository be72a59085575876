"""The CPU device gives the same bits as a GPU."""

from typing import Any

import numpy as np
import pytest

from harness.protocol.device import Run
from harness.protocol.request import Fault
from problem.cases import Matrix, Shape
from problem.launcher import BLOCK, LaunchLine
from tests.compiled import compiled
from tests.ptxcpu import cluster_kernels
from tests.ptxcpu.runner import KERNELS, Runner, inputs
from tests.ptxcpu.test_cpu_clusters import PLACES, ROW, tiles
from tests.ptxcpu.test_cpu_tensor import WGMMA_FORMS, small_integers, wgmma_source
from tests.requests import inputs_of

pytestmark = pytest.mark.gpu

SHAPES = [Shape(1, 100, 1), Shape(17, 33, 18), Shape(100, 1, 100), Shape(333, 77, 222)]
PLAIN = {
    "naive": 16,
    "tile": 16,
    "register64": 64,
    "functions": 16,
    "shuffle_sum": 16,
    "cp_async": 16,
}


def on_gpu(cubin: bytes, entry: str, line: LaunchLine, A: Matrix, B: Matrix) -> Matrix:
    import cupy

    function = cupy.cuda.function.Module()
    function.load(cubin)
    kernel = function.get_function(entry)
    if line.shared_memory > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = line.shared_memory
    M, N, K = A.shape[0], A.shape[1], B.shape[1]
    C = cupy.full((M, K), np.nan, np.float32)
    arguments: tuple[Any, ...] = (cupy.asarray(A), cupy.asarray(B), C)
    arguments += (np.int32(M), np.int32(N), np.int32(K))
    kernel(line.grid(M, K), BLOCK, arguments, shared_mem=line.shared_memory)
    return np.asarray(cupy.asnumpy(C))


def same_bits(cpu: Runner, source: str, tile: int, A: Matrix, B: Matrix) -> None:
    kernel = compiled(source)
    line = LaunchLine(tile, tile) if tile else kernel.launch
    cpu.device.load_ptx(kernel.ptx, kernel.entry, line)
    shape = Shape(A.shape[0], A.shape[1], B.shape[1])
    done = cpu.device.run(Run(inputs=inputs_of(shape, A, B), seconds=60))
    assert not isinstance(done, Fault), done.message
    other = on_gpu(kernel.cubin, kernel.entry, line, A, B)
    assert np.array_equal(done.output.view(np.uint32), other.view(np.uint32))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PLAIN)
def test_plain_fma_kernels_give_the_same_bits(cpu: Runner, name: str, shape: Shape) -> None:
    same_bits(cpu, (KERNELS / f"{name}.cu").read_text(), PLAIN[name], *inputs(shape))


@pytest.mark.parametrize(
    ("name", "tile", "shape"),
    [
        *((name, 16, Shape(20, 24, 36)) for name in ("mma_tf32", "ldmatrix_f16")),
        ("bulk_copy", 0, Shape(20, 36, 24)),
    ],
)
def test_fragments_and_copies_have_the_layout_of_the_gpu(
    cpu: Runner, name: str, tile: int, shape: Shape
) -> None:
    """Small integers, so that the order of sums does not matter."""
    same_bits(cpu, (KERNELS / f"{name}.cu").read_text(), tile, *small_integers(shape))


@pytest.mark.parametrize("form", WGMMA_FORMS, ids=str)
def test_wgmma_reads_shared_memory_as_the_gpu_does(
    cpu: Runner, form: tuple[str, int, int, bool, bool, bool]
) -> None:
    source, shape = wgmma_source(*form)
    same_bits(cpu, source, 0, *small_integers(shape))


@pytest.mark.parametrize("name", cluster_kernels.KERNELS)
def test_clusters_compute_what_the_cpu_device_does(name: str) -> None:
    source, expected = cluster_kernels.KERNELS[name]
    kernel = compiled(source)
    C = on_gpu(kernel.cubin, kernel.entry, kernel.launch, *inputs(ROW))
    for block, tile in enumerate(tiles(C)):
        assert np.array_equal(tile, expected(block, *inputs(ROW))), block


@pytest.mark.parametrize("cluster", cluster_kernels.SIZES, ids=str)
def test_special_registers_of_clusters(cluster: tuple[int, int, int]) -> None:
    kernel = compiled(cluster_kernels.places(cluster))
    C = on_gpu(kernel.cubin, kernel.entry, kernel.launch, *inputs(PLACES))
    assert np.array_equal(C, cluster_kernels.expected_places(PLACES, cluster))
