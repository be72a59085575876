"""Write the tables of the committed reports into reports/README.md and solutions/README.md."""

import argparse
from pathlib import Path

from harness.board.document import read_folder
from harness.cli.commands._command import Exit
from harness.cli.commands.leaderboard import REPORTS
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError
from lab import readme

HELP = """\
example:
  python3 -m lab readme

The scores are written into the first file, and which kernel is the fastest at
which size into the second one, each between its markers.
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
    reports, solutions = arguments.reports, arguments.reports.parent / "solutions"
    found = read_folder(reports)
    problems = readme.mismatches(found, solutions)
    if problems:
        raise UsageError("the README was not written.\n" + "\n".join(problems))
    scores, choice = reports / "README.md", solutions / "README.md"
    tables = (
        (scores, readme.BOARD, readme.markdown(found, solutions, scores)),
        (choice, readme.CHOICE, readme.fastest(found, solutions, choice)),
    )
    for page, name, table in tables:
        changed = readme.write(page, name, table)
        terminal.note(f"{page} {'was written' if changed else 'is as it should be'}.")
    return Exit.YES
