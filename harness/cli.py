"""The command line."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from harness import __version__
from harness.files import write_whole
from harness.leaderboard import commands
from harness.report import HostMemoryKind, Report, Submission, Verdict

ACCEPTED, NOT_ACCEPTED, NO_JUDGEMENT = 0, 1, 2
SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"

_GRADE_HELP = """\
examples:
  python3 -m harness grade my_kernel.cu
  python3 -m harness grade --quick my_kernel.cu          while tuning: a sample of the cases
  python3 -m harness grade --json - my_kernel.cu | jq .outcome
  python3 -m harness grade --seed 1234 my_kernel.cu      replay a failure
  python3 -m harness grade --submit --author ada my_kernel.cu

exit codes:
  0  every file was accepted
  1  a file was not accepted
  2  wrong usage, a fault of the judge, or a kernel that this device cannot run
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the interpreter's last flush
        return NO_JUDGEMENT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m harness",
        description="A judge for FP32 matrix multiplication kernels.",
        epilog="python3 -m harness COMMAND --help shows the options of a command",
    )
    parser.add_argument("--version", action="version", version=f"matmul-arena {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    _grade_parser(subparsers)
    _calibrate_parser(subparsers)
    commands.register(subparsers, _regrade)
    return parser


def _grade_parser(subparsers: commands.Subparsers) -> None:
    parser = subparsers.add_parser(
        "grade",
        help="grade kernel files",
        description="Is it right, is it safe, how fast is it relative to cuBLAS, and why?",
        epilog=_GRADE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
        "--sizes", action="store_true", help="also score other sizes, from 1024³ to 8192³"
    )
    parser.add_argument("--quick", action="store_true", help="a sample of cases and rounds")
    parser.add_argument(
        "--device", choices=("auto", "cuda", "cpu"), default="auto", help="where to run"
    )
    parser.add_argument("--seed", type=_seed, metavar="N", help="draw the inputs of that grading")
    parser.add_argument(
        "--host-memory",
        choices=("pinned", "pageable", "both"),
        default="both",
        help="host memory to measure copies with",
    )
    parser.add_argument("--author", help="who wrote it")
    parser.add_argument("--submit", action="store_true", help="enter the result in the leaderboard")
    parser.add_argument("--store", type=Path, metavar="FILE", help="the leaderboard's file")
    parser.set_defaults(run=_grade)


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed < 1 << 63:
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0, not {text!r}")
    return seed


def _grade(options: argparse.Namespace) -> int:
    from harness.grade import Options, grade
    from harness.submission import UsageError
    from harness.views.terminal import TerminalProgress, render, summary, verdict_line

    # With JSON on standard output, people are told on standard error.
    to_stdout = str(options.json) == "-"
    console = Console(stderr=to_stdout, highlight=False)
    files = options.files or sorted(SOLUTIONS.glob("*.cu"))
    host_memory = (
        tuple(HostMemoryKind)
        if options.host_memory == "both"
        else (HostMemoryKind(options.host_memory),)
    )
    how = Options(
        device=options.device,
        quick=options.quick,
        sizes=options.sizes,
        seed=options.seed,
        author=options.author,
        host_memory=host_memory,
    )
    reports: list[Report] = []
    code = ACCEPTED
    for file in files:
        try:
            with TerminalProgress(console, file.name) as progress:
                report = grade(file, how, progress)
        except UsageError as error:
            print(f"grade: {error}", file=sys.stderr)
            code = NO_JUDGEMENT
            continue
        reports.append(report)
        console.print(render(report) if len(files) == 1 else verdict_line(report))
        code = max(code, exit_code(report))
        if not _deliver(report, options, several=len(files) > 1):
            code = NO_JUDGEMENT
    if len(files) > 1 and reports:
        console.print()
        console.print(summary(reports))
    return code


def exit_code(report: Report) -> int:
    if report.verdict is Verdict.ACCEPTED:
        return ACCEPTED
    if report.verdict in (Verdict.JUDGE_ERROR, Verdict.UNSUPPORTED):
        return NO_JUDGEMENT
    return NOT_ACCEPTED


def _deliver(report: Report, options: argparse.Namespace, several: bool) -> bool:
    """Write and enter a report; False, and a sentence, where that was not possible."""
    from harness.leaderboard.store import Store, StoreError

    try:
        if options.json is not None:
            _write_json(report, options.json, several)
        if options.submit:
            with Store(options.store or commands.default_store(), "create") as store:
                id = store.enter(report)
            print(f"entered into {store.path} as {id[:8]}", file=sys.stderr)
    except (OSError, StoreError) as error:
        print(f"grade: the report was not kept: {error}", file=sys.stderr)
        return False
    return True


def _write_json(report: Report, path: Path, several: bool) -> None:
    """Whole or not at all: a full disk leaves no half a report behind."""
    text = report.model_dump_json(indent=2) + "\n"
    if str(path) == "-":
        sys.stdout.write(report.model_dump_json() + "\n" if several else text)
        sys.stdout.flush()
        return
    if path.is_dir() or several:
        path.mkdir(parents=True, exist_ok=True)
        path = path / f"{report.submission.name}.json"
    write_whole(path, text)


def _calibrate_parser(subparsers: commands.Subparsers) -> None:
    parser = subparsers.add_parser(
        "calibrate",
        help="check the judge itself: cuBLAS beside cuBLAS",
        description="Time cuBLAS beside itself, which must score 1, and hold it in FP32, TF32 and "
        "FP16 to the rule for errors. Needs a GPU.",
        epilog="example: python3 -m harness calibrate --json calibration.json",
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write what was found; - for standard output"
    )
    parser.add_argument("--seed", type=_seed, metavar="N", help="draw the inputs of that seed")
    parser.set_defaults(run=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    from harness.calibrate import calibrate
    from harness.report import JudgeError
    from harness.submission import UsageError
    from harness.views.terminal import TerminalProgress, render_calibration

    to_stdout = str(options.json) == "-"
    console = Console(stderr=to_stdout, highlight=False)
    try:
        with TerminalProgress(console, "cuBLAS") as progress:
            found = calibrate(options.seed, progress)
    except UsageError as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return NO_JUDGEMENT
    if isinstance(found, JudgeError):
        print(f"calibrate: {found.message}\n{found.details}", file=sys.stderr)
        return NO_JUDGEMENT
    console.print(render_calibration(found))
    if to_stdout:
        print(found.model_dump_json(indent=2))
    elif options.json is not None:
        write_whole(options.json, found.model_dump_json(indent=2) + "\n")
    return ACCEPTED


def _regrade(submission: Submission) -> Report:
    """Grade the source that a stored report carries."""
    from harness.grade import Options, grade

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{submission.name}.cu")
        path.write_text(submission.source, encoding="utf-8")
        return grade(path, Options(author=submission.author))
