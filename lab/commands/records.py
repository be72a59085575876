"""Record on a GPU what the tests and the judge find there: tests, submissions, calibration.

What is in the folder already is not done again, so the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal

HELP = """\
example:
  python3 -m lab records h100 --minutes 9
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="of the GPU, in the names of files: h100")
    parser.add_argument("--into", type=Path, default=Path("records"), help="folder (records/)")
    parser.add_argument("--minutes", type=float, default=9.5, help="no part goes on after these")
    parser.add_argument("--only", nargs="+", default=[], help="parts: submissions tests …")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from lab.records import main

    return Exit.NO if main(arguments) else Exit.YES
