"""Poison and canaries: what surrounds A, B and C, and what C holds before a launch.

Both are NaN, so whatever is computed from them is not finite, and each has a payload of its own, so
that a value that was never written can be told from one that came out wrong.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from problem.cases import Matrix, Shape

POISON = np.uint32(0x7FC0_5EED)
"""Bits of every element of C before a launch."""

CANARY = np.uint32(0x7FC0_CA9A)
"""Bits of every element before and behind A, B and C."""

PIECE_BYTES = 2 << 20
"""The GPU's memory is mapped in pieces of this size: an address in a piece that nothing has been
given is a fault, and what lies in the same piece as a matrix is not."""

MIN_GUARD_BYTES = 65_536
MAX_LEAD_BYTES = 1 << 20

PAGE = 4096
"""Timed matrices begin at pages, as those of programs do: both kernel and baseline are slower where
rows begin anywhere in a cache line."""

ALIGNMENT = 16
"""Other matrices begin at any multiple of so many bytes, which is all that the problem promises."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a matrix lies in memory of its own: whole pieces, and every byte of them that is not
    the matrix's belongs to a guard."""

    before: int
    size: int
    behind: int

    @property
    def total(self) -> int:
        return self.before + self.size + self.behind

    @classmethod
    def draw(cls, rows: int, columns: int, alignment: int = PAGE) -> Layout:
        """Draw a lead of random length, in multiples of `alignment`: no address tells one launch
        from another."""
        size = rows * columns * 4
        before = MIN_GUARD_BYTES + alignment * secrets.randbelow(MAX_LEAD_BYTES // alignment + 1)
        total = -(-(before + size + MIN_GUARD_BYTES) // PIECE_BYTES) * PIECE_BYTES
        return cls(before, size, total - before - size)


class Layouts:
    """Where A, B and C lie in launch after launch. Mostly no address tells one from another; but
    where a shape was launched last, it is launched again half of the times, because what a kernel
    keeps for the addresses that it was given is stale then."""

    def __init__(self) -> None:
        self._last: tuple[Shape, tuple[Layout, Layout, Layout]] | None = None

    def of(self, shape: Shape) -> tuple[Layout, Layout, Layout]:
        if self._last is not None and self._last[0] == shape and secrets.randbelow(2):
            return self._last[1]
        M, N, K = shape.M, shape.N, shape.K
        A, B, C = (Layout.draw(*size, ALIGNMENT) for size in ((M, N), (N, K), (M, K)))
        drawn = (A, B, C)
        self._last = shape, drawn
        return drawn


def poisoned(rows: int, columns: int) -> Matrix:
    """A matrix in which nothing has been written."""
    return np.full((rows, columns), POISON, np.uint32).view(np.float32)


def unwritten(C: Matrix) -> NDArray[np.bool_]:
    """Which elements still hold the poison."""
    return np.equal(C.view(np.uint32), POISON)
