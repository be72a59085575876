"""Check the judge itself: cuBLAS must score 1 against cuBLAS.

It also measures the error of cuBLAS in FP32, TF32 and FP16: only FP32 may pass.
It needs a GPU.

example:
  python3 -m lab calibrate --json calibration.json
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from pydantic import NonNegativeFloat, NonNegativeInt

from harness import __version__
from harness.cli.commands._arguments import add_json, add_seed, write_json
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.cli.views.progress import TerminalProgress
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.stages.outcomes import Ended
from harness.judge.stages.rounds import FULL, Measuring, timed_rounds
from harness.judge.stages.score import score
from harness.judge.workers.session import open_session
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import DeviceInfo, Round, Score, Stage, Unscored, Value
from problem.cases import RANKED
from problem.inputs import Matrix
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import MAX_ERROR, compare


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


ARITHMETICS = ("fp32", "tf32", "fp16 inputs")


class Precision(Value):
    arithmetic: str
    worst_block: NonNegativeFloat
    """The worst block of the ranked size; the rule allows 1e-5."""


class Calibration(Value):
    """cuBLAS timed against itself, and the errors of lower precisions."""

    judge: str
    created: datetime
    seed: NonNegativeInt
    device: DeviceInfo
    score: Score | Unscored
    rounds: tuple[Round, ...]
    precision: tuple[Precision, ...]


def calibrate(session: Session, seed: int | None, progress: Progress) -> Calibration:
    """Time and check cuBLAS at the ranked size.

    Raises UsageError if the GPU is not free, JudgeFailure if cuBLAS could not be timed.
    """
    workers = session.timing
    if workers is None:
        raise UsageError("only a GPU can be calibrated")
    seed = secrets.randbits(48) if seed is None else seed
    with session.exclusive_lock(progress):
        progress.begin(Stage.MEASURE, None)
        measuring = Measuring(workers, MATRIX_MULTIPLICATION, RANKED.shape, FULL.seconds)
        extent = replace(FULL, thorough=False)  # each arithmetic is compared below
        try:
            timed = timed_rounds(measuring, extent, progress, baseline=True)
        except Ended as ended:
            raise JudgeFailure(ended.outcome.message) from None
        A, B = RANKED.draw(seed)
        precision = []
        for arithmetic in ARITHMETICS:
            progress.step(f"worst block in {arithmetic}")
            worst = compare(A, B, cublas_product(A, B, arithmetic)).worst
            precision.append(Precision(arithmetic=arithmetic, worst_block=worst))
    return Calibration(
        judge=__version__,
        created=datetime.now(UTC).replace(microsecond=0),
        seed=seed,
        device=session.info,
        score=score(timed.rounds, session.info, RANKED.shape),
        rounds=timed.rounds,
        precision=tuple(precision),
    )


def cublas_product(A: Matrix, B: Matrix, arithmetic: str) -> Matrix:
    """Return A · B as cuBLAS computes it in one of ARITHMETICS."""
    import cupy

    from problem.gpu import Sgemm

    if arithmetic == "fp16 inputs":  # the products of such numbers are exact in FP32
        A, B = (each.astype(np.float16).astype(np.float32) for each in (A, B))
    C = cupy.empty((A.shape[0], B.shape[1]), np.float32)
    Sgemm("tf32" if arithmetic == "tf32" else "fp32")(cupy.asarray(A), cupy.asarray(B), C)
    cupy.cuda.runtime.deviceSynchronize()
    output: Matrix = C.get()
    return output
