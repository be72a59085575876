"""The states of a grading. A trigger of the database refuses all changes but those that
store/functions.sql lists."""

from enum import StrEnum


class State(StrEnum):
    """The state of one grading of one submission."""

    QUEUED = "queued"
    GRADING = "grading"
    """A worker grades it."""
    DONE = "done"
    """It has a report."""
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in (State.DONE, State.CANCELLED)


MAX_ATTEMPTS = 3
"""A grading whose attempts have died this many times ends as a judge-error."""
