"""The command line."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness import __version__
from harness.files import write_whole
from harness.leaderboard import commands
from harness.report import HostMemoryKind, Report, Submission, Verdict
from harness.views.console import SafeConsole

ACCEPTED, NOT_ACCEPTED, NO_JUDGEMENT = 0, 1, 2
INTERRUPTED = 130
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

_TUNE_HELP = """\
A constant varies where a comment behind it says so; the launch line follows in braces:
  constexpr int BK = 16;  // tune: 8 16 32
  // tune: solve tile={BM}x{BN} shared_memory={4 * STAGES * BK * (BM + BN)}

examples:
  python3 -m harness tune --out best.cu my_kernel.cu
  python3 -m harness tune --limit 20 --seed 1 my_kernel.cu    20 variants, drawn at random
  python3 -m harness tune --device cpu my_kernel.cu           registers and verdicts, no times

Ctrl-C ends it with the table so far. Exit codes: 0 a variant was accepted, 1 none was,
2 wrong usage or a fault of the judge, 130 interrupted.
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code: int = options.run(options)
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the interpreter's last flush
        return NO_JUDGEMENT


def _terminated(*_: object) -> None:
    """Ends like Ctrl-C does: workers and their folders go first."""
    raise SystemExit(128 + signal.SIGTERM)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m harness",
        description="A judge for FP32 matrix multiplication kernels.",
        epilog="python3 -m harness COMMAND --help shows the options of a command",
    )
    parser.add_argument("--version", action="version", version=f"matmul-arena {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    _grade_parser(subparsers)
    _tune_parser(subparsers)
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
    console = SafeConsole(stderr=to_stdout, highlight=False)
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


def _tune_parser(subparsers: commands.Subparsers) -> None:
    parser = subparsers.add_parser(
        "tune",
        help="find the best constants of a kernel file",
        description="Compile, check and time every variant of a file, as a quick grading does.",
        epilog=_TUNE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a kernel file that says what varies"
    )
    parser.add_argument(
        "--out", type=Path, metavar="BEST.cu", help="write the best variant, with its table"
    )
    parser.add_argument(
        "--json", type=Path, metavar="TABLE.json", help="write the table; - for standard output"
    )
    parser.add_argument(
        "--limit", type=_limit, default=100, metavar="N", help="variants to try at most (100)"
    )
    parser.add_argument("--seed", type=_seed, metavar="N", help="draw that sample and those inputs")
    parser.add_argument(
        "--device",
        choices=("cuda", "cpu"),
        default="cuda",
        help="cpu: resources and verdicts without a GPU, but no times",
    )
    parser.set_defaults(run=_tune)


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text)):
        raise argparse.ArgumentTypeError(f"a limit is a whole number from 1, not {text!r}")
    return int(text)


def _tune(options: argparse.Namespace) -> int:
    from harness.report import Accepted, JudgeError
    from harness.submission import UsageError
    from harness.tuning.tune import Options, tune
    from harness.views.tuning import TuningProgress, kept, render

    to_stdout = str(options.json) == "-"
    console = SafeConsole(stderr=to_stdout, highlight=False)
    how = Options(device=options.device, limit=options.limit, seed=options.seed)
    try:
        _check_places(options)
        with TuningProgress(console, options.file.name) as progress:
            tuning = tune(options.file, how, progress)
    except UsageError as error:
        print(f"tune: {error}", file=sys.stderr)
        return NO_JUDGEMENT
    if isinstance(tuning, JudgeError):
        print(f"tune: {tuning.message}\n{tuning.details}", file=sys.stderr)
        return NO_JUDGEMENT
    console.print(render(tuning))
    try:
        if to_stdout:
            print(tuning.model_dump_json(indent=2))
        elif options.json is not None:
            write_whole(options.json, tuning.model_dump_json(indent=2) + "\n")
        best = kept(tuning)
        if options.out is not None and best is not None:
            write_whole(options.out, best)
            console.print(f"written to {options.out}; now grade it")
    except OSError as error:
        print(f"tune: the result was not kept: {error}", file=sys.stderr)
        return NO_JUDGEMENT
    if len(tuning.variants) < tuning.planned:
        return INTERRUPTED
    accepted = any(isinstance(each.outcome, Accepted) for each in tuning.variants)
    return ACCEPTED if accepted else NOT_ACCEPTED


def _check_places(options: argparse.Namespace) -> None:
    """A tuning takes long; say before it what could not be kept after it. Raises UsageError."""
    from harness.submission import UsageError

    if options.out is not None and options.device == "cpu":
        raise UsageError("--out keeps the fastest variant, which only a GPU can tell")
    for path in (options.out, options.json):
        if path is None or str(path) == "-":
            continue
        if path.is_dir():
            raise UsageError(f"{path} is a directory; name a file in it")
        if not path.parent.is_dir():
            raise UsageError(f"there is no directory {path.parent} to write {path.name} to")


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
    console = SafeConsole(stderr=to_stdout, highlight=False)
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
