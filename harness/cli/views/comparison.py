"""The screen of a comparison: two submissions side by side, and their difference."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from harness.board.compare import Comparison
from harness.judge import figures


def screen(comparison: Comparison) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for label, entry in (("A", comparison.a), ("B", comparison.b)):
        title = f"{label}  {entry.name}\nby {entry.author}"
        table.add_column(Text(title), justify="right", overflow="fold", max_width=40)
    table.add_column("B against A", justify="right")
    for fact in comparison.facts:
        unit = f" ({fact.unit})" if fact.unit else ""
        table.add_row(fact.what + unit, _shown(fact.a), _shown(fact.b), fact.change)
    difference: RenderableType = (
        "The sources are too long to compare line by line."
        if comparison.too_long
        else "The sources are the same."
    )
    if comparison.diff:
        difference = Syntax(comparison.diff, "diff", background_color="default", word_wrap=True)
    return Group(table, "", difference, "", Text(comparison.conclusion, "bold"))


def _shown(value: float | str | None) -> Text:
    if value is None:
        return Text("–", "dim")
    if isinstance(value, str):
        return Text(value)
    if 0 < abs(value) < 1e-3:
        return Text(figures.error(value))
    return Text(f"{value:.4g}" if value != int(value) else f"{int(value)}")
