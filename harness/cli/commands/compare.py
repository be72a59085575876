"""Show two submissions, or two versions of one, side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from harness.board.compare import Comparison, as_data, compare
from harness.board.document import Document
from harness.cli.commands._arguments import add_store
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import ENTRY_HELP, Address, find, open_store, read
from harness.cli.views.console import Terminal
from harness.judge import figures

HELP = """\
examples:
  python3 -m harness compare ada/tile report.json
  python3 -m harness compare reports/h200/02_*.json reports/h200/17_*.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=ENTRY_HELP + ", or a report's file")
    parser.add_argument("b", metavar="B", help="the same")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    comparison = compare(*(_document(arguments.store, name) for name in (arguments.a, arguments.b)))
    if arguments.json:
        terminal.json(as_data(comparison))
    else:
        terminal.show(screen(comparison))
    return Exit.YES


def _document(store: Address, name: str) -> Document:
    path = Path(name)
    if path.is_file():
        return Document.parse(read(path), name)
    with open_store(store) as opened:
        return find(opened, name)


def screen(comparison: Comparison) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for label, entry in (("A", comparison.a), ("B", comparison.b)):
        title = f"{label}  {entry.name}\nby {entry.author}"
        table.add_column(Text(title), justify="right", overflow="fold", max_width=40)
    table.add_column("B against A", justify="right")
    for fact in comparison.facts:
        unit = f" ({fact.unit})" if fact.unit else ""
        a, b = figures.quantity(fact.a), figures.quantity(fact.b)
        table.add_row(fact.what + unit, Text(a), Text(b), fact.change)
    difference: RenderableType = (
        "The sources are too long to compare line by line."
        if comparison.too_long
        else "The sources are the same."
    )
    if comparison.diff:
        difference = Syntax(comparison.diff, "diff", background_color="default", word_wrap=True)
    return Group(table, "", difference, "", Text(comparison.conclusion, "bold"))
