"""Play-offs among kernels of known speed, on a fake GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from harness.judge import playoff as playing
from harness.judge.playoff import (
    Ended,
    Order,
    PlayOff,
    difference,
    differences,
    play,
    play_off,
)
from harness.judge.progress import Silent
from harness.judge.stages import rounds
from harness.judge.stages.rounds import Extent
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import (
    JudgeError,
    Report,
    Round,
    Rule,
    RuleViolation,
    Submission,
)
from harness.protocol.timing import Checked, TimingWorkers
from problem.cases import SCORED_INPUTS, UNSCORED_INPUTS, Shape
from tests.board.factory import rejected, report
from tests.judge.stages.fake_timing import FakeTiming
from tests.judge.stages.fakes import (
    INFO,
    FakeCompiler,
    FakeDevice,
    launch_time,
    session,
)

SHAPE = Shape(64, 32, 48)
SHORT = Extent(40, 0.2)


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 0.0)


Rounds = tuple[tuple[Round, ...], ...]


def run(timing: FakeTiming, extent: Extent = SHORT) -> Rounds | Ended:
    played = play(timing.workers, seconds=5, progress=Silent(), extent=extent, shape=SHAPE)
    assert not any(each.attached for each in (timing.baseline, *timing.kernels))
    return played


def test_every_round_launches_each_player_in_random_order() -> None:
    timing = FakeTiming([2.0, 2.1, 2.2], noise=0.001)
    played = run(timing)
    assert isinstance(played, tuple) and len(played) == 3
    count = len(played[0])
    assert count >= 40 and all(len(each) == count for each in played)
    processes = {id(each): place for place, each in enumerate((timing.baseline, *timing.kernels))}
    last = [processes[id(each)] for each in timing.launched][-4:]
    assert sorted(last) == [0, 1, 2, 3]
    for place, ms in enumerate((2.0, 2.1, 2.2)):
        shares = sum(each.kernel_first for each in played[place]) / count
        assert 0.2 < shares < 0.8
        assert all(each.kernel_ms == pytest.approx(ms, rel=0.01) for each in played[place])


def test_a_drift_of_the_gpu_is_in_no_difference() -> None:
    timing = FakeTiming(
        [2.0, 2.01], noise=0.0005, drift=lambda launch: 1 + 0.4 * math.sin(launch / 200)
    )
    played = run(timing)
    assert isinstance(played, tuple)
    found = difference(*played)
    assert found is not None
    assert found.value == pytest.approx(math.log(2.01 / 2.0), abs=0.0015)
    assert found.low > 0


def test_a_play_off_runs_until_differences_are_precise() -> None:
    few, many = (
        run(FakeTiming([2.0, 2.1], noise=noise), Extent(40, 600)) for noise in (1e-5, 2e-3)
    )
    assert isinstance(few, tuple) and isinstance(many, tuple)
    assert len(few[0]) == 40 < len(many[0])


@pytest.mark.parametrize("first", [0, 1, 34], ids=["first launch", "warm-up", "rounds"])
@pytest.mark.parametrize("wrong", [-1, 0, 1, 2])
def test_a_failing_launch_ends_the_play_off(wrong: int, first: int) -> None:
    """-1 is the baseline, which all share; the first player is named."""
    timing = FakeTiming([2.0, 2.1, 2.2], noise=0.001)
    process = [timing.baseline, *timing.kernels][wrong + 1]
    process.check = lambda _, launch: Checked(error=3.0 if launch >= first else 0.2)
    ended = run(timing)
    assert isinstance(ended, Ended) and ended.player == max(0, wrong)
    assert isinstance(ended.outcome, JudgeError if wrong < 0 else RuleViolation)


@pytest.mark.parametrize("number", [0, 1])
def test_changed_events_end_the_play_off(number: int) -> None:
    timing = FakeTiming([2.0, 2.1], noise=0.001)
    timing.kernels[number].answer = lambda _: launch_time(2.0, host_ms=2.5)
    ended = run(timing)
    assert isinstance(ended, Ended) and ended.player == number
    assert isinstance(ended.outcome, RuleViolation)
    assert ended.outcome.rule is Rule.IMPOSSIBLE_SCORE


def test_all_launches_of_a_round_have_the_same_inputs() -> None:
    timing = FakeTiming([2.0, 2.1], noise=0.001)
    played = run(timing)
    assert isinstance(played, tuple)
    scored = [kind for kind in timing.draws if kind not in UNSCORED_INPUTS]
    one, other = played
    assert [r.inputs for r in one] == [r.inputs for r in other]
    assert {r.inputs for r in one} == {*SCORED_INPUTS}
    kinds = [r.inputs for r in one]
    assert scored[-3 * len(kinds) :] == [kind for kind in kinds for _ in range(3)]


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept every submission, each as another program."""

    def graded(submission: Submission, *_: Any) -> Report:
        made = report(submission.name, submission.author, 1.0)
        assert made.kernel is not None
        kernel = made.kernel.model_copy(update={"program_sha256": submission.sha256})
        return made.model_copy(update={"kernel": kernel})

    def soon(*arguments: Any, **options: Any) -> Rounds | Ended:
        return play(*arguments, **options, extent=Extent(30, 0.1), shape=SHAPE)

    monkeypatch.setattr(playing, "grade", graded)
    monkeypatch.setattr(playing, "play", soon)


def submissions(*names: str) -> list[Submission]:
    digits = "0123456789abcdef"
    return [
        Submission(name=name, author="ada", sha256=digits[place] * 64, source=name)
        for place, name in enumerate(names)
    ]


def played(times: Sequence[float], *chosen: Submission) -> PlayOff:
    """Play on a GPU on which the kernels take these times."""

    def side_by_side(count: int) -> Sequence[TimingWorkers]:
        assert count == len(times)
        return FakeTiming(times, noise=3e-4).workers

    made = session(FakeCompiler(), FakeDevice(), INFO, side_by_side=side_by_side)
    return play_off(chosen, made, Silent())


def test_the_order_is_known_where_the_difference_is(accepted: None) -> None:
    found = played((2.0, 2.02), *submissions("a", "b"))
    (only,) = found.differences
    assert only.ordered is Order.FASTER and only.low > 0
    assert only.percent == pytest.approx(1.0, abs=0.1)
    assert found.places() == [1, 2] and found.is_settled and found.device == INFO
    assert PlayOff.model_validate_json(found.model_dump_json()) == found
    assert differences(found.rounds) == found.differences


def test_a_rejected_kernel_does_not_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "grade", lambda submission, *_: rejected(submission.name))
    with pytest.raises(UsageError, match="a cannot take part: memory-error: reads 4 bytes"):
        played((), *submissions("a", "b"))


def test_one_program_does_not_play_itself(accepted: None) -> None:
    (one,) = submissions("a")
    with pytest.raises(UsageError, match="again and a are one program"):
        played((), one, one.model_copy(update={"name": "again"}))


def test_a_kernel_that_fails_in_the_play_off_is_named(
    accepted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Ended(1, rejected().outcome)
    monkeypatch.setattr(playing, "play", lambda *_, **__: ended)
    with pytest.raises(JudgeFailure, match="b, which had been accepted: reads 4 bytes"):
        played((2.0, 2.0), *submissions("a", "b"))
