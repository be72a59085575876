"""Whether a GPU is fit to judge: what its check-up must show, beside the others of its model.

A GPU is set aside where

* a kernel that is known to be right is not accepted, or has no score;
* cuBLAS beside itself is not within 1 % of 1: something else runs there, or its clock wanders;
* its memory has had errors that could not be corrected, or can mend itself no more;
* its power is limited below what the model has;
* its driver or its cuBLAS is not that of the model's others, where those agree;
* a known kernel's score or cuBLAS's time is farther from the median of the model's others than
  their own spread explains: 4 standard deviations, estimated robustly as 1.4826 times the median
  absolute deviation (Rousseeuw and Croux, Journal of the American Statistical Association 88,
  1993), and never less than 3 %. Two H200 of one host differed by 1.1 %, two H100 by as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from harness.arena.checkup import CUBLAS, CheckUp, Known
from harness.protocol.report import Verdict

ITSELF = 0.01
DEVIATIONS = 4.0
LEAST = 0.03
NORMAL = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""


def fault(checkup: CheckUp, others: Sequence[CheckUp]) -> str | None:
    """Why this GPU is set aside, in a sentence; None where it is fit. others: the last check-up of
    each other GPU of its model that is in service, by the same judge."""
    return next(_faults(checkup, others), None)


def _faults(checkup: CheckUp, others: Sequence[CheckUp]) -> Iterator[str]:
    for known in checkup.known:
        if known.verdict is Verdict.UNSUPPORTED:
            continue
        if known.verdict is not Verdict.ACCEPTED:
            yield f"{known.name}, which is right, was found {known.verdict} here: {known.message}"
        elif known.score is None:
            yield f"{known.name} could not be scored here: {known.message}"
        elif known.name == CUBLAS and abs(known.score.ratio - 1) > ITSELF:
            yield f"cuBLAS beside itself scores {known.score.ratio:.4f} here, and not 1"
    yield from _health(checkup)
    yield from _software(checkup, others)
    for known in checkup.known:
        yield from _spread(known, [_named(other, known.name) for other in others])


def _health(checkup: CheckUp) -> Iterator[str]:
    health = checkup.hot
    if health.uncorrected_errors:
        yield f"its memory has had {health.uncorrected_errors} errors that could not be corrected"
    if health.remapping_failed:
        yield "its memory can mend itself no more: a row that failed could not be remapped"
    limit, usual = health.power_limit_w, health.default_power_limit_w
    if limit is not None and usual is not None and limit < usual:
        yield f"its power is limited to {limit:.0f} W, and its model has {usual:.0f} W"


def _software(checkup: CheckUp, others: Sequence[CheckUp]) -> Iterator[str]:
    for what in ("driver", "cublas"):
        ours = getattr(checkup.device, what)
        theirs = {getattr(other.device, what) for other in others}
        if len(theirs) == 1 and theirs != {ours}:
            name = {"driver": "driver (its CUDA version)", "cublas": "cuBLAS"}[what]
            yield f"its {name} is {ours}, and the others of its model have {theirs.pop()}"


def _spread(known: Known, others: Sequence[Known | None]) -> Iterator[str]:
    if known.score is None:
        return
    scores = [other.score for other in others if other is not None and other.score is not None]
    if known.name == CUBLAS:
        figures = [score.baseline_ms for score in scores]
        yield from _outside("cuBLAS takes {:.3f} ms", known.score.baseline_ms, figures)
    else:
        figures = [score.ratio for score in scores]
        yield from _outside(f"{known.name} scores {{:.4f}}", known.score.ratio, figures)


def _outside(sentence: str, found: float, others: Sequence[float]) -> Iterator[str]:
    if not others:
        return
    middle = median(others)
    deviation = NORMAL * median(abs(other - middle) for other in others)
    allowed = max(DEVIATIONS * deviation, LEAST * middle)
    if abs(found - middle) > allowed:
        yield (
            f"{sentence.format(found)} here, {abs(found / middle - 1):.1%} off the median of the "
            f"model's {len(others)} others; {allowed / middle:.1%} is allowed"
        )


def _named(checkup: CheckUp, name: str) -> Known | None:
    return next((known for known in checkup.known if known.name == name), None)
