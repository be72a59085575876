"""Find the order of kernels whose scores cannot tell it.

Each kernel is graded. Then all are timed alternately with cuBLAS in one run, GPU after GPU, until
their order is known or they differ by less than 0.1 %.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.commands._arguments import add_gpus, chosen_gpus
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.judge.submission import Unreadable, read
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Report, Submission

if TYPE_CHECKING:
    pass

HELP = """\
examples:
  python3 -m harness playoff one.cu other.cu
  python3 -m harness playoff --gpus 0,1 --json result.json one.cu other.cu

The result is shown and not entered anywhere: a board ranks by scores alone.

exit codes:
  0  the order of all is known, or they are equal
  1  the order of some is not known
  2  wrong usage, a kernel that was not accepted, or a fault of the judge
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="two kernels or more")
    add_gpus(parser, default="all")
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write the result as JSON; - for standard output"
    )
    parser.set_defaults(device="cuda", starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.cli.views.grading import verdict_line
    from harness.cli.views.playoff import screen
    from harness.cli.views.progress import TerminalProgress
    from harness.judge.playoff import play_off
    from harness.judge.stages.playoff import settled
    from harness.judge.workers.session import open_session

    to_output = str(arguments.json) == "-"
    if to_output:
        terminal.leave_output_to_programs()
    if len(arguments.files) < 2:
        raise UsageError("a play-off takes two kernels or more")
    submissions = [_read(file) for file in arguments.files]
    gpus = chosen_gpus(arguments)

    def graded(report: Report) -> None:
        terminal.show(verdict_line(report))

    with TerminalProgress(terminal.results, "play-off") as progress:
        playoff = play_off(
            submissions, gpus, lambda gpu: open_session("cuda", gpu), progress, graded
        )
    terminal.show(screen(playoff))
    if to_output:
        terminal.json(playoff.model_dump_json(indent=2))
    elif arguments.json is not None:
        write_whole(arguments.json, playoff.model_dump_json(indent=2) + "\n")
    return Exit.YES if settled(playoff.differences) else Exit.NO


def _read(file: Path) -> Submission:
    submission = read(file)
    if isinstance(submission, Unreadable):
        raise UsageError(f"{file}: {submission.error.message}")
    return submission
