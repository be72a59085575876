"""The line of each part of the judge: whether it works, or what to do."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.judge.doctor import Part


def line(part: Part) -> RenderableType:
    """Return the part's name, whether it works, and what was found."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", width=12, no_wrap=True)
    table.add_column(width=5)
    table.add_column()
    table.add_row(part.name, Text("works" if part.works else "no"), Text(part.says))
    return table
