"""Enter the reports of files; all of them or none.

A file is what `grade --json` or `export` has written.

examples:
  python3 -m harness import contest.jsonl --store leaderboard.sqlite
  python3 -m harness import report.json --store contest.sqlite
  python3 -m harness import contest.jsonl --store postgresql://ada@host/team
"""

import argparse
from itertools import chain
from pathlib import Path

from harness.cli.commands._arguments import add_store
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import open_store, read_all
from harness.cli.views.console import Terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a report, or the lines of an export"
    )
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    documents = chain.from_iterable(map(read_all, arguments.files))
    first = next(documents)  # so that a wrong file makes no store
    with open_store(arguments.store, create=True) as store:
        entered = store.enter_documents(chain([first], documents))
    known = len(entered.ids) - entered.new
    already = f", {known} already there" if known else ""
    terminal.show(f"{entered.new} entered into {arguments.store}{already}.")
    return Exit.YES
