"""Enter the reports of files and of other stores; all of them or none.

A file is what `grade --json` or `export` has written. Other stores are not changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from harness.board.document import Document
from harness.cli.commands._arguments import add_store
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import Address, check_regular, open_store, read_all
from harness.cli.views.console import Terminal

HELP = """\
examples:
  python3 -m harness import contest.jsonl --store leaderboard.sqlite
  python3 -m harness import report.json --store contest.sqlite
  python3 -m harness import machine-b.sqlite --store machine-a.sqlite
  python3 -m harness import arena-data --store leaderboard.sqlite
  python3 -m harness import contest.jsonl --store postgresql://ada@host/team
"""

_SQLITE = b"SQLite format 3\0"
"""The first bytes of a SQLite file."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        nargs="+",
        type=Address,
        metavar="FILE|STORE",
        help="a report, the lines of an export, or a store as for --store",
    )
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    documents = (each for source in arguments.sources for each in _documents_of(source))
    with open_store(arguments.store, "create") as store:
        entered = store.enter_documents(documents)
    known = len(entered.ids) - entered.new
    already = f", {known} already there" if known else ""
    terminal.show(f"{entered.new} entered into {arguments.store}{already}.")
    return Exit.YES


def _documents_of(source: Address) -> Iterator[Document]:
    if not _is_store(source):
        yield from read_all(source.path)
        return
    with open_store(source, "read") as other:
        for document in other.documents():
            yield Document.parse(document.json, f"entry {document.id[:12]} of {source}")


def _is_store(source: Address) -> bool:
    if source.is_url or source.is_arena:
        return True
    check_regular(source.path)
    if not source.path.is_file():
        return False
    with source.path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
