"""Typical mistakes that are recognised by the elements of a wrong product."""

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np

from problem.inputs import Matrix
from problem.reference import Float64, reference

_ELEMENTS = {"A": "A[row * N + n]", "B": "B[n * K + column]", "C": "C[row * K + column]"}

_SOME = 64
"""Rows and columns of C that are compared. A mistake that explains them explains the others."""

_FEW = 8
"""Elements of C whose sums are searched for the number of products."""


def hint(A: Matrix, B: Matrix, C: Matrix) -> str | None:
    """Return a mistake in one sentence, if it explains C.

    Where parts of A or B differ much in scale, a C that is only inaccurate is also close to the
    result of some mistakes. So the result of the mistake must be ten times as close as the correct
    product."""
    if all((matrix == matrix.flat[0]).all() for matrix in (A, B, C)):
        N, product = A.shape[1], float(A.flat[0]) * float(B.flat[0])
        added = float(C.flat[0]) / product if product else 0.0
        if added.is_integer() and 0 < added < 2 * N and added != N:
            some = "1 product" if added == 1 else f"{added:.0f} products"
            return f"as if each sum had {some} in place of {N}"
    rows, columns = (np.unique(np.linspace(0, size - 1, _SOME, dtype=int)) for size in C.shape)
    far = float(np.linalg.norm(C[rows][:, columns] - reference(A[rows], B[:, columns])))

    def explains(A: Matrix, B: Matrix, C: Matrix) -> bool:
        expected, found = reference(A[rows], B[:, columns]), C[rows][:, columns]
        return close(found, expected) and float(np.linalg.norm(found - expected)) < far / 10

    def changed(change: Callable[[Matrix], Matrix]) -> list[str]:
        """Return the matrices of which this change explains C, the fewest that do."""
        both = [{"A": A, "B": B, "C": C}, {"A": change(A), "B": change(B), "C": change(C)}]
        every = [names for count in (1, 2, 3) for names in combinations("ABC", count)]
        for names in every:
            if explains(*(both[name in names][name] for name in "ABC")):
                return list(names)
        return []

    if names := changed(_reread):
        elements = ", ".join(_ELEMENTS[name] for name in names)
        return (
            f"{', '.join(names)}: addressed column by column; matrices lie in memory row by row: "
            f"{elements}"
        )
    for tile in (16, 32, 8, 4):
        if any(size % tile for size in (*A.shape, *B.shape)):
            continue
        if names := changed(partial(_tiles_transposed, tile)):
            return (
                f"as if each {tile}×{tile} tile of {', '.join(names)} was transposed: two indices "
                "may be swapped, such as those of an array in shared memory"
            )
    return _of_products(A, B, C, explains)


def _of_products(
    A: Matrix, B: Matrix, C: Matrix, explains: Callable[[Matrix, Matrix, Matrix], bool]
) -> str | None:
    """Say so if each sum has only the first or the last of its products."""
    (M, N), K = A.shape, B.shape[1]
    rows, columns = (np.linspace(0, size - 1, _FEW, dtype=int) for size in C.shape)
    products = A[rows].astype(np.float64) * B[:, columns].T
    found = C[rows, columns].astype(np.float64)[:, None]

    def count(products: Float64) -> int:
        """Return how many of the first products come closest to the sums that were found."""
        return int(np.abs(np.cumsum(products, axis=1) - found).sum(axis=0).argmin()) + 1

    first, last = count(products), count(products[:, ::-1])
    if first < N and explains(A[:, :first], B[:first], C):
        for name, size in (("K", K), ("M", M)):
            if first == size:
                return f"each sum has only the first {name} = {size} of its N = {N} products"
        rest = N - first
        last_of = (
            "product of each sum is" if rest == 1 else f"{rest} of {N} products of each sum are"
        )
        found_by = (f" (N mod {tile})" for tile in (16, 32, 4, 8, 64, 128) if N % tile == rest)
        return f"the last {last_of} missing{next(found_by, '')}"
    if last < N and explains(A[:, -last:], B[-last:], C):
        if last == N - 1:
            return "the first product of each sum is missing"
        return f"each sum has only the last {last} of its {N} products"
    return None


def close(found: Matrix | Float64, expected: Float64) -> bool:
    """Return whether two matrices are equal except for rounding errors."""
    difference = np.linalg.norm(found - expected)
    return bool(difference <= 1e-4 * max(float(np.linalg.norm(expected)), 1e-30))


def _reread(matrix: Matrix) -> Matrix:
    """Return the matrix that results from reading the same memory column by column."""
    return matrix.reshape(matrix.shape[::-1]).T


def _tiles_transposed(tile: int, matrix: Matrix) -> Matrix:
    rows, columns = matrix.shape
    tiles = matrix.reshape(rows // tile, tile, columns // tile, tile)
    return tiles.swapaxes(1, 3).reshape(rows, columns)
