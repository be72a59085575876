"""Two clocks for every launch: a time counts only if they agree.

Events lie in the GPU's memory, where a kernel that knows the place can write. The host's clock is
out of its reach, but reads later, by what the host takes to notice the end of a launch: for every
kernel alike, and unsteadily.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from harness.judge.stages.score import MAX_DROPPED, heads
from harness.protocol.report import Round, Rule, RuleViolation, Stage

MAX_ROUND_MS = 0.1
"""How much later than it usually is for the baseline the host's clock may read in one round. On an
H100 with 16 cores honest launches lie within 0.05 ms of that, and one in thirty is late by more."""

MAX_MEDIAN_MS = 0.04
MAX_MEDIAN = 0.0005
"""The same for the medians of all rounds, which on an H100 differ by up to 0.015 ms; and what the
two clocks may go apart in a long launch."""

CHANCE = 1e-6
"""How seldom a host that is late at random is late for a kernel so much more often than for the
baseline, before the kernel is accused. So seldom, because this is asked again after each round, and
because the host is late for several launches in a row where contexts are created on the GPU: seven
for the kernel and none for the baseline are one in 128. Nothing is gained by less: rounds in which
the clocks differ do not count, and where there are many there is no score."""


def judge_clocks(rounds: Sequence[Round]) -> tuple[Round, ...] | RuleViolation:
    """The rounds, without those in which the clocks differ; the verdict where they differ for the
    kernel as a rule, or often, and the host is not to blame, because it is in time for the
    baseline."""
    usual = statistics.median(_late(r.baseline_host_ms, r.baseline_ms) for r in rounds)
    lateness = [_late(r.kernel_host_ms, r.kernel_ms) - usual for r in rounds]
    late = [each > MAX_ROUND_MS for each in lateness]
    baseline_late = [
        _late(r.baseline_host_ms, r.baseline_ms) - usual > MAX_ROUND_MS for r in rounds
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
                f"rule, and over {MAX_ROUND_MS} ms more in {sum(late)} of {len(rounds)} rounds; "
                "flagged for manual review"
            ),
        )
    return tuple(
        r.model_copy(update={"clocks_differ": True, "dropped": True}) if differs else r
        for r, differs in zip(rounds, map(any, zip(late, baseline_late, strict=True)), strict=True)
    )


def _chance(late: int, baseline_late: int) -> float:
    """The probability that at least `late` of the late launches are the kernel's, where each is as
    likely to be the baseline's: the sign test."""
    n = late + baseline_late
    return math.fsum(heads(k, n) for k in range(late, n + 1))


def _late(host_ms: float | None, ms: float) -> float:
    return (ms if host_ms is None else host_ms) - ms
