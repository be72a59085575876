"""Calibration: what the judge makes of cuBLAS itself, on the GPU at hand.

Timed beside itself the baseline must score 1; in FP32 it must pass the rule for errors with room to
spare, with TF32 or FP16 inputs it must fail by far. If not, no score from this machine is worth
anything.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from datetime import UTC, datetime

from pydantic import NonNegativeFloat, NonNegativeInt

from harness import __version__
from harness.devices.available import open_device
from harness.devices.device import Arithmetic, Fault, RunBaseline
from harness.report import DeviceInfo, JudgeError, Round, Score, Stage, Unscored, Value
from harness.stages.progress import Progress
from harness.stages.rounds import FULL, Timed, timed_rounds
from harness.stages.score import score
from harness.workers.gpu_lock import alone_on
from harness.workers.remote import RemoteBench
from problem.cases import RANKED
from problem.reference import compare


class Precision(Value):
    arithmetic: Arithmetic
    worst_block: NonNegativeFloat
    """Of the ranked size; the rule allows 1e-5."""


class Calibration(Value):
    """What was found."""

    judge: str
    created: datetime
    seed: NonNegativeInt
    device: DeviceInfo
    score: Score | Unscored
    rounds: tuple[Round, ...]
    precision: tuple[Precision, ...]


def calibrate(seed: int | None, progress: Progress) -> Calibration | JudgeError:
    """Time and check cuBLAS at the ranked size. Raises UsageError where there is no GPU."""
    seed = secrets.randbits(48) if seed is None else seed
    with ExitStack() as stack:
        device = open_device("cuda")
        stack.callback(device.close)
        progress.begin(Stage.MEASURE, None)
        info = device.info()
        if isinstance(info, Fault):
            return _our_fault(info)
        stack.enter_context(alone_on(info.uuid or info.name, progress))
        bench = RemoteBench(device)
        stack.callback(bench.close)
        timed = timed_rounds(
            bench, FULL, baseline=True, seed=seed, seconds=FULL.seconds, progress=progress
        )
        if not isinstance(timed, Timed):
            message = getattr(timed, "message", "cuBLAS could not be timed")
            return JudgeError(stage=Stage.MEASURE, message=message)
        A, B = RANKED.draw(seed)
        precision = []
        for arithmetic in Arithmetic:
            progress.step(f"worst block in {arithmetic}")
            answer = device.run_baseline(RunBaseline(arithmetic=arithmetic), A, B)
            if isinstance(answer, Fault):
                return _our_fault(answer)
            worst = compare(A, B, answer[1], exact=False).worst
            precision.append(Precision(arithmetic=arithmetic, worst_block=worst))
        return Calibration(
            judge=__version__,
            created=datetime.now(UTC).replace(microsecond=0),
            seed=seed,
            device=info,
            score=score(timed.rounds, info),
            rounds=timed.rounds,
            precision=tuple(precision),
        )


def _our_fault(fault: Fault) -> JudgeError:
    return JudgeError(stage=Stage.MEASURE, message=fault.message, details=fault.details)
