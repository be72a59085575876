"""Explain what limits a kernel's speed, line by line, and how much a change would save.

It needs no GPU: the CPU device counts the accesses.

The screen shows
  - how many bytes a block moves at least, and how many operations it does;
  - how long each unit of the GPU would be busy at the ranked size;
  - the lines that cost most: sectors and wavefronts per request (and the fewest
    possible), how often a block reads a sector again, and active lanes;
  - at most three findings, the largest gain first.
Without a GPU, the figures are those of an H100, or of --gpu NAME. The kernel is
also checked and sanitized on a few cases. Errors are shown first.

examples:
  Explain one file:
    python3 -m harness explain my_kernel.cu
  Explain it for another GPU, or for another problem size:
    python3 -m harness explain --gpu "RTX 4090" my_kernel.cu
    python3 -m harness explain --shape 512x2048x512 my_kernel.cu
  Compare it with an earlier version:
    python3 -m harness explain --against old.cu my_kernel.cu
  Show the machine instructions of line 6:
    python3 -m harness explain --sass 6 my_kernel.cu
  Read the findings in a script:
    python3 -m harness explain --json - my_kernel.cu | jq .findings

exit codes:
  0  The kernel is explained.
  1  It is explained but wrong or unsafe, or it does not compile.
  2  Wrong usage, or a fault of the judge.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from harness.cli.commands._arguments import (
    add_device,
    add_json,
    add_seed,
    number,
    parse_shape,
    write_json,
)
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.cli.views.explanation import machine_code, refusal, screen
from harness.cli.views.progress import TerminalProgress
from harness.judge.examine import examine
from harness.judge.explain.compare import compare
from harness.judge.explain.examination import Examination
from harness.judge.explain.explain import explain
from harness.judge.explain.gpu import Gpu, gpu_named
from harness.judge.grading import GradingOptions
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.submission import Unreadable, read
from harness.judge.workers import session as workers
from harness.protocol.errors import UsageError
from harness.protocol.report import JudgeError

LARGE_SECONDS = 900.0
"""The limit of counting at a size that the user asked for."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a kernel file")
    add_json(parser, "the explanation")
    add_device(parser)
    parser.add_argument(
        "--shape",
        type=parse_shape,
        metavar="MxNxK",
        help="count accesses at this size (default: some blocks of the ranked size, or a smaller "
        "launch if blocks depend on one another)",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="OLD",
        help="say what changed since this kernel file, and why the new one is faster or slower",
    )
    parser.add_argument(
        "--gpu",
        type=_gpu,
        metavar="NAME",
        help='explain for this GPU, such as "RTX 4090", T4 or A100; it need not be in this machine',
    )
    parser.add_argument(
        "--sass",
        type=number("a line is a whole number", 1, 10**7),
        metavar="LINE",
        help="show the machine instructions of this line of the source",
    )
    add_seed(parser, "draw the cases' inputs from this seed")


def _gpu(text: str) -> Gpu:
    try:
        return gpu_named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _examine_old(
    file: Path | None, session: Session, options: GradingOptions, progress: Progress
) -> Examination | None:
    """Examine the kernel to compare with, if any. Raises UsageError if it cannot be examined."""
    if file is None:
        return None
    examined = examine(read(file), session, options, progress)
    if not isinstance(examined, Examination):
        why = f"{examined.verdict}: {examined.message}"
        raise UsageError(f"--against: {file} cannot be explained: {why}")
    return examined


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    submission = read(arguments.file)
    gpu = arguments.gpu
    options = GradingOptions(quick=True, seed=arguments.seed)
    if arguments.shape is not None:
        options = replace(options, counted_shape=arguments.shape, counting_seconds=LARGE_SECONDS)
    with (
        workers.open_session(arguments.device, arch=gpu.arch if gpu else None) as session,
        TerminalProgress(terminal.results, arguments.file.name) as progress,
    ):
        old = _examine_old(arguments.against, session, options, progress)
        examined = examine(submission, session, options, progress)
    if not isinstance(examined, Examination):
        readable = submission.submission if isinstance(submission, Unreadable) else submission
        terminal.show(refusal(examined, readable))
        return Exit.NO_ANSWER if isinstance(examined, JudgeError) else Exit.NO
    explanation = explain(examined, gpu)
    if old is not None:
        against = compare(explanation, explain(old, gpu))
        explanation = explanation.model_copy(update={"against": against})
    terminal.show(screen(explanation, examined.source))
    if arguments.sass is not None:
        terminal.show(machine_code(examined.kernel.lines, arguments.sass))
    write_json(arguments, terminal, explanation)
    return Exit.YES if examined.outcome is None else Exit.NO
