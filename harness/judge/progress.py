"""Progress of a grading, which the stages report and a view shows."""

from collections.abc import Iterable
from typing import Protocol

from harness.protocol.report import Stage


class Progress(Protocol):
    """Shows how far a grading has come."""

    def begin(self, stage: Stage, total: int | None) -> None:
        """A stage begins; total: its number of steps where that is known."""

    def step(self, text: str) -> None:
        """One step is about to be done."""

    def found(self, sentences: Iterable[str]) -> None:
        """The stage has found something; the report will say more."""


class Silent:
    def begin(self, stage: Stage, total: int | None) -> None: ...

    def step(self, text: str) -> None: ...

    def found(self, sentences: Iterable[str]) -> None: ...
