"""The limits within which two clocks agree on the time of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import pytest

from harness.judge.stages.score import judge_clocks
from harness.protocol.report import Round, Rule, RuleViolation, Stage
from tests.judge.stages.fakes import timed_round

MS = 8.0
"""Of every launch, by the GPU's events: exact in binary, like what the host says of it."""


def rounds(kernel: list[float], baseline: Sequence[float] = (), ms: float = MS) -> list[Round]:
    """Return rounds in which the host's clock reads so many milliseconds later than the events: for
    the baseline in the first ones."""
    return [
        timed_round(ms, ms, kernel_host_ms=ms + late, baseline_host_ms=ms + usual)
        for late, usual in zip_longest(kernel, baseline, fillvalue=0.0)
    ]


@pytest.mark.parametrize(
    ("kernel", "baseline", "number"),
    [
        ([0.09] + [0.0] * 9, [], 0),
        ([0.11] + [0.0] * 9, [], 1),
        ([-1.0] + [0.0] * 9, [], 0),
        ([0.0] * 10, [0.11], 1),
        ([0.5] * 21 + [0.0] * 84, [], 21),  # a fifth of the rounds may be late
        ([0.25] * 9, [0.25] * 9, 0),  # the usual lateness is that of the baseline
    ],
)
def test_a_round_late_by_more_than_a_tenth_of_a_millisecond_is_dropped(
    kernel: list[float], baseline: list[float], number: int
) -> None:
    judged = judge_clocks(rounds(kernel, baseline))
    assert isinstance(judged, tuple), judged.message
    assert all(round.clocks_differ == round.dropped for round in judged)
    assert [round.dropped for round in judged] == [True] * number + [False] * (len(judged) - number)


@pytest.mark.parametrize(
    ("kernel", "baseline", "flagged"),
    [
        ([0.5] * 22 + [0.0] * 83, [], True),  # more than a fifth
        # A host that is late for both may be the cause, if that is likely.
        ([0.5] * 19 + [0.0] * 41, [], False),  # 1 in 2^19
        ([0.5] * 20 + [0.0] * 40, [], True),  # 1 in 2^20
        ([0.5] * 24 + [0.0] * 36, [0.5], True),  # 26 in 2^25
        ([0.5] * 26 + [0.0] * 34, [0.5] * 2, False),  # 407 in 2^28
        ([0.5] * 28 + [0.0] * 32, [0.5] * 2, True),  # 466 in 2^30
        # An unsteady host says nothing of the usual lateness.
        ([0.07] * 10, [0.5] * 2, True),
        ([0.07] * 10, [0.5] * 3, False),
    ],
)
def test_too_many_late_rounds_are_flagged(
    kernel: list[float], baseline: list[float], flagged: bool
) -> None:
    assert isinstance(judge_clocks(rounds(kernel, baseline)), RuleViolation) is flagged


@pytest.mark.parametrize(("ms", "most"), [(8.0, 0.1), (48.0, 0.48)])
def test_a_long_launch_may_be_late_by_a_hundredth(ms: float, most: float) -> None:
    """A second program on the GPU delays the host's clock, so such a delay is no violation."""
    judged = judge_clocks(rounds([most - 0.01, 0.0, 0.0] * 22, ms=ms))
    assert isinstance(judged, tuple) and not any(round.dropped for round in judged)
    assert isinstance(judge_clocks(rounds([most + 0.01, 0.0, 0.0] * 22, ms=ms)), RuleViolation)


@pytest.mark.parametrize(
    ("late", "ms", "flagged"),
    [
        (0.055, 8.0, False),  # 0.04 and a four-hundredth of the launch
        (0.065, 8.0, True),
        (0.285, 100.0, False),
        (0.295, 100.0, True),
    ],
)
def test_all_rounds_may_be_late_by_a_little(late: float, ms: float, flagged: bool) -> None:
    judged = judge_clocks(rounds([late] * 9, ms=ms))
    assert isinstance(judged, RuleViolation) is flagged


def test_the_message_names_the_difference_of_the_clocks() -> None:
    often = judge_clocks(rounds([0.5] * 20 + [-0.25] * 30))
    assert isinstance(often, RuleViolation)
    assert (often.stage, often.rule) == (Stage.MEASURE, Rule.IMPOSSIBLE_SCORE)
    assert often.message == (
        "the host's clock reads 0 ms more than the GPU's events, as a rule, and over 0.1 ms more "
        "in 20 of 50 rounds; flagged for manual review"
    )
    always = judge_clocks(rounds([0.0625] * 10))
    assert isinstance(always, RuleViolation) and "reads 0.0625 ms more" in always.message
    assert "in 0 of 10 rounds" in always.message
