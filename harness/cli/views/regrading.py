"""The screen of a regrading: each result before and after."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.board.regrade import Change
from harness.judge import figures


def screen(changes: Iterable[Change]) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    for heading in ("Kernel", "Author", "Before", "After", "Change", ""):
        right = heading in ("Before", "After", "Change")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for change in changes:
        before, after = change.before, change.after
        scored = after is not None and after.score is not None
        table.add_row(
            before.name,
            before.author,
            figures.ratio(before.score),
            figures.ratio(after.score if after else None),
            figures.change(before.score or 1, after.score or 1) if after and scored else "",
            Text(change.why, "" if change.applies else "yellow"),
        )
    return table
