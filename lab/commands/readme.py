"""Write the table of the committed reports into reports/README.md."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.commands.leaderboard import REPORTS
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError

HELP = """\
example:
  python3 -m lab readme

The table is written between the file's board markers.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reports",
        type=Path,
        default=REPORTS,
        metavar="DIR",
        help="the folder of reports, DIR/GPU/KERNEL.json, and of the README.md",
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.board.document import read_folder
    from lab import readme

    reports, solutions = arguments.reports, arguments.reports.parent / "solutions"
    found = read_folder(reports)
    problems = readme.mismatches(found, solutions)
    if problems:
        raise UsageError("the README was not written.\n" + "\n".join(problems))
    page = reports / "README.md"
    changed = readme.write(page, readme.markdown(found, solutions, page))
    terminal.note(f"{page} {'was written' if changed else 'is as it should be'}.")
    return Exit.YES
