"""Progress on a terminal, in lines that disappear."""

from collections.abc import Iterable
from typing import Self

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from harness.cli.views.console import SafeConsole
from harness.protocol.report import Stage

MAX_FOUND = 12
"""The number of findings above the bar; the newest are shown."""


class _Bar(Bar):
    """A bar with the findings so far above it."""

    def __init__(self, *columns: ProgressColumn, console: SafeConsole) -> None:
        self.found: list[Text] = []
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from self.found
        yield from super().get_renderables()


class TerminalProgress:
    """The progress of one grading; nothing is shown if there is no terminal."""

    def __init__(self, console: SafeConsole, name: str) -> None:
        self.name = name
        self._bar = _Bar(
            SpinnerColumn(),
            TextColumn("{task.fields[name]}  {task.fields[stage]:8}", markup=False),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[step]}", markup=False),
            TimeElapsedColumn(),
            console=console,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        self.begin(Stage.READ, None)
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, stage: Stage, total: int | None) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(
            "", total=total, name=self.name[:24], stage=stage.value, step=""
        )
        self._done = 0

    def step(self, text: str) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=self._done, step=text[:24])
            self._done += 1

    def found(self, sentences: Iterable[str]) -> None:
        new = (Text(sentence, "dim", no_wrap=True, overflow="ellipsis") for sentence in sentences)
        self._bar.found = [*self._bar.found, *new][-MAX_FOUND:]
