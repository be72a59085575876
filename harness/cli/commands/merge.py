"""Enter everything that other stores hold; they are not changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from harness.board.document import Document
from harness.cli.commands import _documents
from harness.cli.commands._arguments import add_store
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import Address, open_store
from harness.cli.views.console import Terminal

HELP = """\
examples:
  python3 -m harness merge machine-b.sqlite --store machine-a.sqlite
  python3 -m harness merge arena-data --store leaderboard.sqlite
  python3 -m harness merge leaderboard.sqlite --store postgresql://ada@host/team
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("others", nargs="+", type=Address, metavar="STORE", help="as for --store")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    documents = (each for address in arguments.others for each in _all(address))
    _documents.enter(arguments.store, documents, terminal)
    return Exit.YES


def _all(address: Address) -> Iterator[Document]:
    with open_store(address, "read") as other:
        for document in other.documents():
            yield Document.parse(document.json, f"entry {document.id[:12]} of {address}")
