"""Poison in the output before a launch, and canaries around every buffer.

Both are NaN, so results that depend on them are not finite. Each has a payload of its own, so an
element that was never written can be distinguished from a wrong result.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.protocol.device import LaunchInputs
from harness.protocol.report import Finding
from problem.inputs import Matrix

POISON = np.uint32(0x7FC0_5EED)
"""Bits of every element of the output before a launch."""

CANARY = np.uint32(0x7FC0_CA9A)
"""Bits of every element before and after a buffer."""

PIECE_BYTES = 2 << 20
"""The GPU's memory is mapped in pieces of this size. An access to an unallocated piece is a fault;
an access to the rest of a matrix's piece is not."""

MIN_GUARD_BYTES = 65_536
MAX_LEAD_BYTES = 1 << 20

PAGE = 4096
"""Timed matrices begin at pages, as in ordinary programs: kernel and baseline are both slower if
rows do not begin at cache lines."""

ALIGNMENT = 16
"""Other matrices begin at any multiple of this many bytes, which is all that the problem
guarantees."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The place of a matrix in whole pieces of memory; guards fill the rest of them."""

    before: int
    size: int
    behind: int

    @property
    def total(self) -> int:
        return self.before + self.size + self.behind

    @classmethod
    def draw(cls, rows: int, columns: int, alignment: int = PAGE) -> Layout:
        """Draw an offset of random length, in multiples of `alignment`, so that a kernel cannot
        recognise a launch by its addresses."""
        size = rows * columns * 4
        before = MIN_GUARD_BYTES + alignment * secrets.randbelow(MAX_LEAD_BYTES // alignment + 1)
        total = -(-(before + size + MIN_GUARD_BYTES) // PIECE_BYTES) * PIECE_BYTES
        return cls(before, size, total - before - size)


def poisoned(rows: int, columns: int) -> Matrix:
    """Return a matrix in which nothing has been written."""
    return np.full((rows, columns), POISON, np.uint32).view(np.float32)


def unwritten(output: Matrix) -> NDArray[np.bool_]:
    """Return which elements still hold the poison."""
    return np.equal(output.view(np.uint32), POISON)


def changed_inputs(found: Iterable[Matrix], given: LaunchInputs) -> tuple[str, ...]:
    """Return the names of the inputs whose bits are no longer those that were given."""
    every = zip(given.arguments.inputs, found, given.matrices, strict=True)
    return tuple(buffer.name for buffer, after, before in every if not same_bits(after, before))


def same_bits(one: Matrix, other: Matrix) -> bool:
    """Return whether two matrices are the same, NaN included."""
    return np.array_equal(one.view(np.uint32), other.view(np.uint32))


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding for each hazard, line (or pair of lines) and array: the first, with the
    occurrences of all."""
    first: dict[object, Finding] = {}
    for finding in findings:
        lines = frozenset({finding.at.line, finding.other.line if finding.other else None})
        key = (finding.hazard, lines, finding.array)
        known = first.get(key)
        if known is None:
            first[key] = finding
        else:
            occurrences = known.occurrences + finding.occurrences
            first[key] = known.model_copy(update={"occurrences": occurrences})
    return tuple(first.values())
