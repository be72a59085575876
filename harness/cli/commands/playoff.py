"""Find the order of kernels whose scores are too close to tell.

Each kernel is graded. Then all are timed alternately with cuBLAS in one run,
until their order is known or they differ by less than 0.1 %.

examples:
  python3 -m harness playoff one.cu other.cu
  python3 -m harness playoff --json result.json one.cu other.cu

The result is shown and not entered anywhere: a board ranks by scores alone. It
holds for this GPU; CUDA_VISIBLE_DEVICES=1 chooses another one.

exit codes:
  0  The order of all is known, or they are equal.
  1  The order of some is not known.
  2  Wrong usage, a kernel that was not accepted, or a fault of the judge.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.cli.commands._arguments import add_json, write_json
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.cli.views.grading import verdict_line
from harness.cli.views.progress import TerminalProgress
from harness.judge.playoff import PlayOff, play_off
from harness.judge.submission import read_kernel
from harness.judge.workers import session as workers
from harness.protocol.errors import UsageError
from harness.protocol.report import Report

_ORDERS = {
    "faster": "{first} is faster",
    "slower": "{second} is faster",
    "equal": "equal: they differ by less than 0.1 %",
    "unknown": "not known",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="two kernels or more")
    add_json(parser, "the result")
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    if len(arguments.files) < 2:
        raise UsageError("a play-off takes two kernels or more")
    submissions = [read_kernel(file) for file in arguments.files]

    def graded(report: Report) -> None:
        terminal.show(verdict_line(report))

    with (
        workers.open_session("cuda") as session,
        TerminalProgress(terminal.results, "play-off") as progress,
    ):
        playoff = play_off(submissions, session, progress, graded)
    terminal.show(screen(playoff))
    write_json(arguments, terminal, playoff)
    return Exit.YES if playoff.is_settled else Exit.NO


def screen(playoff: PlayOff) -> RenderableType:
    """Return the differences, and the order that follows."""
    names = [player.name for player in playoff.players]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Kernels", overflow="fold")
    for heading in ("difference", "95 % interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Order")
    for each in playoff.differences:
        first, second = names[each.first], names[each.second]
        table.add_row(
            f"{first} against {second}",
            f"{each.percent:+.2f} %",
            f"{each.low:+.2f} to {each.high:+.2f} %",
            _ORDERS[each.ordered].format(first=first, second=second),
        )
    return Group(
        table,
        Text(f"{playoff.device.name}: {len(playoff.rounds[0])} rounds on this GPU.", "dim"),
        *(
            Text(f"{place}  {name}", "bold")
            for place, name in sorted(zip(playoff.places(), names, strict=True))
        ),
    )
