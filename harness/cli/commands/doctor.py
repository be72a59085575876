"""Check each part of the judge on this machine, and say how to repair those that do not work.

examples:
  Check what a grading here would use:
    python3 -m harness doctor
  Check the judge without a GPU:
    python3 -m harness doctor --device cpu

exit codes:
  0  All parts work; without a GPU, all but scores.
  1  A part does not.
  2  The judge could not be started.
"""

from __future__ import annotations

import argparse

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.cli.commands._arguments import add_device
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.judge.doctor import Check, check_parts
from harness.judge.progress import Silent
from harness.judge.workers import session as workers


def arguments(parser: argparse.ArgumentParser) -> None:
    add_device(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    code = Exit.YES
    with workers.open_session(arguments.device) as session, session.exclusive_lock(Silent()):
        for part in check_parts(session):
            terminal.show(line(part))
            code = code if part.works or not part.needed else Exit.NO
    return code


def line(part: Check) -> RenderableType:
    """Return the part's name, whether it works, and what was found."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", width=12, no_wrap=True)
    table.add_column(width=5)
    table.add_column()
    table.add_row(part.name, Text("works" if part.works else "no"), Text(part.message))
    return table
