"""Enter everything that other stores hold; they are not changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from harness.commands import _documents
from harness.commands._arguments import add_store
from harness.commands._command import Exit
from harness.leaderboard.document import Document
from harness.leaderboard.store import Store
from harness.views.console import Terminal

HELP = """\
example:
  python3 -m harness merge machine-b.sqlite --store machine-a.sqlite
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("others", nargs="+", type=Path, metavar="STORE")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    documents = (each for path in arguments.others for each in _all(path))
    _documents.enter(arguments.store, documents, terminal)
    return Exit.YES


def _all(path: Path) -> Iterator[Document]:
    with Store(path, "read") as other:
        for document in other.documents():
            yield Document.parse(document.json, f"entry {document.id[:12]} of {path}")
