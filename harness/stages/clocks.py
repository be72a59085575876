"""Two clocks for every launch: a round in which they differ does not count.

Events lie in the GPU's memory, where a kernel that knows the place can write. The host's clock is
out of its reach, but reads later, by what the host takes to notice the end of a launch: for every
kernel alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from harness.report import Round, Rule, RuleViolation, Stage
from harness.stages.score import MAX_DROPPED

MAX_DIFFERENCE_MS = 0.03
"""How much later than for the baseline, as a rule, the host's clock may read in one round: beside
each other on an H100 both are late by the same time to within that."""


def judge_clocks(rounds: Sequence[Round]) -> tuple[Round, ...] | RuleViolation:
    """The rounds, without those in which the clocks differ; the verdict where that is so often that
    the host is not to blame, because it is in time for the baseline."""
    usual = statistics.median(_late(r.baseline_host_ms, r.baseline_ms) for r in rounds)

    def differs(host_ms: float | None, ms: float) -> bool:
        return _late(host_ms, ms) - usual > MAX_DIFFERENCE_MS

    kernel = [r for r in rounds if differs(r.kernel_host_ms, r.kernel_ms)]
    baseline = [r for r in rounds if differs(r.baseline_host_ms, r.baseline_ms)]
    if len(kernel) > MAX_DROPPED * len(rounds) and len(kernel) > 2 * len(baseline):
        late = statistics.median(_late(r.kernel_host_ms, r.kernel_ms) for r in kernel) - usual
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.IMPOSSIBLE_SCORE,
            message=(
                f"in {len(kernel)} of {len(rounds)} rounds the host's clock reads {late:.3g} ms "
                "more for the kernel's launch than the GPU's events; flagged for manual review"
            ),
        )
    return tuple(
        r.model_copy(update={"clocks_differ": True, "dropped": True})
        if r in kernel or r in baseline
        else r
        for r in rounds
    )


def _late(host_ms: float | None, ms: float) -> float:
    return (ms if host_ms is None else host_ms) - ms
