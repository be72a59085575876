"""Play kernels off whose scores cannot order them.

Each is graded completely, then all are interleaved with cuBLAS in one run on one GPU, in random
order, and again on the next GPU, until their order is known or they differ by less than 0.1 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.commands._arguments import add_gpus, add_store, chosen_gpus
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import open_store
from harness.cli.views.console import Terminal
from harness.judge.submission import Unreadable, read
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Report, Submission

if TYPE_CHECKING:
    from harness.judge.stages.playoff import PlayOff

HELP = """\
examples:
  python3 -m harness playoff one.cu other.cu
  python3 -m harness playoff --gpus 0,1 --json result.json one.cu other.cu
  python3 -m harness playoff --submit --author ada one.cu other.cu third.cu

With --submit the gradings are entered, and the play-off beside them: from then
on it has the last word on the order of these kernels. On one GPU alone it
speaks of that GPU, and counts on a board that has seen no other.

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
    parser.add_argument("--author", help="who wrote them")
    parser.add_argument("--submit", action="store_true", help="let it count on the leaderboard")
    add_store(parser)
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
    if arguments.submit and arguments.store.is_arena:
        raise UsageError(
            f"{arguments.store} is an arena, whose play-offs are called on its organiser's page; "
            "leave out --submit, or name another store"
        )
    submissions = [_read(file, arguments.author) for file in arguments.files]
    gpus = chosen_gpus(arguments)
    reports: list[Report] = []

    def graded(report: Report) -> None:
        reports.append(report)
        terminal.show(verdict_line(report))

    with TerminalProgress(terminal.results, "play-off") as progress:
        playoff = play_off(
            submissions, gpus, lambda gpu: open_session("cuda", gpu), progress, graded
        )
    terminal.show(screen(playoff))
    try:
        if arguments.submit:
            _enter(playoff, reports, arguments, terminal)
    finally:
        if to_output:
            terminal.json(playoff.model_dump_json(indent=2))
        elif arguments.json is not None:
            write_whole(arguments.json, playoff.model_dump_json(indent=2) + "\n")
    return Exit.YES if settled(playoff.differences) else Exit.NO


def _read(file: Path, author: str | None) -> Submission:
    submission = read(file, author)
    if isinstance(submission, Unreadable):
        raise UsageError(f"{file}: {submission.error.message}")
    return submission


def _enter(
    playoff: PlayOff, reports: Sequence[Report], arguments: argparse.Namespace, terminal: Terminal
) -> None:
    from harness.board import playoffs

    path, key = arguments.store.beside(playoffs.SUFFIX), arguments.key or arguments.store.key
    if key is None:
        raise UsageError("a play-off is signed; name the key of this store with --key")
    with open_store(arguments.store, "create", arguments.key) as store:
        for report in reports:
            store.enter(report)
        playoffs.enter(playoff, path, key)
        terminal.note(f"entered into {store.name}, the play-off into {path}")
