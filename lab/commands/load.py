"""Measure how fast the pages of a real arena are under load.

The arena has 10 000 entries. Locust reads 30 pages a second while 300 pages watch the board or a
submission, and the CPU device grades. Pages that watch the board read it again at each change.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal

HELP = """\
example:
  python3 -m lab load --out load.json

It needs the packages of the dependency group `test`.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=30, help="pages a second")
    parser.add_argument("--watchers", type=int, default=300)
    parser.add_argument("--submissions", type=int, default=60, help="that wait, and are watched")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--port", type=int, default=8933)
    parser.add_argument("--out", type=Path)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from lab.arena_load import main

    return Exit.NO if main(arguments) else Exit.YES
