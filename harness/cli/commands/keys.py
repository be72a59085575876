"""Show the board's key and the keys that it trusts, and change the list of trusted keys.

A result counts if the board's own judge signed it, or a key of this list.

examples:
  Show this board's key and the list:
    python3 -m harness keys
  Count what a key signed, or no longer count it:
    python3 -m harness keys --trust KEY --owner "lab"
    python3 -m harness keys --distrust KEY
"""

import argparse

from harness.board import keys
from harness.cli.commands._arguments import add_store
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--trust", metavar="KEY", help="add a public key to the list")
    group.add_argument("--distrust", metavar="KEY", help="remove a public key from the list")
    parser.add_argument("--owner", default="", metavar="NAME", help="with --trust: whose key it is")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    if arguments.owner and not arguments.trust:
        raise UsageError("--owner goes with --trust")
    path = arguments.key or arguments.store.key
    if path is None:
        raise UsageError(f"{arguments.store} does not say which key it has; name it with --key.")
    if arguments.trust:
        keys.add_to_list(path, arguments.trust.lower(), arguments.owner)
    elif arguments.distrust:
        keys.remove_from_list(path, arguments.distrust.lower())
    own = keys.SigningKey.at(path).public if path.exists() else "none before the first result"
    terminal.show(f"{own}  this board's own key ({path})")
    for key, owner in keys.listed(path).items():
        terminal.show(f"{key}  {owner or 'listed'}")
    return Exit.YES
