"""Measure how long gradings take on this machine's GPU, from start to end.

First quick ones with an empty cache, then quick ones with a filled cache, then full ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal

HELP = """\
example:
  python3 -m lab times times.md
"""

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("page", type=Path)
    parser.add_argument("--file", type=Path, default=SOLUTIONS / "17_split_tail.cu")
    parser.add_argument("--quick", type=int, default=5, help="of each kind")
    parser.add_argument("--full", type=int, default=2)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from lab.times import main

    return Exit.NO if main(arguments) else Exit.YES
