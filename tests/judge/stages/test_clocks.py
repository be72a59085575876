"""The limits within which two clocks agree on the time of a launch."""

from collections.abc import Sequence
from itertools import zip_longest

import pytest

from harness.judge.stages.score import judge_clocks
from harness.protocol.report import Round, Rule, RuleViolation, Stage
from tests.judge.stages.fakes import timed_round

MS = 8.0
"""Of every launch, by the GPU's events: exact in binary, like what the host says of it."""


def judged(
    kernel: list[float], baseline: Sequence[float] = (), ms: float = MS
) -> tuple[Round, ...] | RuleViolation:
    """Judge rounds in which the host's clock reads so many milliseconds later than the events: for
    the baseline in the first ones."""
    return judge_clocks(
        [
            timed_round(ms, ms, kernel_host_ms=ms + late, baseline_host_ms=ms + usual)
            for late, usual in zip_longest(kernel, baseline, fillvalue=0.0)
        ]
    )


FLAGGED = -1


@pytest.mark.parametrize(
    ("kernel", "baseline", "ms", "dropped"),
    [
        # A round in which either launch is late by more than 0.1 ms is dropped.
        ([0.09] + [0.0] * 9, [], MS, 0),
        ([0.11] + [0.0] * 9, [], MS, 1),
        ([-1.0] + [0.0] * 9, [], MS, 0),
        ([0.0] * 10, [0.11], MS, 1),
        ([0.25] * 9, [0.25] * 9, MS, 0),  # the usual lateness is that of the baseline
        # A fifth of the rounds may be late.
        ([0.5] * 21 + [0.0] * 84, [], MS, 21),
        ([0.5] * 22 + [0.0] * 83, [], MS, FLAGGED),
        # A host that is late for both may be the cause, if that is likely.
        ([0.5] * 19 + [0.0] * 41, [], MS, 19),  # 1 in 2^19
        ([0.5] * 20 + [0.0] * 40, [], MS, FLAGGED),  # 1 in 2^20
        ([0.5] * 24 + [0.0] * 36, [0.5], MS, FLAGGED),  # 26 in 2^25
        ([0.5] * 26 + [0.0] * 34, [0.5] * 2, MS, 26),  # 407 in 2^28
        ([0.5] * 28 + [0.0] * 32, [0.5] * 2, MS, FLAGGED),  # 466 in 2^30
        # An unsteady host says nothing of the usual lateness.
        ([0.07] * 10, [0.5] * 2, MS, FLAGGED),
        ([0.07] * 10, [0.5] * 3, MS, 3),
        # A long launch may be late by a hundredth: a second program on the GPU delays the clock.
        ([0.47, 0.0, 0.0] * 22, [], 48.0, 0),
        ([0.49, 0.0, 0.0] * 22, [], 48.0, FLAGGED),
        # All rounds may be late by 0.04 ms and a four-hundredth of the launch.
        ([0.055] * 9, [], MS, 0),
        ([0.065] * 9, [], MS, FLAGGED),
        ([0.285] * 9, [], 100.0, 0),
        ([0.295] * 9, [], 100.0, FLAGGED),
    ],
)
def test_late_rounds_are_dropped_and_too_many_are_flagged(
    kernel: list[float], baseline: list[float], ms: float, dropped: int
) -> None:
    found = judged(kernel, baseline, ms)
    if dropped == FLAGGED:
        assert isinstance(found, RuleViolation)
        return
    assert isinstance(found, tuple), found.message
    assert all(round.clocks_differ == round.dropped for round in found)
    assert [round.dropped for round in found] == [True] * dropped + [False] * (len(found) - dropped)


def test_the_message_names_the_difference_of_the_clocks() -> None:
    often = judged([0.5] * 20 + [-0.25] * 30)
    assert (often.stage, often.rule) == (Stage.MEASURE, Rule.IMPOSSIBLE_SCORE)
    assert often.message == (
        "the host's clock reads 0 ms more than the GPU's events, as a rule, and over 0.1 ms more "
        "in 20 of 50 rounds; flagged for manual review"
    )
    always = judged([0.0625] * 10)
    assert isinstance(always, RuleViolation) and "reads 0.0625 ms more" in always.message
    assert "in 0 of 10 rounds" in always.message
