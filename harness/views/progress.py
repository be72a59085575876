"""Progress on a terminal: a line that goes away."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from harness.report import Stage
from harness.views.console import SafeConsole


class TerminalProgress:
    """Progress as a line that goes away; nothing where there is no terminal."""

    def __init__(self, console: SafeConsole, name: str) -> None:
        self._name = name
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.fields[name]}  {task.fields[stage]:8}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[step]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        self.begin(Stage.READ, None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def begin(self, stage: Stage, total: int | None) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(
            "", total=total, name=self._name[:20], stage=stage.value, step=""
        )
        self._done = 0

    def step(self, text: str) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=self._done, step=text[:36])
            self._done += 1
