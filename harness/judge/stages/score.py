"""Turn timed rounds into a score: statistics, and rules that void it.

Each rule is a constant with a sentence that says why.
"""

import math
import statistics
from collections.abc import Sequence

from harness.protocol.report import (
    Badge,
    DeviceInfo,
    DisassembledKernel,
    Round,
    Rule,
    RuleViolation,
    Score,
    Stage,
    Unscored,
)
from problem.cases import Shape

TARGET = 0.0025
"""The score is steady when its 95 % interval reaches no further than ±0.25 % from the median."""

MIN_RATIOS = 6
"""Fewer ratios have no 95 % interval."""

SLOWER = 0.01
"""A kernel is slower on one kind of inputs if its median there is lower by more than that and the
intervals of the two kinds do not meet."""

SLOWER_OF_FEW = 0.1
"""The same for kinds with too few rounds for an interval, as those of a slow kernel."""

MAX_DROPPED = 0.2
"""There is no score if a larger share of the rounds was dropped, for example for throttling."""

CLOCKS_AGREE = 0.01
"""How much higher a round's ratio by time may be than its ratio by cycles. If it is higher, the
clock was lower for the baseline than for the kernel, and the ratio by cycles counts. So a kernel
gains nothing by drawing so much power that the baseline is slow."""

SHORT_MS = 1.0
"""In a shorter launch the clock has no time to fall, and the reading of cycles is too inexact."""

THROTTLES = (
    "software thermal slowdown",
    "hardware thermal slowdown",
    "hardware slowdown",
    "power brake",
)
"""Reasons that drop a round. A power cap does not: it is part of the steady state of a kernel that
draws that much, on that GPU."""

TENSOR_PEAK_OVER_FP32 = 16.0
"""Dense FP16 tensor cores over FP32 CUDA cores, at most, on any GPU so far."""


def score(rounds: Sequence[Round], info: DeviceInfo, shape: Shape) -> Score | Unscored:
    """Return the score of all rounds; if the kernel is slower on one kind of inputs, that of the
    rounds with this kind."""
    if too_many_dropped(rounds):
        return _unscored(rounds)
    slower = slower_on(rounds)
    kept = _scored(rounds)
    values = ratios(kept)
    low, high = median_interval(values)
    kernel_ms = statistics.median(r.kernel_ms for r in kept)
    by_cycles = [each for each in map(ratio_by_cycles, kept) if each is not None]
    tflops = shape.flop / kernel_ms / 1e9
    peak = info.fp32_peak_tflops
    return Score(
        ratio=statistics.median(values),
        low=low,
        high=high,
        kernel_ms=kernel_ms,
        baseline_ms=statistics.median(r.baseline_ms for r in kept),
        tflops=tflops,
        slower_on=slower,
        peak_share=tflops / peak if peak else None,
        ratio_by_cycles=statistics.median(by_cycles) if by_cycles else None,
    )


def too_many_dropped(rounds: Sequence[Round]) -> bool:
    return sum(r.dropped for r in rounds) > MAX_DROPPED * len(rounds)


def slower_on(rounds: Sequence[Round]) -> str | None:
    """Return the kind of inputs on which the kernel is slowest, if it is clearly slower there than
    on its fastest kind."""
    by_kind: dict[str, list[float]] = {}
    for each in rounds:
        if not each.dropped:
            by_kind.setdefault(each.inputs, []).append(ratio(each))
    if not by_kind:
        return None
    slow = min(by_kind, key=lambda kind: statistics.median(by_kind[kind]))
    fast = max(by_kind, key=lambda kind: statistics.median(by_kind[kind]))
    known = min(len(by_kind[kind]) for kind in (slow, fast)) >= MIN_RATIOS
    limit = 1 - (SLOWER if known else SLOWER_OF_FEW)
    apart = median_interval(by_kind[slow])[1] < median_interval(by_kind[fast])[0]
    medians = statistics.median(by_kind[slow]), statistics.median(by_kind[fast])
    return slow if apart and medians[0] < limit * medians[1] else None


def _scored(rounds: Sequence[Round]) -> list[Round]:
    slower = slower_on(rounds)
    return [r for r in rounds if not r.dropped and slower in (None, r.inputs)]


def _unscored(rounds: Sequence[Round]) -> Unscored:
    """Return why there is no score if too many rounds were dropped."""
    reasons = sorted({reason for r in rounds if r.dropped for reason in r.throttled})
    count = f"{sum(r.dropped for r in rounds)} of {len(rounds)} rounds"
    if reasons:
        return Unscored(
            reason="throttled",
            message=f"the GPU lowered its clock in {count} ({', '.join(reasons)}); cool it and "
            "grade again",
        )
    return Unscored(
        reason="clocks",
        message=f"in {count} the host's clock and the GPU's do not agree: end other programs on "
        "this machine and grade again",
    )


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median, from order statistics without assuming a
    distribution (Hollander and Wolfe, Nonparametric Statistical Methods, section 3.6)."""
    ordered = sorted(values)
    n = len(ordered)
    below = 0  # ranks given up on either side
    tail = 0.0
    for rank in range(n // 2):
        tail += heads(rank, n)
        if 1 - 2 * tail < 0.95:
            break
        below = rank
    return ordered[below], ordered[n - 1 - below]


def heads(count: int, throws: int) -> float:
    """Return the probability of this many heads in this many coin tosses. It is computed with
    logarithms, since 2^1024 is no float, and a report from elsewhere may have thousands of
    rounds."""
    ways = math.lgamma(throws + 1) - math.lgamma(count + 1) - math.lgamma(throws - count + 1)
    return math.exp(ways - throws * math.log(2))


def is_steady(rounds: Sequence[Round]) -> bool:
    values = ratios(_scored(rounds))
    if len(values) < MIN_RATIOS:
        return False
    median = statistics.median(values)
    low, high = median_interval(values)
    return max(median - low, high - median) <= TARGET * median


def ratios(rounds: Sequence[Round]) -> list[float]:
    return [ratio(r) for r in rounds if not r.dropped]


def ratio(timed: Round) -> float:
    """Return the baseline's time divided by the kernel's, or the ratio of their cycles if the clock
    was lower for the baseline."""
    by_time, by_cycles = timed.baseline_ms / timed.kernel_ms, ratio_by_cycles(timed)
    if by_cycles is None or timed.kernel_ms < SHORT_MS or timed.baseline_ms < SHORT_MS:
        return by_time
    return by_cycles if by_time > by_cycles * (1 + CLOCKS_AGREE) else by_time


def ratio_by_cycles(timed: Round) -> float | None:
    """Return the baseline's cycles divided by the kernel's, if both are known."""
    if not timed.kernel_cycles or not timed.baseline_cycles:
        return None
    return timed.baseline_cycles / timed.kernel_cycles


def possible_tflops(info: DeviceInfo, kernel: DisassembledKernel) -> float:
    """Return the highest throughput that is possible with the units that the machine code uses.

    One level of Strassen saves an eighth of the products, two levels nearly a quarter. Deeper ones
    do not fit a single launch's accuracy, so 4/3 of the peak is allowed.
    """
    peak = info.fp32_peak_tflops or math.inf
    if Badge.TENSOR_CORES in kernel.badges:
        return peak * TENSOR_PEAK_OVER_FP32
    return peak * 4 / 3


MAX_ROUND_MS = 0.1
MAX_ROUND = 0.01
"""How much later the host's clock may read in one round than it usually does for the baseline. It
is so many milliseconds, or this share of the launch if that is more. On an H100 with 16 cores one
honest launch in thirty is late by more than 0.05 ms. Beside a second grading on the GPU, 20 of 40
launches of a slow kernel were late by more than 0.1 ms, and significantly fewer of the
baseline's."""

MAX_MEDIAN_MS = 0.04
MAX_MEDIAN = TARGET
"""The same for the medians of all rounds: so many milliseconds, and this share of the launch. On an
H100 they differ by up to 0.015 ms, and by 0.15 ms for a slow kernel beside a second grading. Events
that are changed by that share gain no more than the score's uncertainty."""

CHANCE = 1e-6
"""The probability below which chance does not explain that the host is late more often for the
kernel than for the baseline. It is small, because the question is asked after each round. Also, the
host is late for several launches in a row while contexts are created on the GPU. Seven for the
kernel and none for the baseline have a probability of 1/128. A higher value would gain nothing,
since rounds in which the clocks differ do not count."""


def judge_clocks(rounds: Sequence[Round]) -> tuple[Round, ...] | RuleViolation:
    """Compare two clocks for every launch: a time counts only if they agree.

    Events lie in the GPU's memory, where a kernel that knows the address can write. The host's
    clock is out of its reach. It reads later by the time in which the host notices the end of a
    launch, which varies and is alike for all kernels. Return the rounds, without those in which the
    clocks differ. Return the verdict if they usually or often differ for the kernel and not for the
    baseline.
    """
    usual = statistics.median(_late(r.baseline_host_ms, r.baseline_ms) for r in rounds)
    lateness = [_late(r.kernel_host_ms, r.kernel_ms) - usual for r in rounds]
    late = [each > _most(r.kernel_ms) for each, r in zip(lateness, rounds, strict=True)]
    baseline_late = [
        _late(r.baseline_host_ms, r.baseline_ms) - usual > _most(r.baseline_ms) for r in rounds
    ]
    median = statistics.median(lateness)
    ms = statistics.median(r.kernel_ms for r in rounds)
    often = (
        sum(late) > MAX_DROPPED * len(rounds) and _chance(sum(late), sum(baseline_late)) < CHANCE
    )
    unsteady = sum(baseline_late) > MAX_DROPPED * len(rounds)
    if often or (median > MAX_MEDIAN_MS + MAX_MEDIAN * ms and not unsteady):
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.IMPOSSIBLE_SCORE,
            message=(
                f"the host's clock reads {max(median, 0):.3g} ms more than the GPU's events, as a "
                f"rule, and over {_most(ms):.3g} ms more in {sum(late)} of {len(rounds)} rounds; "
                "flagged for manual review"
            ),
        )
    return tuple(
        r.model_copy(update={"clocks_differ": True, "dropped": True}) if differs else r
        for r, differs in zip(rounds, map(any, zip(late, baseline_late, strict=True)), strict=True)
    )


def _chance(late: int, baseline_late: int) -> float:
    """Return the probability that at least `late` of all late launches are the kernel's, if each is
    as likely to be the baseline's. This is the sign test."""
    n = late + baseline_late
    return math.fsum(heads(k, n) for k in range(late, n + 1))


def _most(ms: float) -> float:
    """Return how much later the host's clock may read for one launch that takes this long."""
    return max(MAX_ROUND_MS, MAX_ROUND * ms)


def _late(host_ms: float | None, ms: float) -> float:
    return (ms if host_ms is None else host_ms) - ms
