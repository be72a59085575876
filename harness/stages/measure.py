"""Measure: the steady state against the baseline, every timed launch verified.

Each rule is a constant with a sentence that says why.
"""

from __future__ import annotations

import math
import secrets
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness.devices.device import (
    Fault,
    MeasureFirstLaunch,
    MeasureHostMemory,
    Prepare,
    RoundTime,
    ScoringDevice,
    TimeRound,
)
from harness.kernel import Kernel
from harness.report import (
    Badge,
    DeviceInfo,
    HostMemory,
    HostMemoryKind,
    JudgeError,
    Measurement,
    Outcome,
    Round,
    Rule,
    RuleViolation,
    Score,
    Stage,
    Steadiness,
    Unscored,
)
from harness.stages.progress import Progress
from harness.stages.verify import fault_outcome, wrong_answer
from problem.cases import RANKED
from problem.reference import compare

MIN_ROUNDS = 30
"""The median of 30 ratios has a 95 % interval free of assumptions; a slow warm-up or a lucky start
cannot end the measurement early."""

QUICK_ROUNDS = 12
MAX_SECONDS = 25.0
QUICK_SECONDS = 3.0

TARGET = 0.0025
"""Stop when the 95 % interval reaches no further than ±0.25 % from the median."""

WARM_UP_SECONDS = 5.0
"""The clock of a GPU that is not steady by then will not become so."""

MOST_DROPPED = 0.2
"""A score out of fewer than 80 % of its rounds would be a score of the cooling."""

THROTTLES = (
    "software thermal slowdown",
    "hardware thermal slowdown",
    "hardware slowdown",
    "power brake",
)
"""Reasons that drop a round. A power cap does not: it is part of the steady state of a kernel that
draws that much, on that GPU."""

CHECK_LIMIT = 1.0
"""Freivalds' residual of a timed launch, over what is allowed."""

TENSOR_PEAK_OVER_FP32 = 16.0
"""Dense FP16 tensor cores over FP32 CUDA cores, at most, on any GPU so far."""


@dataclass(frozen=True, slots=True)
class Measured:
    score: Score | Unscored
    measurement: Measurement


def measure(
    device: ScoringDevice,
    info: DeviceInfo,
    kernel: Kernel,
    *,
    compile_seconds: float,
    host_memory: Sequence[HostMemoryKind],
    quick: bool,
    seed: int,
    seconds: float,
    progress: Progress,
) -> Measured | Outcome:
    """First launch, host memory, then rounds until the score is steady."""
    shape = RANKED.shape
    least, longest = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (MIN_ROUNDS, MAX_SECONDS)
    progress.begin(Stage.MEASURE, None)
    progress.step("first launch")
    first = device.first_launch(
        MeasureFirstLaunch(kernel=kernel, shape=shape, compile_ms=compile_seconds * 1e3)
    )
    if isinstance(first, Fault):
        return fault_outcome(first, shape, seconds, Stage.MEASURE)
    memories: list[HostMemory] = []
    for kind in host_memory:
        progress.step(f"{kind} host memory")
        memory = device.host_memory(MeasureHostMemory(memory=kind, shape=shape))
        if isinstance(memory, Fault):
            return fault_outcome(memory, shape, seconds, Stage.MEASURE)
        memories.append(memory)
    progress.step("warm-up")
    ready = device.load(kernel)
    if isinstance(ready, Fault):
        return fault_outcome(ready, shape, seconds, Stage.MEASURE)
    prepared = device.prepare(Prepare(shape=shape, seconds=WARM_UP_SECONDS))
    if isinstance(prepared, Fault):
        return fault_outcome(prepared, shape, seconds, Stage.MEASURE)
    rounds: list[Round] = []
    audit_after = least // 2 + secrets.randbelow(least // 2)
    audit_error: float | None = None
    started = time.monotonic()
    stopped = Steadiness.TIME
    while time.monotonic() - started < longest or len(rounds) < least:
        progress.step(f"round {len(rounds) + 1}{_so_far(rounds)}")
        # ABBA: a drift of the clock falls on both alike.
        answer = device.time_round(TimeRound(kernel_first=len(rounds) % 4 in (1, 2)))
        if isinstance(answer, Fault):
            return fault_outcome(answer, shape, seconds, Stage.MEASURE)
        cheated = _checked(answer, len(rounds))
        if cheated is not None:
            return cheated
        rounds.append(_round(answer, len(rounds) % 4 in (1, 2)))
        if audit_error is None and len(rounds) >= audit_after and not rounds[-1].kernel_first:
            progress.step("full product of the last round on the CPU")
            audited = _audit(device, seed, seconds)
            if not isinstance(audited, float):
                return audited
            audit_error = audited
        if len(rounds) >= least and audit_error is not None and _is_steady(rounds):
            stopped = Steadiness.STEADY
            break
    assert audit_error is not None
    measurement = Measurement(
        rounds=tuple(rounds),
        warm_up_launches=prepared.launches,
        warm_up_seconds=prepared.seconds,
        stopped_by=stopped,
        audit_error=audit_error,
        first_launch=first,
        host_memory=tuple(memories),
        pinning_pays_after=_pinning_pays_after(memories),
    )
    score = _score(rounds, info)
    if isinstance(score, Score) and score.tflops > _possible_tflops(info, kernel):
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.IMPOSSIBLE_SCORE,
            message=(
                f"{score.tflops:.1f} TFLOP/s is more than the GPU can do with this kernel's "
                f"machine code ({_possible_tflops(info, kernel):.1f}); somebody must look at it"
            ),
        )
    return Measured(score, measurement)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median, from order statistics: no distribution is
    assumed (e.g. Hollander and Wolfe, Nonparametric Statistical Methods, section 3.6)."""
    ordered = sorted(values)
    n = len(ordered)
    inside = 1.0
    below = 0  # ranks given up on either side
    tail = 0.0
    for rank in range(n // 2):
        tail += math.comb(n, rank) / 2**n
        inside = 1 - 2 * tail
        if inside < 0.95:
            break
        below = rank
    return ordered[below], ordered[n - 1 - below]


def _is_steady(rounds: Sequence[Round]) -> bool:
    ratios = _ratios(rounds)
    if len(ratios) < MIN_ROUNDS // 2:
        return False
    median = statistics.median(ratios)
    low, high = median_interval(ratios)
    return max(median - low, high - median) <= TARGET * median


def _ratios(rounds: Sequence[Round]) -> list[float]:
    return [r.baseline_ms / r.kernel_ms for r in rounds if not r.dropped]


def _so_far(rounds: Sequence[Round]) -> str:
    ratios = _ratios(rounds)
    return f", {statistics.median(ratios):.3f} × cuBLAS so far" if ratios else ""


def _round(timed: RoundTime, kernel_first: bool) -> Round:
    return Round(
        kernel_ms=timed.kernel_ms,
        baseline_ms=timed.baseline_ms,
        kernel_first=kernel_first,
        clock_mhz=timed.clock_mhz,
        power_w=timed.power_w,
        throttled=timed.throttled,
        dropped=any(reason in THROTTLES for reason in timed.throttled),
        check=timed.check,
    )


def _checked(timed: RoundTime, number: int) -> Outcome | None:
    if timed.baseline_check > CHECK_LIMIT:
        return JudgeError(
            stage=Stage.MEASURE,
            message=f"cuBLAS itself was wrong in round {number + 1}: "
            f"Freivalds' residual is {timed.baseline_check:.3g} times the limit",
        )
    if timed.check > CHECK_LIMIT:
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.STALE_RESULT,
            message=(
                f"right when verified, wrong when timed: in round {number + 1}, on inputs drawn "
                f"for it alone, Freivalds' residual is {timed.check:.3g} times the limit"
            ),
        )
    return None


def _audit(device: ScoringDevice, seed: int, seconds: float) -> float | Outcome:
    """The round just timed against the full CPU product."""
    fetched = device.fetch_round()
    if isinstance(fetched, Fault):
        return fault_outcome(fetched, RANKED.shape, seconds, Stage.MEASURE)
    A, B, C = fetched
    comparison = compare(A, B, C, exact=False)
    if not comparison.passed:
        return wrong_answer(Stage.MEASURE, RANKED, seed, A, B, C, comparison)
    return comparison.worst


def _score(rounds: Sequence[Round], info: DeviceInfo) -> Score | Unscored:
    kept = [r for r in rounds if not r.dropped]
    dropped = len(rounds) - len(kept)
    if dropped > MOST_DROPPED * len(rounds):
        reasons = sorted({reason for r in rounds if r.dropped for reason in r.throttled})
        return Unscored(
            reason="throttled",
            message=f"the GPU lowered its clock in {dropped} of {len(rounds)} rounds "
            f"({', '.join(reasons)}); cool it and grade again",
        )
    ratios = _ratios(rounds)
    low, high = median_interval(ratios)
    kernel_ms = statistics.median(r.kernel_ms for r in kept)
    tflops = RANKED.shape.flop / kernel_ms / 1e9
    peak = info.fp32_peak_tflops
    return Score(
        ratio=statistics.median(ratios),
        low=low,
        high=high,
        kernel_ms=kernel_ms,
        baseline_ms=statistics.median(r.baseline_ms for r in kept),
        tflops=tflops,
        peak_share=tflops / peak if peak else None,
    )


def _possible_tflops(info: DeviceInfo, kernel: Kernel) -> float:
    """More than this is impossible with the units that the machine code uses.

    One level of Strassen saves an eighth of the products, two levels nearly a quarter; deeper ones
    do not fit a single launch's accuracy, so 4/3 of the peak is allowed.
    """
    peak = info.fp32_peak_tflops or math.inf
    if Badge.TENSOR_CORES in kernel.facts.badges:
        return peak * TENSOR_PEAK_OVER_FP32
    return peak * 4 / 3


def _pinning_pays_after(memories: Sequence[HostMemory]) -> float | None:
    """Round trips after which the dearer allocation of pinned memory is paid for."""
    by_kind = {memory.kind: memory for memory in memories}
    pinned = by_kind.get(HostMemoryKind.PINNED)
    pageable = by_kind.get(HostMemoryKind.PAGEABLE)
    if pinned is None or pageable is None:
        return None

    def once(memory: HostMemory) -> float:
        return memory.allocate_ms + memory.fill_ms

    def each(memory: HostMemory) -> float:
        return memory.to_device_ms + memory.to_host_ms

    saved = each(pageable) - each(pinned)
    if saved <= 0:
        return None
    return max(0.0, (once(pinned) - once(pageable)) / saved)


