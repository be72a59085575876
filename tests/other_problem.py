"""A second problem, to show that the judge's stages know none: the max-plus product.

C_ij = max over n of A_in + B_nj, the product of matrices that finds longest paths. It has its own
cases, reference and limit; the kernel's signature is that of all problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from problem.cases import Case, Extent, Shape
from problem.inputs import Matrix, Tolerance
from problem.problem import Problem
from problem.reference import BLOCK_SIZE, Comparison, Float64

RIGHT = """
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                             int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float longest = A[row * N] + B[column];
    for (int n = 1; n < N; n++) longest = fmaxf(longest, A[row * N + n] + B[n * K + column]);
    C[row * K + column] = longest;
}
"""

WITHOUT_THE_LAST = RIGHT.replace("n < N;", "n < N - 1;")


def longest_paths(A: Matrix, B: Matrix) -> Float64:
    """The max-plus product in float64."""
    found = np.full((A.shape[0], B.shape[1]), -np.inf)
    for n in range(A.shape[1]):
        np.maximum(found, A[:, n, None].astype(np.float64) + B[None, n], out=found)
    return found


@dataclass(frozen=True)
class Expected:
    """What C should be; each element has one rounding, of a sum of two numbers."""

    R: Float64

    def compare(self, C: Matrix) -> Comparison:
        errors = np.abs(C - self.R) / np.maximum(np.abs(self.R), 1)
        errors = np.where(np.isfinite(errors), errors, np.inf)
        rows = np.maximum.reduceat(errors, range(0, C.shape[0], BLOCK_SIZE), axis=0)
        blocks = np.maximum.reduceat(rows, range(0, C.shape[1], BLOCK_SIZE), axis=1)
        return Comparison(blocks, Tolerance.RANDOM, longest_paths)


class MaxPlus(Problem):
    def expected(self, case: Case, A: Matrix, B: Matrix) -> Expected:
        return Expected(longest_paths(A, B))


MAX_PLUS = MaxPlus(
    version=1,
    ranked=Case(Shape(160, 40, 144)),
    known=(Case(Shape(16, 16, 16)), Case(Shape(33, 1, 20)), Case(Shape(1, 50, 40), "normal")),
    quick_known=(Case(Shape(33, 20, 17)),),
    extent=lambda quick, sampled: Extent(3, 0, 1, 1 << 20, 1 << 22),
    accuracy_inputs=(),
)
