"""Enter reports that `grade --json` has written."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands import _documents
from harness.commands._arguments import add_store
from harness.commands._command import Exit
from harness.leaderboard.document import Document
from harness.views.console import Terminal

HELP = """\
example:
  python3 -m harness submit report.json --store contest.sqlite
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.json")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    documents = [Document.parse(_documents.read(path), str(path)) for path in arguments.reports]
    _documents.enter(arguments.store, documents, terminal)
    return Exit.YES
