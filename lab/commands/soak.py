"""Kill parts of a real arena at random while many people submit.

The exit code is 0 if every submission that was answered with 202 has exactly one result, and the
correct one. A thousand gradings take the CPU device half an hour.
"""

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal

HELP = """\
example:
  python3 -m lab soak --submissions 1000 --workers 4 --out soak.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--submissions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=1e9, help="nothing is submitted after it")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8931)
    parser.add_argument("--lease", type=float, default=5.0)
    parser.add_argument("--between", type=float, nargs=2, default=(2.0, 6.0), metavar="SECONDS")
    parser.add_argument("--out", type=Path)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from lab.arena_soak import main

    return Exit.NO if main(arguments) else Exit.YES
