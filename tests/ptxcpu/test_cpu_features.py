"""Language features that kernels use: each one compiles, runs, and has no finding."""

import numpy as np
import pytest

from problem.cases import Shape
from tests.ptxcpu.runner import KERNELS, Runner, inputs
from tests.sources import named_parts

SHAPE = Shape(32, 32, 32)
HEAD = """extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    int id = threadIdx.y * 16 + threadIdx.x;
    float s = 0.0f;
"""
TAIL = "\n    if (row < M && column < K) C[row * K + column] = s;\n}"

FEATURES = named_parts(KERNELS / "features.cu.in")

EXPECTED = {  # of C[0][0], thread 0 of block 0, and of thread 37
    "cooperative groups": (496, 496),
    "coalesced group": (16, 0),
    "cuda::atomic_ref": (32640, 32640),
    "atomics in shared memory": (32640 + 255 - 255 + 255 + 0 + 256, 32640 + 255 - 255 + 255 + 256),
    "constant memory": (1, 2),
    "structs that begin with a pointer": (7 * 2 + 3, 5 * 4 + 6),
    "a table of functions": (2, 39),
    "a function chosen at run time": (0, 40),
    "virtual functions": (0, 3 * 37 * 37),
    "half2": (0, 37 * 37 + 37),
    "votes": (16 + 1 + 1 + 128 + 1 + 1 + 32 + 4, 16 + 0 + 1 + 128 + 1 + 1 + 32 + 4),
    "quantising to 8 bits": (0x807F + 40 + 127 + 1 + 127 - 128, 0x807F + 40 + 127 + 2 + 127 - 128),
    "vector atomics": (1, 1),
    "reductions of a warp": (31 - 31 + (3 ^ 3), 63 - 63 + (3 ^ 35)),
    "local array": (0, 100),
    "structs by value": (0, 18),
    "named barriers": (0, 37),
    "shuffles within parts of a warp": (1, 1),
    "lanes that their masks name": (1, 1),
    "atomics of every type": (1, 1),
    "reductions of a block at a barrier": (1, 1),
}


STORE_SECTORS = {  # where more is stored than one block of C
    "atomics of other scopes": 32 + 3 * 32,  # three more by each warp of the four blocks
    "vector atomics": 4 * (32 + 8 * 2),  # all four blocks, and two reductions of eight warps
}


REVERSED = ("memcpy_async", "cuda::pipeline", "cuda::barrier")
"""Features by which a block copies a part of A, which it stores from its end."""


@pytest.mark.parametrize("name", FEATURES)
def test_feature(cpu: Runner, name: str) -> None:
    before, _, body = FEATURES[name].rpartition("KERNEL:")
    cpu.load(f"{before}\n{HEAD}{body}{TAIL}")
    C = cpu.finish(SHAPE).output
    assert np.isfinite(C).all()
    if name in EXPECTED:
        assert (C[0, 0], C[2, 5]) == EXPECTED[name]
    if name in REVERSED:
        A = inputs(SHAPE)[0].reshape(-1)
        assert np.array_equal(C[:16, :16].reshape(-1), A[:256][::-1])
    assert cpu.findings(SHAPE) == ()
    assert cpu.count(SHAPE, 1).global_store_sectors == STORE_SECTORS.get(name, 32)
