"""From timed rounds to a score: statistics, and the rules that void it.

Each rule is a constant with a sentence that says why.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from harness.report import Badge, DeviceInfo, KernelFacts, Round, Score, Unscored
from problem.cases import RANKED, Shape

TARGET = 0.0025
"""The score is steady when its 95 % interval reaches no further than ±0.25 % from the median."""

MIN_RATIOS = 12
"""Fewer ratios have no useful interval."""

MAX_DROPPED = 0.2
"""A score out of fewer than 80 % of its rounds would say more of the cooling than of the kernel."""

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


def score(
    rounds: Sequence[Round], info: DeviceInfo, shape: Shape = RANKED.shape
) -> Score | Unscored:
    kept = [r for r in rounds if not r.dropped]
    dropped = len(rounds) - len(kept)
    if dropped > MAX_DROPPED * len(rounds):
        reasons = sorted({reason for r in rounds if r.dropped for reason in r.throttled})
        return Unscored(
            reason="throttled",
            message=f"the GPU lowered its clock in {dropped} of {len(rounds)} rounds "
            f"({', '.join(reasons)}); cool it and grade again",
        )
    values = ratios(rounds)
    low, high = median_interval(values)
    kernel_ms = statistics.median(r.kernel_ms for r in kept)
    tflops = shape.flop / kernel_ms / 1e9
    peak = info.fp32_peak_tflops
    return Score(
        ratio=statistics.median(values),
        low=low,
        high=high,
        kernel_ms=kernel_ms,
        baseline_ms=statistics.median(r.baseline_ms for r in kept),
        tflops=tflops,
        peak_share=tflops / peak if peak else None,
    )


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


def is_steady(rounds: Sequence[Round]) -> bool:
    values = ratios(rounds)
    if len(values) < MIN_RATIOS:
        return False
    median = statistics.median(values)
    low, high = median_interval(values)
    return max(median - low, high - median) <= TARGET * median


def ratios(rounds: Sequence[Round]) -> list[float]:
    return [r.baseline_ms / r.kernel_ms for r in rounds if not r.dropped]


def possible_tflops(info: DeviceInfo, kernel: KernelFacts) -> float:
    """More than this is impossible with the units that the machine code uses.

    One level of Strassen saves an eighth of the products, two levels nearly a quarter; deeper ones
    do not fit a single launch's accuracy, so 4/3 of the peak is allowed.
    """
    peak = info.fp32_peak_tflops or math.inf
    if Badge.TENSOR_CORES in kernel.badges:
        return peak * TENSOR_PEAK_OVER_FP32
    return peak * 4 / 3
