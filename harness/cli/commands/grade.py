"""Grade kernel files, or all of solutions/.

A grading says whether a kernel is right, whether it is safe, how fast it is
relative to cuBLAS, and why.

examples:
  Grade one file:
    python3 -m harness grade my_kernel.cu
  Check a sample of the cases, while you tune:
    python3 -m harness grade --quick my_kernel.cu
  Compile for another GPU than an H100:
    python3 -m harness grade --quick --arch sm_75 my_kernel.cu
  Repeat a failure:
    python3 -m harness grade --quick --seed 12 my_kernel.cu
  Read the report in a script:
    python3 -m harness grade --quick --json - my_kernel.cu | jq .outcome
  Enter the report on the leaderboard:
    python3 -m harness grade --submit --author ada my_kernel.cu

exit codes:
  0  Every file was accepted.
  1  A file was not accepted.
  2  Wrong usage, a fault of the judge, or a kernel that this device cannot run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path

from harness.board.admission import Inadmissible, named
from harness.board.document import signed
from harness.cli.commands._arguments import add_arch, add_device, add_seed, add_store
from harness.cli.commands._command import Exit, reason
from harness.cli.commands._stores import open_store
from harness.cli.views.console import Terminal
from harness.cli.views.grading import screen, summary, verdict_line
from harness.cli.views.progress import TerminalProgress
from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import Unreadable, read
from harness.judge.workers import session as workers
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Report, Submission, Verdict

SOLUTIONS = Path(__file__).resolve().parents[3] / "solutions"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="kernel files (default: solutions/)"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="PATH",
        help="write the report as JSON; - for standard output, a directory for one file each",
    )
    parser.add_argument(
        "--sizes", action="store_true", help="also score other sizes, from 256³ to 8192³"
    )
    parser.add_argument("--quick", action="store_true", help="a sample of cases and rounds")
    add_device(parser)
    add_arch(parser)
    add_seed(parser, "draw the cases and inputs of the grading with this seed")
    parser.add_argument("--author", help="the author's name")
    parser.add_argument("--submit", action="store_true", help="enter the result in the leaderboard")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    files = arguments.files or sorted(SOLUTIONS.glob("*.cu"))
    several = len(files) > 1
    options = GradingOptions(quick=arguments.quick, sizes=arguments.sizes, seed=arguments.seed)
    code, reports, readable = Exit.YES, [], []
    for file, place in zip(files, _places(files, arguments.json), strict=True):
        try:
            submission = read(file, arguments.author)
            if arguments.submit:
                _check_names(submission)
            readable.append((file.name, submission, place))
        except UsageError as error:
            terminal.note(f"grade: {error}")
            code = Exit.NO_ANSWER
    if not readable:
        return code
    with workers.open_session(arguments.device, arch=arguments.arch) as session:
        for name, submission, place in readable:
            with TerminalProgress(terminal.results, name) as progress:
                report = grade(submission, session, options, progress)
            reports.append(report)
            terminal.show(verdict_line(report) if several else screen(report))
            is_lacking = report.verdict is Verdict.UNSUPPORTED and not arguments.files
            # Not every solution is for every GPU; that of a user has to run.
            code = max(code, Exit.YES if is_lacking else exit_code(report))
            try:
                _keep(report, arguments, place, terminal)
            except (OSError, UsageError) as error:
                terminal.note(f"grade: the report was not kept: {reason(error)}")
                code = Exit.NO_ANSWER
        if session.timing is None and arguments.sizes:
            terminal.note("grade: --sizes was ignored: only a GPU is timed")
    if several:
        terminal.show("", summary(reports))
    return code


def _check_names(found: Submission | Unreadable) -> None:
    """Raise UsageError if the result could not be entered because of a name."""
    try:
        named(found if isinstance(found, Submission) else found.submission)
    except Inadmissible as error:
        raise UsageError(f"--submit: {error}") from None


def exit_code(report: Report) -> Exit:
    if report.verdict is Verdict.ACCEPTED:
        return Exit.YES
    if report.verdict in (Verdict.JUDGE_ERROR, Verdict.UNSUPPORTED):
        return Exit.NO_ANSWER
    return Exit.NO


def _places(files: Sequence[Path], json: Path | None) -> list[Path | None]:
    """Return the path of each file's report; of two files of one name, the second gets a 2."""
    if json is None or str(json) == "-":
        return [None] * len(files)
    if len(files) == 1 and not json.is_dir():
        return [json]
    places: list[Path | None] = []
    for file in files:
        names = chain([file.stem], (f"{file.stem}-{number}" for number in count(2)))
        places.append(next(p for name in names if (p := json / f"{name}.json") not in places))
    return places


def _keep(
    report: Report, arguments: argparse.Namespace, place: Path | None, terminal: Terminal
) -> None:
    """Enter and write a report: each whole or not at all. Raises OSError or UsageError."""
    try:
        if arguments.submit:
            with open_store(arguments.store, create=True, key=arguments.key) as store:
                id = store.enter(report)
            terminal.note(f"entered into {store.name} as {id[:8]}")
    finally:
        if arguments.json is not None:
            report = signed(report, arguments.key or arguments.store.key)
            if place is None:
                indent = 2 if len(arguments.files) == 1 else None
                terminal.json(report.model_dump_json(indent=indent))
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, report.model_dump_json(indent=2) + "\n")
