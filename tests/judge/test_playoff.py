"""Play-offs among kernels of known speed, on a fake GPU."""

import dataclasses
import math
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands import playoff as command
from harness.cli.main import main
from harness.judge import playoff
from harness.judge import playoff as playing
from harness.judge.progress import Silent
from harness.judge.stages.rounds import Extent
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import JudgeError, Report, Round, Rule, RuleViolation, Submission
from harness.protocol.timing import Checked, TimingWorkers
from problem.cases import SCALED_GROUPS, SCORED_INPUTS, UNIFORM, UNSCORED_INPUTS
from tests.board.factory import rejected, report
from tests.judge.stages.fake_timing import FakeTiming
from tests.judge.stages.fakes import INFO, FakeDevice, launch_time, on_cpu, timed_round
from tests.transposition import TRANSPOSITION

pytestmark = pytest.mark.usefixtures("no_warm_up")
SHORT = Extent(40, 0.2)


Rounds = tuple[tuple[Round, ...], ...]
"""Of each player."""


def run(timing: FakeTiming, extent: Extent = SHORT) -> Rounds:
    try:
        return playoff.play(timing.workers, seconds=5, progress=Silent(), extent=extent)
    finally:
        assert not any(each.opened for each in (timing.baseline, *timing.kernels))


def ended(timing: FakeTiming) -> playoff.PlayerEnded:
    with pytest.raises(playoff.PlayerEnded) as found:
        run(timing)
    return found.value


def test_every_round_launches_each_player_in_random_order() -> None:
    timing = FakeTiming([2.0, 2.1, 2.2], noise=0.001)
    played = run(timing)
    count = len(played[0])
    assert count >= 40 and [len(each) for each in played] == [count] * 3
    processes = {id(each): place for place, each in enumerate((timing.baseline, *timing.kernels))}
    last = [processes[id(each)] for each in timing.launched][-4:]
    assert sorted(last) == [0, 1, 2, 3]
    before = [last.index(place) < last.index(0) for place in (1, 2, 3)]
    assert [each[-1].kernel_first for each in played] == before
    for place, ms in enumerate((2.0, 2.1, 2.2)):
        shares = sum(each.kernel_first for each in played[place]) / count
        assert 0.2 < shares < 0.8
        assert all(each.kernel_ms == pytest.approx(ms, rel=0.01) for each in played[place])


def test_a_drift_of_the_gpu_is_in_no_difference() -> None:
    timing = FakeTiming(
        [2.0, 2.01], noise=0.0005, drift=lambda launch: 1 + 0.4 * math.sin(launch / 200)
    )
    found = playoff.difference(*run(timing))
    assert found is not None and found.low > 0
    assert found.value == pytest.approx(math.log(2.01 / 2.0), abs=0.0015)


def test_a_play_off_runs_until_differences_are_precise() -> None:
    few, many = (
        run(FakeTiming([2.0, 2.1], noise=noise), Extent(40, 600)) for noise in (1e-5, 2e-3)
    )
    assert len(few[0]) == 40 < len(many[0])


@pytest.mark.parametrize("first", [0, 1, 34], ids=["first launch", "warm-up", "rounds"])
@pytest.mark.parametrize("wrong", [-1, 0, 2])
def test_a_failing_launch_ends_the_play_off(wrong: int, first: int) -> None:
    """-1 is the baseline, which all share; the first player is named."""
    timing = FakeTiming([2.0, 2.1, 2.2], noise=0.001)
    process = [timing.baseline, *timing.kernels][wrong + 1]
    process.check = lambda _, launch: Checked(error=3.0 if launch >= first else 0.2)
    found = ended(timing)
    assert found.player == max(0, wrong)
    assert isinstance(found.outcome, JudgeError if wrong < 0 else RuleViolation)


@pytest.mark.parametrize("number", [0, 1])
def test_changed_events_end_the_play_off(number: int) -> None:
    timing = FakeTiming([2.0, 2.1], noise=0.001)
    timing.kernels[number].answer = lambda _: launch_time(2.0, host_ms=2.5)
    found = ended(timing)
    assert found.player == number and isinstance(found.outcome, RuleViolation)
    assert found.outcome.rule is Rule.IMPOSSIBLE_SCORE


def test_all_launches_of_a_round_have_the_same_inputs() -> None:
    timing = FakeTiming([2.0, 2.1], noise=0.001)
    one, other = run(timing)
    scored = [kind for kind in timing.draws if kind not in UNSCORED_INPUTS]
    kinds = [r.inputs for r in one]
    assert kinds == [r.inputs for r in other] and {*kinds} == {*SCORED_INPUTS}
    assert scored[-3 * len(kinds) :] == [kind for kind in kinds for _ in range(3)]


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept every submission, each as another program."""

    def graded(submission: Submission, *_: Any) -> Report:
        made = report(submission.name, submission.author, 1.0)
        kernel = made.kernel.model_copy(update={"program_sha256": submission.sha256})
        return made.model_copy(update={"kernel": kernel})

    monkeypatch.setattr(playing, "grade", graded)


def submissions(*names: str) -> list[Submission]:
    return [
        Submission(name=name, author="ada", sha256=f"{place}" * 64, source=name)
        for place, name in enumerate(names)
    ]


def played(timing: FakeTiming, *chosen: Submission, **more: Any) -> playoff.PlayOff:
    def side_by_side(count: int) -> Sequence[TimingWorkers]:
        assert count == len(timing.kernels)
        return timing.workers

    session = on_cpu(FakeDevice(), side_by_side=side_by_side)
    found = playoff.play_off(chosen, session, Silent(), **more)
    assert session.events == ["exclusive", "end of exclusive"]
    return found


def test_the_order_is_known_where_the_difference_is(accepted: None) -> None:
    found = played(FakeTiming([2.0, 2.02], noise=3e-4), *submissions("a", "b"))
    (only,) = found.differences
    assert only.ordered is playoff.Order.FASTER and only.low > 0
    assert only.percent == pytest.approx(1.0, abs=0.1)
    assert found.places() == [1, 2] and found.is_settled and found.device == INFO
    assert playoff.PlayOff.model_validate_json(found.model_dump_json()) == found
    assert playoff.differences(found.rounds) == found.differences


def test_an_unknown_order_is_exit_code_1(
    accepted: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "a.cu"
    file.write_text("a kernel")
    known = played(FakeTiming([2.0, 2.02], noise=3e-4), *submissions("a", "b"))
    (only,) = known.differences
    only = only.model_copy(update={"ordered": playoff.Order.UNKNOWN})
    monkeypatch.setattr(command.workers, "open_session", nullcontext)
    for found, code in ((known, 0), (known.model_copy(update={"differences": (only,)}), 1)):
        monkeypatch.setattr(command, "play_off", lambda *_, found=found: found)
        assert main(["playoff", str(file), str(file)]) == code


def test_kernels_of_another_problem_can_play(accepted: None) -> None:
    scored = TRANSPOSITION.scored_inputs[:1]
    problem = dataclasses.replace(TRANSPOSITION, scored_inputs=scored)
    timing = FakeTiming([2.0, 2.02], noise=3e-4)
    found = played(timing, *submissions("a", "b"), problem=problem)
    assert found.cases == TRANSPOSITION.version
    assert {each.inputs for each in found.rounds[0]} == {*scored}


@pytest.mark.parametrize(
    ("graded", "why"),
    [(rejected("a"), "memory-error: reads 4 bytes"), (report("a", "ada", None), "accepted: ")],
)
def test_a_kernel_without_a_score_does_not_play(
    graded: Report, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "grade", lambda *_: graded)
    with pytest.raises(UsageError, match=f"a cannot take part: {why}"):
        played(FakeTiming(), *submissions("a", "b"))


def test_a_kernel_that_fails_or_plays_itself_is_named(accepted: None) -> None:
    one, other = submissions("a", "b")
    with pytest.raises(UsageError, match="again and a are one program"):
        played(FakeTiming(), one, other, one.model_copy(update={"name": "again"}))
    timing = FakeTiming([2.0, 2.0])
    timing.kernels[1].check = lambda *_: Checked(error=3.0)
    with pytest.raises(JudgeFailure, match="b, which had been accepted: right when verified, wro"):
        played(timing, *submissions("a", "b"))


def test_a_round_that_is_dropped_for_one_counts_for_neither() -> None:
    late = timed_round(9.0, dropped=True)
    one = [timed_round(2.0)] * 7 + [late]
    other = [late] + [timed_round(2.02)] * 7
    found = playoff.difference(one, other)
    assert found is not None and found.value == pytest.approx(math.log(1.01))
    assert playoff.difference(one[1:], other[1:]) is not None  # six are enough
    assert playoff.difference(one[2:], other[2:]) is None  # five are not


def by_kind(uniform: float, rescaled: float) -> list[Round]:
    return [
        timed_round(ms * (1 + n / 1e5), inputs=kind)
        for n in range(10)
        for ms, kind in ((uniform, UNIFORM), (rescaled, SCALED_GROUPS))
    ]


def test_kernels_are_compared_on_the_kind_where_both_are_slower() -> None:
    for one, other in (((2.0, 2.4), (2.2, 2.3)), ((2.4, 2.0), (2.3, 2.2))):
        found = playoff.difference(by_kind(*one), by_kind(*other))
        assert found is not None and found.value == pytest.approx(math.log(2.3 / 2.4), abs=1e-3)


def test_kernels_slower_on_different_kinds_are_compared_by_score() -> None:
    found = playoff.difference(by_kind(2.0, 2.4), by_kind(2.3, 2.0))
    assert found is not None and found.low < found.value < found.high
    assert found.value == pytest.approx(math.log(2.3 / 2.4), abs=1e-3)
    slowed = by_kind(2.0, 2.4)
    slowed[1:6:2] = [timed_round(2.6, inputs=SCALED_GROUPS)] * 3
    found = playoff.difference(slowed, by_kind(2.3, 2.0))
    assert found is not None and found.high - found.value < 0.01 < found.value - found.low


def test_the_time_of_a_play_off_grows_with_its_players() -> None:
    rounds = [(timed_round(2.0 + n % 2), timed_round(2.5)) for n in range(50)]
    assert [playoff._is_enough(rounds, seconds, Extent(40, 30)) for seconds in (40, 70)] == [0, 1]


@pytest.mark.parametrize(
    ("percent", "spread", "ordered"),
    [
        (1.0, 0.0, playoff.Order.FASTER),
        (1.0, 0.9, playoff.Order.FASTER),
        (-1.0, 0.9, playoff.Order.SLOWER),
        (1.0, 1.5, playoff.Order.UNKNOWN),
        (-1.0, 1.5, playoff.Order.UNKNOWN),
        (0.08, 0.0, playoff.Order.EQUAL),
        (-0.08, 0.0, playoff.Order.EQUAL),
        (0.12, 0.0, playoff.Order.FASTER),
        (-0.12, 0.0, playoff.Order.SLOWER),
        (0.08, 0.03, playoff.Order.FASTER),
        (0.0, 0.2, playoff.Order.UNKNOWN),
    ],
)
def test_an_order_is_known_where_the_interval_says_it(
    percent: float, spread: float, ordered: playoff.Order
) -> None:
    ratios = [1 + (percent + spread * step) / 100 for step in (-1, -0.5, -0.2, 0, 0, 0.2, 0.5, 1)]
    (found,) = playoff.differences(
        [[timed_round(2.0)] * 8, [timed_round(2.0 * each) for each in ratios]]
    )
    assert found.ordered is ordered
    places = playoff.PlayOff.model_construct(players=("a", "b"), differences=(found,)).places()
    assert places == {"faster": [1, 2], "slower": [2, 1]}.get(ordered, [1, 1])
    assert found.percent == pytest.approx(percent, abs=0.01)
    assert found.low == pytest.approx(percent - spread, abs=0.02)
    assert found.high == pytest.approx(percent + spread, abs=0.02)
