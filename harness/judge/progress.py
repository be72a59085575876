"""What a grading says of itself while it works."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from harness.protocol.report import Stage


class Progress(Protocol):
    """Told by the stages, shown by a view."""

    def begin(self, stage: Stage, total: int | None) -> None:
        """A stage begins; total: its number of steps where that is known."""
        ...

    def step(self, text: str) -> None:
        """One step is about to be done."""
        ...

    def found(self, sentences: Iterable[str]) -> None:
        """The stage has found something; the report will say it, too, and more of it."""
        ...


class Silent:
    """Progress that is not shown."""

    def begin(self, stage: Stage, total: int | None) -> None: ...

    def step(self, text: str) -> None: ...

    def found(self, sentences: Iterable[str]) -> None: ...


class Stopped(BaseException):
    """Ends what is told to stop. No Exception, because the judge makes a verdict of those."""


class Stoppable:
    """Progress that ends its work once that is to stop."""

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
