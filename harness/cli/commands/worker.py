"""Let this machine's GPUs grade for an arena on another machine.

Each GPU grades until the command is ended. Ctrl-C returns unfinished submissions to the queue. The
machine speaks HTTPS with the arena and has no access to its database.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._arguments import count
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal

HELP = """\
examples:
  python3 -m harness worker --arena https://a.example.org --key a.key
  python3 -m harness worker --arena https://a.example.org --key a.key --drain
  python3 -m harness worker --arena http://arena:8040 --key a.key --device cpu

Make the key on the organiser's page, or on the arena's machine:
  python3 -m harness arena worker-key --name lab-3 --file lab-3.key
It may also be in the environment variable MATMUL_WORKER_KEY.

The machine needs the same version of the judge as the arena. --drain lets its
workers end after the submissions that they are grading.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arena", required=True, metavar="URL", help="the arena's address")
    parser.add_argument("--key", type=Path, metavar="FILE", help="this machine's worker key")
    parser.add_argument(
        "--device", choices=("auto", "cpu"), default="auto", help="auto: every GPU (default)"
    )
    parser.add_argument(
        "--workers", type=count, metavar="N", help="default: one for each GPU; without a GPU, one"
    )
    parser.add_argument(
        "--drain", action="store_true", help="let this machine's workers end after this grading"
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.arena.workers import command

    command.run(arguments, terminal)
    return Exit.YES
