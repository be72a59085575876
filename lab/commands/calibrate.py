"""Check the judge itself: cuBLAS must score 1 against cuBLAS.

It also measures the error of cuBLAS in FP32, TF32 and FP16: only FP32 may pass. It needs a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from harness.cli.commands._arguments import add_json, add_seed, write_json
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.cli.views.progress import TerminalProgress
from harness.judge.workers.session import open_session
from harness.protocol.report import Score
from lab.calibration import Calibration, calibrate
from problem.reference import MAX_ERROR

HELP = """\
example:
  python3 -m lab calibrate --json calibration.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser, "what was found")
    add_seed(parser, "draw the same inputs as the run with this seed")
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    with open_session("cuda") as session, TerminalProgress(terminal.results, "cuBLAS") as progress:
        found = calibrate(session, arguments.seed, progress)
    for line in lines(found):
        terminal.show(line)
    write_json(arguments, terminal, found)
    return Exit.YES


def lines(found: Calibration) -> Iterator[str]:
    """Say what the score and the errors are."""
    score = found.score
    if isinstance(score, Score):
        yield f"cuBLAS compared with itself: {score.ratio:.4f}, should be 1"
        yield f"95 % interval: {score.low:.4f} to {score.high:.4f}"
        yield f"{found.device.name}: {score.kernel_ms:.3f} ms, {score.tflops:.1f} TFLOP/s"
    else:
        yield f"cuBLAS compared with itself: {score.message}"
    for precision in found.precision:
        times = precision.worst_block / MAX_ERROR
        verdict = "accepted" if times <= 1 else "rejected"
        yield f"{precision.arithmetic}: worst block {times:.2g} times the limit, {verdict}"
