"""Progress of a grading, which the stages report and a view shows."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from harness.protocol.report import Stage


class Progress(Protocol):
    """Shows how far a grading has come."""

    def begin(self, stage: Stage, total: int | None) -> None:
        """A stage begins; total: its number of steps where that is known."""
        ...

    def step(self, text: str) -> None:
        """One step is about to be done."""
        ...

    def found(self, sentences: Iterable[str]) -> None:
        """The stage has found something; the report will say more."""
        ...


class Silent:
    """Progress that is not shown."""

    def begin(self, stage: Stage, total: int | None) -> None: ...

    def step(self, text: str) -> None: ...

    def found(self, sentences: Iterable[str]) -> None: ...


class Stopped(BaseException):
    """Ends work that is told to stop. It is no Exception, of which the judge makes verdicts."""


class Stoppable:
    """Progress that raises Stopped in the work that reports it, once an event is set."""

    def __init__(self, progress: Progress, stopping: threading.Event) -> None:
        self._progress = progress
        self._stopping = stopping

    def begin(self, stage: Stage, total: int | None) -> None:
        self._check()
        self._progress.begin(stage, total)

    def step(self, text: str) -> None:
        self._check()
        self._progress.step(text)

    def found(self, sentences: Iterable[str]) -> None:
        self._progress.found(sentences)

    def _check(self) -> None:
        if self._stopping.is_set():
            raise Stopped
