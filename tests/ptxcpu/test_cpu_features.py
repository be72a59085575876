"""Language features that kernels use: each one compiles, runs, and has no finding."""

import re

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

STORE_SECTORS = {  # where more is stored than one block of C
    "atomics of other scopes": 32 + 3 * 32,  # three more by each warp of the four blocks
    "atomics add subnormal numbers in shared memory only": 4 * 32,  # all four blocks
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
    if given := re.match(r"// gives (\d+) (\d+)\n", FEATURES[name]):
        assert (C[0, 0], C[2, 5]) == (int(given[1]), int(given[2]))
    if name in REVERSED:
        A = inputs(SHAPE)[0].reshape(-1)
        assert np.array_equal(C[:16, :16].reshape(-1), A[:256][::-1])
    assert cpu.findings(SHAPE) == ()
    assert cpu.count(SHAPE, 1).global_store_sectors == STORE_SECTORS.get(name, 32)
