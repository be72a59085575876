"""The states of a grading, and the changes between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """The state of one grading of one submission."""

    QUEUED = "queued"
    GRADING = "grading"
    """An attempt holds it."""
    DONE = "done"
    """It has a report, and keeps it."""
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return not TRANSITIONS[self]


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.GRADING, State.CANCELLED}),
    # Back to the queue when the attempt that held it has died.
    State.GRADING: frozenset({State.QUEUED, State.DONE, State.CANCELLED}),
    State.DONE: frozenset(),
    State.CANCELLED: frozenset(),
}
"""The trigger `arena_hold_transitions` of the database refuses every other change, too."""

MAX_ATTEMPTS = 3
"""After so many attempts that died, a grading ends as a fault of the judge."""
