"""Typical mistakes that are recognised by the elements of a wrong product."""

import numpy as np

from problem.inputs import Matrix
from problem.reference import Float64, reference


def hint(A: Matrix, B: Matrix, C: Matrix) -> str | None:
    """Return a mistake in one sentence, if it explains C.

    Where parts of A or B differ much in scale, a C that is only inaccurate is also close to the
    result of some mistakes. So the result of the mistake must be ten times as close as the correct
    product."""
    N = A.shape[1]
    if all((matrix == matrix.flat[0]).all() for matrix in (A, B, C)):
        product = float(A.flat[0]) * float(B.flat[0])
        added = float(C.flat[0]) / product if product else 0.0
        if added.is_integer() and 0 < added < 2 * N and added != N:
            return f"as if each sum had {added:.0f} products in place of {N}"
    far = float(np.linalg.norm(C - reference(A, B)))

    def explains(A: Matrix, B: Matrix) -> bool:
        expected = reference(A, B)
        return close(C, expected) and float(np.linalg.norm(C - expected)) < far / 10

    for name, other in (("A", (_reread(A), B)), ("B", (A, _reread(B)))):
        if explains(*other):
            return (
                f"{name} was read column by column; it lies in memory row by row, so its element "
                f"is {'A[row * N + n]' if name == 'A' else 'B[n * K + column]'}"
            )
    for tile in (16, 32, 8, 64, 128):
        kept = N // tile * tile
        if 0 < kept < N and explains(A[:, :kept], B[:kept]):
            return f"the last {N - kept} of {N} products of each sum are missing (N mod {tile})"
    if N > 1 and explains(A[:, :-1], B[:-1]):
        return "the last product of each sum is missing"
    if N > 1 and explains(A[:, 1:], B[1:]):
        return "the first product of each sum is missing"
    return None


def close(found: Matrix | Float64, expected: Float64) -> bool:
    """Return whether two matrices are equal except for rounding errors."""
    difference = np.linalg.norm(found - expected)
    return bool(difference <= 1e-4 * max(float(np.linalg.norm(expected)), 1e-30))


def _reread(matrix: Matrix) -> Matrix:
    """Return the matrix that results from reading the same memory column by column."""
    return matrix.reshape(matrix.shape[::-1]).T
