"""Enter the reports of an export; all of them or none."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands import _documents
from harness.cli.commands._arguments import add_store
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal

HELP = """\
examples:
  python3 -m harness import contest.jsonl --store leaderboard.sqlite
  python3 -m harness import contest.jsonl --store postgresql://ada@host/team
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    documents = (each for path in arguments.files for each in _documents.read_lines(path))
    _documents.enter(arguments.store, documents, terminal)
    return Exit.YES
