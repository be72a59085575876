"""Find the best constants of a kernel file.

Compile, check and time every variant of a file, as a quick grading does.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._arguments import add_seed
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Accepted

HELP = """\
A constant varies where a comment behind it says so, and the launch line follows
in expressions over the file's constants:
  constexpr int BK = 16;  // tune: 8 16 32
  // tune: solve tile={BM}x{BN} shared_memory={4 * BK * (BM + BN)}

examples:
  python3 -m harness tune --out best.cu my_kernel.cu
  python3 -m harness tune --limit 20 my_kernel.cu      20 variants, at random
  python3 -m harness tune --device cpu my_kernel.cu   verdicts, no times

Ctrl-C ends it with the table so far.

exit codes:
  0    a variant was accepted
  1    none was
  2    wrong usage, or a fault of the judge
  130  interrupted
"""


def arguments(parser: argparse.ArgumentParser) -> None:
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
    add_seed(parser, "draw that sample and those inputs")
    parser.add_argument(
        "--device",
        choices=("cuda", "cpu"),
        default="cuda",
        help="cpu: resources and verdicts without a GPU, but no times",
    )
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.cli.views.tuning import TuningProgress, kept, screen
    from harness.judge.submission import Unreadable, read
    from harness.judge.tune.tunable import find_tunables
    from harness.judge.tune.tune import TuningOptions, tune
    from harness.judge.workers.session import open_session

    to_output = str(arguments.json) == "-"
    if to_output:
        terminal.leave_output_to_programs()
    _check_wishes(arguments)
    options = TuningOptions(limit=arguments.limit, seed=arguments.seed)
    submission = read(arguments.file)
    if isinstance(submission, Unreadable):
        raise UsageError(f"{arguments.file}: {submission.error.message}")
    try:
        find_tunables(submission.source)
    except UsageError as error:
        raise UsageError(f"{arguments.file}: {error}") from None
    with (
        open_session(arguments.device) as session,
        TuningProgress(terminal.results, arguments.file.name) as progress,
    ):
        tuning = tune(submission, session, options, progress)
    terminal.show(screen(tuning))
    try:
        if to_output:
            terminal.json(tuning.model_dump_json(indent=2))
        elif arguments.json is not None:
            write_whole(arguments.json, tuning.model_dump_json(indent=2) + "\n")
        best = kept(tuning)
        if arguments.out is not None and best is not None:
            write_whole(arguments.out, best)
            terminal.show(f"written to {arguments.out}; now grade it")
    except OSError as error:
        raise UsageError(f"the result was not kept: {error}") from None
    if len(tuning.variants) < tuning.planned:
        return Exit.INTERRUPTED
    accepted = any(isinstance(each.outcome, Accepted) for each in tuning.variants)
    return Exit.YES if accepted else Exit.NO


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text)):
        raise argparse.ArgumentTypeError(f"a limit is a whole number from 1, not {text!r}")
    return int(text)


def _check_wishes(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a wish that a tuning could not fulfil in the end."""
    from harness.devices.available import why_no_cuda

    if arguments.out is not None and arguments.device == "cpu":
        raise UsageError("--out keeps the fastest variant, which only a GPU can tell")
    missing = why_no_cuda() if arguments.device == "cuda" else None
    if missing is not None:
        raise UsageError(f"times need a GPU: {missing}; --device cpu shows all else")
