"""What a grading says of itself while it works."""

from __future__ import annotations

from typing import Protocol

from harness.report import Stage


class Progress(Protocol):
    """Told by the stages, shown by a view."""

    def begin(self, stage: Stage, total: int | None) -> None:
        """A stage begins; total: its number of steps where that is known."""
        ...

    def step(self, text: str) -> None:
        """One step is about to be done."""
        ...


class Silent:
    """Progress that is not shown."""

    def begin(self, stage: Stage, total: int | None) -> None: ...

    def step(self, text: str) -> None: ...
