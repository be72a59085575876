"""The limits within which two clocks agree on the time of a launch."""

from __future__ import annotations

import pytest

from harness.judge.stages.score import judge_clocks
from harness.protocol.report import Round, Rule, RuleViolation, Stage
from tests.judge.stages.fakes import timed_round

MS = 8.0
"""Of every launch, by the GPU's events: exact in binary, like what the host says of it."""


def rounds(kernel: list[float], baseline: list[float] | None = None, ms: float = MS) -> list[Round]:
    """Return rounds in which the host's clock reads so many milliseconds later than the events."""
    return [
        timed_round(ms, ms, kernel_host_ms=ms + late, baseline_host_ms=ms + usual)
        for late, usual in zip(kernel, baseline or [0.0] * len(kernel), strict=True)
    ]


def dropped(judged: tuple[Round, ...] | RuleViolation) -> int:
    assert isinstance(judged, tuple), judged.message
    assert all(r.clocks_differ == r.dropped for r in judged)
    return sum(r.dropped for r in judged)


@pytest.mark.parametrize(("late", "often"), [(0.09, 0), (0.11, 1), (-1.0, 0)])
def test_one_round_may_be_late_by_a_tenth(late: float, often: int) -> None:
    judged = judge_clocks(rounds([late] + [0.0] * 9))
    assert dropped(judged) == often and isinstance(judged, tuple)
    assert judged[0].dropped == bool(often)


def test_rounds_with_a_late_baseline_are_dropped() -> None:
    judged = judge_clocks(rounds([0.0] * 10, [0.0] * 9 + [0.11]))
    assert dropped(judged) == 1 and isinstance(judged, tuple) and judged[9].dropped


@pytest.mark.parametrize(("kernel", "flagged"), [(21, False), (22, True)])
def test_a_fifth_of_the_rounds_may_be_late(kernel: int, flagged: bool) -> None:
    judged = judge_clocks(rounds([0.5] * kernel + [0.0] * (105 - kernel)))
    assert isinstance(judged, RuleViolation) is flagged
    assert flagged or dropped(judged) == kernel


@pytest.mark.parametrize(
    ("kernel", "baseline", "flagged"),
    [
        (19, 0, False),  # 1 in 2^19
        (20, 0, True),  # 1 in 2^20
        (24, 1, True),  # 26 in 2^25
        (26, 2, False),  # 407 in 2^28
        (28, 2, True),  # 466 in 2^30
    ],
)
def test_a_host_late_for_both_is_the_cause(kernel: int, baseline: int, flagged: bool) -> None:
    lateness = [0.5] * kernel + [0.0] * (60 - kernel)
    judged = judge_clocks(rounds(lateness, [0.0] * (60 - baseline) + [0.5] * baseline))
    assert isinstance(judged, RuleViolation) is flagged


@pytest.mark.parametrize(
    ("late", "ms", "flagged"),
    [
        (0.043, 8.0, False),  # 0.04 and a two-thousandth of the launch
        (0.045, 8.0, True),
        (0.085, 100.0, False),
        (0.095, 100.0, True),
    ],
)
def test_all_rounds_may_be_late_by_a_little(late: float, ms: float, flagged: bool) -> None:
    judged = judge_clocks(rounds([late] * 9, ms=ms))
    assert isinstance(judged, RuleViolation) is flagged


@pytest.mark.parametrize(("baseline", "flagged"), [(2, True), (3, False)])
def test_an_unsteady_host_says_nothing_of_the_usual_lateness(baseline: int, flagged: bool) -> None:
    judged = judge_clocks(rounds([0.06] * 10, [0.5] * baseline + [0.0] * (10 - baseline)))
    assert isinstance(judged, RuleViolation) is flagged


def test_the_usual_lateness_is_that_of_the_baseline() -> None:
    assert dropped(judge_clocks(rounds([0.25] * 9, [0.25] * 9))) == 0


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
