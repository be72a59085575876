"""Show two submissions, or two versions of one, side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.board.compare import as_data, compare
from harness.board.document import Document
from harness.cli.commands import _documents
from harness.cli.commands._arguments import ENTRY_HELP, add_store
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import Address, open_store
from harness.cli.views.console import Terminal

HELP = """\
examples:
  python3 -m harness compare ada/tile report.json
  python3 -m harness compare reports/h100/02_*.json reports/h100/17_*.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=ENTRY_HELP + ", or a report's file")
    parser.add_argument("b", metavar="B", help="the same")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.cli.views.comparison import screen

    comparison = compare(*(_document(arguments.store, name) for name in (arguments.a, arguments.b)))
    if arguments.json:
        terminal.json(as_data(comparison))
    else:
        terminal.show(screen(comparison))
    return Exit.YES


def _document(store: Address, name: str) -> Document:
    path = Path(name)
    if path.is_file():
        return Document.parse(_documents.read(path), name)
    with open_store(store) as opened:
        return _documents.find(opened, name)
