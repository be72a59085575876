"""Bring this machine's GPUs to an arena on another one.

Each GPU grades for it until this is ended: Ctrl-C gives back what is in hand, and somebody else
grades it. Nothing is shared but the arena's database.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._arguments import count
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError

HELP = """\
examples:
  python3 -m harness worker --arena lab-3.key
  python3 -m harness worker --arena lab-3.key --drain   end after this job
  python3 -m harness worker --arena lab-3.key --device cpu --workers 2

The key is made on the machine of the arena, which must let workers in:
  python3 -m harness arena run --listen 0.0.0.0:8041
  python3 -m harness arena worker-key --name a --address arena:8041 --file a.key

A machine may grade where it has the arena's own version of this judge. It
needs the packages that `nox -s worker` installs.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--arena", type=Path, required=True, metavar="FILE", help="this machine's key"
    )
    parser.add_argument(
        "--device", choices=("auto", "cpu"), default="auto", help="auto: every GPU (default)"
    )
    parser.add_argument(
        "--workers", type=count, metavar="N", help="default: one for each GPU, or one"
    )
    parser.add_argument(
        "--drain", action="store_true", help="let this machine's workers end after their job"
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    try:
        from harness.arena import joining
    except ModuleNotFoundError as error:
        raise UsageError(
            f"a worker needs {error.name}; `nox -s worker` installs all that it needs"
        ) from None
    joining.run(arguments, terminal)
    return Exit.YES
