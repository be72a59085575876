"""The float64 product on the CPU, and how far a C may be from it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from problem.cases import Matrix

BLOCK_SIZE = 16
"""The error is measured per 16×16 block of C; blocks at the edges are smaller."""

MAX_ERROR = 1e-5
"""The largest error of a block, and for exact inputs the largest |C - R| of an element."""

_PANEL_ROWS = 512
"""Rows of C compared at a time by one thread: a multiple of BLOCK_SIZE, and some tens of megabytes
of float64 at the ranked size."""

Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far C is from the reference.

    block_errors: (⌈M/16⌉, ⌈K/16⌉) float64, the error of each block. In a comparison of exact
        inputs it is the largest |C - R| in the block. Infinite where C is not finite.
    """

    block_errors: Float64

    @property
    def worst(self) -> float:
        return float(self.block_errors.max())

    @property
    def worst_block(self) -> tuple[int, int]:
        """Row and column of the worst block, counted in blocks."""
        row, column = np.unravel_index(int(self.block_errors.argmax()), self.block_errors.shape)
        return int(row), int(column)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which blocks are wrong."""
        return self.block_errors > MAX_ERROR

    @property
    def passed(self) -> bool:
        return not self.wrong.any()


def reference(A: Matrix, B: Matrix) -> Float64:
    """R = A · B in float64: (M×N) · (N×K) → (M×K)."""
    return A.astype(np.float64) @ B.astype(np.float64)


def compare(A: Matrix, B: Matrix, C: Matrix, *, exact: bool) -> Comparison:
    """Compare C (M×K) with the float64 product of A (M×N) and B (N×K).

    error(block) = ‖C - R‖_F / max(‖R‖_F, ‖S‖_F),  S_ij = ‖a_i‖₂ · ‖b_j‖₂ / √N

    S_ij is the size that a sum of N terms of random sign has, so a block in which everything
    cancels is not held to an error relative to nearly nothing. A block whose R and S are zero must
    be zero. With exact=True the error is max |C - R| instead.
    """
    N = A.shape[1]
    B64 = B.astype(np.float64)
    norm_B = np.linalg.norm(B64, axis=0) / np.sqrt(N)

    def panel(top: int) -> Float64:
        A64 = A[top : top + _PANEL_ROWS].astype(np.float64)
        R = A64 @ B64
        difference = C[top : top + _PANEL_ROWS] - R
        if exact:
            errors = _per_block(np.abs(difference), np.maximum)
        else:
            S = np.linalg.norm(A64, axis=1)[:, None] * norm_B
            errors = relative_block_errors(difference, R, S)
        return np.where(np.isfinite(errors), errors, np.inf)

    tops = range(0, A.shape[0], _PANEL_ROWS)
    if len(tops) == 1:
        return Comparison(panel(0))
    # NumPy lets other threads work while it computes.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return Comparison(np.concatenate([*threads.map(panel, tops)]))


def compare_repeated(rows: Matrix, columns: Matrix, C: Matrix) -> Comparison:
    """As `compare`, where A is made of these few rows and B of these few columns, over and over;
    their numbers are multiples of BLOCK_SIZE and divide those of C."""
    R = reference(rows, columns)
    norms = np.linalg.norm(rows.astype(np.float64), axis=1), np.linalg.norm(columns, axis=0)
    S = norms[0][:, None] * norms[1] / np.sqrt(rows.shape[1])

    def panel(top: int) -> Float64:
        parts = (
            relative_block_errors(C[top : top + len(R), left : left + R.shape[1]] - R, R, S)
            for left in range(0, C.shape[1], R.shape[1])
        )
        errors = np.concatenate([*parts], axis=1)
        return np.where(np.isfinite(errors), errors, np.inf)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return Comparison(np.concatenate([*threads.map(panel, range(0, len(C), len(R)))]))


def repeated(part: Matrix, length: int, axis: int) -> Matrix:
    """A matrix of so many rows (axis 0) or columns (axis 1), made of these few over and over."""
    matrix: Matrix = np.take(part, np.arange(length) % part.shape[axis], axis=axis)
    return matrix


def relative_block_errors(difference: Float64, R: Float64, S: Float64) -> Float64:
    """‖difference‖_F / max(‖R‖_F, ‖S‖_F) per block; 0/0 is 0, anything else over 0 is infinite."""
    numerator = np.sqrt(_per_block(np.square(difference), np.add))
    scale = np.sqrt(np.maximum(_per_block(np.square(R), np.add), _per_block(np.square(S), np.add)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(numerator == 0, 0.0, numerator / scale)


def _per_block(values: Float64, reduce: Any) -> Float64:
    """Reduce (M×K) to one value a block: (⌈M/16⌉, ⌈K/16⌉)."""
    rows = reduce.reduceat(values, np.arange(0, values.shape[0], BLOCK_SIZE), axis=0)
    blocks: Float64 = reduce.reduceat(rows, np.arange(0, values.shape[1], BLOCK_SIZE), axis=1)
    return blocks
