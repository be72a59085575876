"""Write reports as JSON lines, or the source of one entry.

examples:
  python3 -m harness export > contest.jsonl
  python3 -m harness export --store arena-data > contest.jsonl
  python3 -m harness export --source ada/tile > tile.cu
"""

import argparse

from harness.cli.commands._arguments import add_store
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import ENTRY_HELP, find, open_store
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("entries", nargs="*", metavar="ENTRY", help=ENTRY_HELP + "; default: all")
    parser.add_argument("--source", action="store_true", help="write the kernel's source instead")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    if arguments.source and not arguments.entries:
        raise UsageError("--source needs an ENTRY, whose source it writes")
    with open_store(arguments.store, key=arguments.key) as store:
        if not arguments.entries:
            for document in store.documents():
                terminal.json(document.json)
        for name in arguments.entries:
            document = find(store, name)
            if arguments.source:
                terminal.file(document.report.submission.source)
            else:
                terminal.json(document.json)
    return Exit.YES
