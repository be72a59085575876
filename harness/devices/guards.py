"""Poison and canaries: what surrounds A, B and C, and what C holds before a launch.

Both are NaN, so whatever is computed from them is not finite, and each has a payload of its own, so
that a value that was never written can be told from one that came out wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from problem.cases import Matrix

POISON = np.uint32(0x7FC0_5EED)
"""Bits of every element of C before a launch."""

CANARY = np.uint32(0x7FC0_CA9A)
"""Bits of every element before and behind A, B and C."""

GUARD_BYTES = 65_536
"""Size of the guard on either side of a matrix."""


def poisoned(rows: int, columns: int) -> Matrix:
    """A matrix in which nothing has been written."""
    return np.full((rows, columns), POISON, np.uint32).view(np.float32)


def unwritten(C: Matrix) -> NDArray[np.bool_]:
    """Which elements still hold the poison."""
    return np.equal(C.view(np.uint32), POISON)
