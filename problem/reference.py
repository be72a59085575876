"""The float64 product on the CPU, and the limits for the error of C."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from problem.inputs import Matrix, Tolerance
from problem.threads import in_threads

# BLAS's own threads spin while they wait for one another. When other processes use their cores, a
# hundred small products take ten times as long. Our own threads (`in_threads`) do not spin.
threadpool_limits(1, user_api="blas")

BLOCK_SIZE = 16
"""The error is measured per 16×16 block of C; blocks at the edges are smaller."""

MAX_ERROR = 1e-5
"""The largest error of a block, and for exact inputs the largest |C - R| of an element."""

MAX_STRUCTURED_ERROR = 1e-4
"""The largest |C - R|_ij / (‖a_i‖₂ ‖b_j‖₂) on structured inputs; `long_sums` raises it for long
sums."""


def long_sums(N: int) -> float:
    """Return the factor of MAX_STRUCTURED_ERROR for sums of N structured products.

    A float32 sum of N products, in any order, has an error of up to N·2^-24 ‖a_i‖₂ ‖b_j‖₂ (Higham,
    Accuracy and Stability of Numerical Algorithms, section 3.1). Equal products come close to that,
    since all of their rounding errors have one sign.
    """
    return max(1.0, N * 2.0**-24 / MAX_STRUCTURED_ERROR)


def norms_scale(tolerance: Tolerance, N: int) -> float:
    """Return the factor of ‖a_i‖₂ · ‖b_j‖₂ to which errors are relative."""
    return long_sums(N) if tolerance is Tolerance.STRUCTURED else 1 / math.sqrt(N)


LIMITS = {
    Tolerance.EXACT: MAX_ERROR,
    Tolerance.RANDOM: MAX_ERROR,
    Tolerance.STRUCTURED: MAX_STRUCTURED_ERROR,
}

_LARGEST = float(np.finfo(np.float32).max)
_IGNORED = {Tolerance.RANDOM: 2.0**-121, Tolerance.STRUCTURED: 2.0**-123}
"""The norm of a block's errors, or the largest error, that flushed subnormal numbers may cause."""

_PANEL_ROWS = 256
"""Rows of C that one thread multiplies and compares, a multiple of BLOCK_SIZE. They are enough for
BLAS to be fast, and some tens of megabytes of float64 at the ranked size."""

Float64 = NDArray[np.float64]


def reference(A: Matrix, B: Matrix) -> Float64:
    """Return R = A · B in float64: (M×N) · (N×K) → (M×K)."""
    with np.errstate(invalid="ignore", over="ignore"):
        return A.astype(np.float64) @ B.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The errors of C.

    block_errors: (⌈M/16⌉, ⌈K/16⌉) float64, the error of each block: by the block rule, or the
        largest error of an element. It is infinite where C should be finite and is not.
    """

    block_errors: Float64
    tolerance: Tolerance = Tolerance.RANDOM

    @property
    def worst(self) -> float:
        return float(self.block_errors.max())

    @property
    def worst_block(self) -> tuple[int, int]:
        """The row and column of the worst block, counted in blocks."""
        row, column = np.unravel_index(int(self.block_errors.argmax()), self.block_errors.shape)
        return int(row), int(column)

    @property
    def limit(self) -> float:
        """The largest error that is allowed."""
        return LIMITS[self.tolerance]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Return for each block whether it is wrong."""
        return self.block_errors > self.limit

    @property
    def passed(self) -> bool:
        return not self.wrong.any()


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected C (M×K) for A (M×N) and B (N×K).

    random:      error(block) = ‖C - R‖_F / max(‖R‖_F, ‖S‖_F),  S_ij = ‖a_i‖₂ · ‖b_j‖₂ / √N
    structured:  error(block) = max |C - R|_ij / (‖a_i‖₂ · ‖b_j‖₂ · long_sums(N))
    exact:       error(block) = max |C - R|_ij

    S_ij is the typical size of a sum of N terms of random sign. With it, the error of a block in
    which all terms cancel is not relative to nearly zero. A block at the edge of C counts as a
    whole one: its missing elements are right and of mean size. The error of a few elements varies
    more than that of 256, and would exceed the limit by chance. A block whose R and S are zero must
    be zero. Subnormal results may be flushed to zero, and so may the parts that atomics add. Such
    errors are ignored: up to 2^-123 in an element (structured), 2^-121 in the norm of a block
    (random), which is 2^-125 for the root mean square of 256 elements. Where R is not finite, or
    more than twice the largest float32 number, C must not be finite either. Where R is more than a
    quarter of that number, C may be infinite or NaN: C or an intermediate result may overflow, and
    a compensated sum then subtracts infinity from infinity.

    scale: the divisor of differences, for each block (random) or element (structured); None if C
        must be exact. special: where C must not be finite; None if there is no such element.
    large: where C may also be infinite or NaN.
    """

    R: Float64
    scale: Float64 | None
    tolerance: Tolerance
    special: NDArray[np.bool_] | None = None
    large: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, A: Matrix, B: Matrix, *, tolerance: Tolerance = Tolerance.RANDOM) -> Expected:
        R = np.empty((A.shape[0], B.shape[1]))
        B64 = B.astype(np.float64)
        norms_B = np.linalg.norm(B64, axis=0) * norms_scale(tolerance, A.shape[1])
        special, large = (np.zeros(R.shape, np.bool_) for _ in range(2))

        def scale(rows: slice) -> Float64:
            A64 = A[rows].astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                np.matmul(A64, B64, out=R[rows])
                S: Float64 = np.linalg.norm(A64, axis=1)[:, None] * norms_B
                special[rows] = ~(np.abs(R[rows]) <= 2 * _LARGEST)
                large[rows] = np.abs(R[rows]) > _LARGEST / 4
            if special[rows].any():
                R[rows][special[rows]] = S[special[rows]] = 0
            if tolerance is Tolerance.STRUCTURED:
                return S
            squares = (_per_block(np.square(each), np.add) for each in (R[rows], S))
            norms: Float64 = np.sqrt(np.maximum(*squares))
            return norms

        scales = np.concatenate(_by_panels(scale, len(R)))
        if tolerance is Tolerance.RANDOM:
            elements = np.outer(*(_block_lengths(size) for size in R.shape))
            scales *= np.sqrt(elements.max() / elements)
        if tolerance is not Tolerance.EXACT:
            least = _IGNORED[tolerance] / LIMITS[tolerance]
            np.maximum(scales, least, out=scales, where=scales > 0)
        exact = tolerance is Tolerance.EXACT
        masks = (mask if mask.any() else None for mask in (special, large))
        return cls(R, None if exact else scales, tolerance, *masks)

    def compare(self, C: Matrix) -> Comparison:
        """Compare C with the reference."""

        def errors(rows: slice) -> Float64:
            with np.errstate(invalid="ignore"):
                difference = C[rows] - self.R[rows]
            if self.large is not None:
                difference[self.large[rows] & ~np.isfinite(C[rows])] = 0
            if self.special is not None:
                finite = np.where(np.isfinite(C[rows]), np.inf, 0)
                difference = np.where(self.special[rows], finite, difference)
            if self.scale is None:
                return _per_block(np.abs(difference), np.maximum)
            if self.tolerance is Tolerance.STRUCTURED:
                return _per_block(quotient(np.abs(difference), self.scale[rows]), np.maximum)
            blocks = slice(rows.start // BLOCK_SIZE, -(-rows.stop // BLOCK_SIZE))
            norms = np.sqrt(_per_block(np.square(difference), np.add))
            return quotient(norms, self.scale[blocks])

        found = np.concatenate(_by_panels(errors, len(C)))
        return Comparison(np.where(np.isfinite(found), found, np.inf), self.tolerance)


def compare(
    A: Matrix, B: Matrix, C: Matrix, *, tolerance: Tolerance = Tolerance.RANDOM
) -> Comparison:
    """Compare C with the float64 product of A and B, as `Expected` says."""
    return Expected.of(A, B, tolerance=tolerance).compare(C)


def _by_panels(work: Callable[[slice], Float64], rows: int) -> list[Float64]:
    """Call the function for some rows at a time."""
    panels = [slice(top, min(top + _PANEL_ROWS, rows)) for top in range(0, rows, _PANEL_ROWS)]
    return in_threads(work, panels)


def compare_repeated(rows: Matrix, columns: Matrix, C: Matrix) -> Comparison:
    """Compare as `compare` does, if A repeats these few rows and B these few columns. Their numbers
    are multiples of BLOCK_SIZE and divide those of C."""
    expected = Expected.of(rows, columns)
    height, width = expected.R.shape

    def panel(top: int) -> Float64:
        repeats = np.split(C[top : top + height], C.shape[1] // width, axis=1)
        return np.concatenate([expected.compare(each).block_errors for each in repeats], axis=1)

    return Comparison(np.concatenate(in_threads(panel, range(0, len(C), height))))


def repeated(part: Matrix, rows: int, columns: int) -> Matrix:
    """Return a matrix that repeats this part down and across."""
    for axis, length in enumerate((rows, columns)):
        if part.shape[axis] != length:
            part = np.take(part, np.arange(length) % part.shape[axis], axis=axis)
    return part


def quotient(numerator: Float64, scale: Float64) -> Float64:
    """Divide. 0/0 is 0, any other number divided by 0 is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(numerator == 0, 0.0, numerator / scale)


def _block_lengths(size: int) -> NDArray[np.int64]:
    return np.minimum(BLOCK_SIZE, size - np.arange(0, size, BLOCK_SIZE))


def _per_block(values: Float64, reduce: Any) -> Float64:
    """Reduce (M×K) to one value per block: (⌈M/16⌉, ⌈K/16⌉)."""
    rows = reduce.reduceat(values, np.arange(0, values.shape[0], BLOCK_SIZE), axis=0)
    blocks: Float64 = reduce.reduceat(rows, np.arange(0, values.shape[1], BLOCK_SIZE), axis=1)
    return blocks
