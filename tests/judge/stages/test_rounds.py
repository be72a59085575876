"""Timed rounds on fake devices: cheating in any of them is detected."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from harness.judge.grading import Failure
from harness.judge.progress import Silent
from harness.judge.stages import rounds
from harness.judge.stages.outcomes import Ended
from harness.judge.stages.rounds import (
    FULL,
    NEAR_SIZES,
    Extent,
    Measuring,
    Timed,
    check_near_sizes,
    timed_rounds,
)
from harness.protocol import report as protocol
from harness.protocol.request import Fault
from harness.protocol.timing import Checked, LaunchTime, Sustain
from problem.cases import SCORED_INPUTS, UNIFORM, UNSCORED_INPUTS, Shape
from problem.problem import MATRIX_MULTIPLICATION
from tests.judge.stages.fake_timing import RIGHT, FakeTiming
from tests.judge.stages.fakes import launch_time

pytestmark = pytest.mark.usefixtures("no_warm_up")
SHAPE = Shape(64, 32, 48)


@pytest.fixture
def no_unannounced_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make no unannounced checks, so that all launches belong to rounds."""
    monkeypatch.setattr(rounds, "LAUNCHES_PER_CHECK", 1 << 40)


def timing(
    kernel_time: Callable[[int], LaunchTime | Fault] | None = None,
    check: Callable[[str, int], Checked] | None = None,
    baseline_time: Callable[[int], LaunchTime | Fault] | None = None,
    baseline_check: Callable[[str, int], Checked] | None = None,
) -> FakeTiming:
    """Return a kernel of 10 ms and a baseline of 8 ms, of which some answers are replaced."""
    made = FakeTiming()
    made.kernel.answer = kernel_time or made.kernel.answer
    made.kernel.check = check or made.kernel.check
    made.baseline.answer = baseline_time or made.baseline.answer
    made.baseline.check = baseline_check or made.baseline.check
    return made


def ended(**what: Any) -> protocol.Outcome:
    outcome = tried(timing(**what))
    assert not isinstance(outcome, Timed)
    return outcome


def run(workers: FakeTiming, extent: Extent = Extent(40, 1, checks=0)) -> Timed:
    timed = tried(workers, extent)
    assert isinstance(timed, Timed), timed
    return timed


def tried(
    workers: FakeTiming, extent: Extent = Extent(40, 1, checks=0)
) -> Timed | protocol.Outcome:
    measuring = Measuring(workers.workers[0], MATRIX_MULTIPLICATION, SHAPE, 20)
    timed: Timed | protocol.Outcome
    try:
        timed = timed_rounds(measuring, extent, Silent())
    except Ended as ended:
        timed = ended.outcome
    assert not workers.kernel.opened and not workers.baseline.opened
    return timed


def warm_up_launches(workers: FakeTiming, timed: Timed) -> int:
    """Return the launches of the baseline before the first round."""
    return workers.baseline.launches - len(timed.rounds)


def test_an_honest_kernel_is_timed_on_each_scored_kind() -> None:
    workers = timing()
    timed = run(workers)
    assert {round.inputs for round in timed.rounds} == {*SCORED_INPUTS}
    launches = workers.kernel.launches + workers.baseline.launches
    assert len(workers.draws) == launches + 1  # one for the first
    assert len(timed.rounds) == 40 and not any(round.dropped for round in timed.rounds)
    assert sum(round.kernel_first for round in timed.rounds) in (19, 20)
    assert all(round.kernel_host_ms == pytest.approx(10.02) for round in timed.rounds)


def test_unscored_launches_lie_anywhere_and_do_not_predict_the_next() -> None:
    """If they were in the warm-up alone, a kernel could behave well until it is over; and one that
    has seen such a launch could cheat in the next."""
    workers = timing()
    last = 2 * len(run(workers, Extent(200, 1)).rounds)
    unscored = [drawn in UNSCORED_INPUTS for drawn in workers.draws]
    places = [n for n, each in enumerate(unscored[-last:]) if each]
    assert places[0] < 30 and places[-1] > last - 30
    assert workers.kernel.launches > workers.baseline.launches + 5
    follow = [after for before, after in pairwise(unscored) if before]
    assert len(follow) / 3 < follow.count(True) < 2 / 3 * len(follow)


@pytest.mark.usefixtures("no_unannounced_checks")
@pytest.mark.parametrize("checks", [1, 3])
def test_each_unscored_kind_is_checked_a_fixed_number_of_times(checks: int) -> None:
    workers = timing()
    run(workers, Extent(12, 1, checks))
    assert {workers.draws.count(kind) for kind in UNSCORED_INPUTS} == {checks}
    kinds = [round.inputs for round in run(workers).rounds]
    assert workers.draws[-2 * len(kinds) :] == [kind for kind in kinds for _ in range(2)]


def test_the_slowest_kind_is_reported_with_the_score() -> None:
    slow = UNSCORED_INPUTS[0]
    workers = timing()
    workers.kernel.answer = lambda _: launch_time(32 if workers.draws[-1] == slow else 10)
    timed = run(workers, Extent(40, 1, checks=2))
    slowest = timed.by_inputs[0]
    assert (slowest.inputs, slowest.scored, slowest.kernel_ms) == (slow, False, 32)
    assert slowest.ratio == pytest.approx(0.25) and slowest.launches >= 2
    assert {each.inputs for each in timed.by_inputs} == {*SCORED_INPUTS, *UNSCORED_INPUTS}


def test_unannounced_checks_that_take_too_long_end_the_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "MAX_UNANNOUNCED_SECONDS", 0.0)
    outcome = tried(timing(), Extent(12, 1, checks=1))
    assert isinstance(outcome, protocol.TimeLimit) and "unscored inputs" in outcome.message


def test_unannounced_checks_shorten_no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("harness.judge.stages.rounds.time.monotonic", lambda: clock[0])
    workers = timing()

    def slow(_: int) -> LaunchTime:
        clock[0] += 1.0 if workers.draws[-1] in UNSCORED_INPUTS else 0.001
        return launch_time(10)

    workers.kernel.answer = slow
    monkeypatch.setattr(rounds, "MAX_WARM_UP_SECONDS", 0.0)
    assert len(run(workers, Extent(30, 1, checks=2)).rounds) >= 30


def test_kernel_and_baseline_errors_come_from_the_same_inputs() -> None:
    workers = timing()
    timed = run(workers, Extent(12, 1, thorough=True))
    expected = [(inputs, 2e-6, 1e-6) for inputs in MATRIX_MULTIPLICATION.accuracy_inputs]
    found = [(each.inputs, each.kernel.block, each.baseline.block) for each in timed.accuracy]
    assert found == expected
    kernels, baselines = workers.errors_of[::2], workers.errors_of[1::2]
    assert kernels == baselines and [each[1] for each in kernels] == [each[0] for each in expected]


def test_launches_back_to_back_are_checked() -> None:
    workers = timing()
    found = run(workers, Extent(12, 1, thorough=True)).sustained
    times = {"seconds": 1.5, "kernel_ms": 10.0, "baseline_ms": 8.0}
    assert found == protocol.Sustained(**times, kernel_joules=1.0, baseline_joules=0.8)
    asked = workers.kernel.asked
    assert all(x.time_limit > 1.5 + 2 * x.seconds for x in asked if isinstance(x, Sustain))
    workers.kernel.check = lambda *_: Checked(error=2) if type(asked[-1]) is Sustain else RIGHT
    outcome = tried(workers, Extent(12, 1, thorough=True))
    assert isinstance(outcome, protocol.RuleViolation) and "back to back" in outcome.message


@pytest.mark.parametrize("kind", [*SCORED_INPUTS, *UNSCORED_INPUTS])
def test_an_error_on_one_kind_of_inputs_is_found(kind: str) -> None:
    workers = timing(check=lambda drawn, n: Checked(error=2) if drawn == kind and n > 20 else RIGHT)
    outcome = tried(workers, Extent(30, 1, checks=3))
    assert isinstance(outcome, protocol.RuleViolation) and f'kind "{kind}"' in outcome.message
    before = "before round" if kind in UNSCORED_INPUTS else "in round"
    assert before in outcome.message


@pytest.mark.usefixtures("no_unannounced_checks")
@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        *((0, "in the first launch"), (3, "during warm-up"), (6, "in round 1")),
        *((22, "in round 17"), (45, "in round 40")),
    ],
)
def test_a_wrong_launch_is_a_stale_result(wrong: int, where: str) -> None:
    outcome = ended(check=lambda _, launch: RIGHT if launch < wrong else Checked(error=1.01))
    assert outcome.rule is protocol.Rule.STALE_RESULT
    assert f"right when verified, wrong when timed: {where}, on" in outcome.message


@pytest.mark.usefixtures("no_unannounced_checks")
def test_throttled_rounds_are_dropped() -> None:
    def throttled(launch: int) -> LaunchTime:
        if launch % 8:  # a kernel may draw as much power as it is given
            return launch_time(10, throttled=("power cap",))
        return launch_time(99, throttled=("hardware slowdown",))

    timed = run(timing(kernel_time=throttled))
    kinds = {(each.dropped, each.kernel_ms, each.throttled) for each in timed.rounds}
    assert kinds == {(True, 99, ("hardware slowdown",)), (False, 10, ("power cap",))}
    assert not any(round.clocks_differ for round in timed.rounds)
    kept = [round for round in timed.rounds if not round.dropped]
    assert sum(each.launches for each in timed.by_inputs) == len(kept)
    slow = launch_time(8, throttled=("power brake",)).model_copy(update={"clock_mhz": 900})
    both = Measuring.paired((throttled(1), RIGHT), (slow, RIGHT), UNIFORM, kernel_first=True)
    assert (both.throttled, both.clock_mhz) == (("power brake", "power cap"), 900) and both.dropped


@pytest.mark.usefixtures("no_unannounced_checks")
@pytest.mark.parametrize(
    ("found", "kind", "words"),
    [
        ({"changed_inputs": ("A", "B")}, protocol.RuleViolation, "changed A and B in round"),
        ({"wrote_outside": ("after C",)}, protocol.MemoryFault, "after C in round"),
    ],
)
def test_other_memory_that_changes_is_named(
    found: dict[str, Any], kind: type[protocol.Outcome], words: str
) -> None:
    changed = Checked(error=0.3, **found)
    outcome = ended(check=lambda _, launch: changed if launch > 20 else RIGHT)
    assert isinstance(outcome, kind) and words in outcome.message


def test_a_gpu_clock_that_the_host_contradicts_is_not_believed() -> None:
    outcome = ended(kernel_time=lambda _: launch_time(10, host_ms=10.09))
    assert isinstance(outcome, protocol.RuleViolation) and "host's clock" in outcome.message


@pytest.mark.usefixtures("no_unannounced_checks")
@pytest.mark.parametrize(("late", "count"), [(8, 40), (9, 45), (10, 50)])
def test_a_temporarily_late_host_costs_some_more_rounds(late: int, count: int) -> None:
    """Rounds are added until the dropped ones are a fifth of all."""

    def host_ms(launch: int, ms: float) -> float:
        return ms + (4 if 10 <= launch < 10 + late else 0.02)

    workers = timing(
        kernel_time=lambda n: launch_time(10, host_ms(n, 10)),
        baseline_time=lambda n: launch_time(8, host_ms(n, 8)),
    )
    timed = run(workers)
    assert timed.stopped_by is protocol.Steadiness.STEADY
    assert sum(round.dropped for round in timed.rounds) == late
    assert len(timed.rounds) == count


def test_an_interruption_waits_for_no_launch() -> None:
    def interrupt(launch: int) -> LaunchTime:
        workers.interrupted = True
        raise KeyboardInterrupt

    workers = timing(kernel_time=interrupt)
    with pytest.raises(KeyboardInterrupt):
        tried(workers)


def test_a_wrong_baseline_is_the_judges_fault() -> None:
    for first, where in ((0, "its first launch"), (1, "warm-up"), (6, "in round 1")):
        wrong = ended(
            baseline_check=lambda _, n, first=first: Checked(error=2.0) if n >= first else RIGHT
        )
        message = f"cuBLAS itself was wrong ({where}): its error is 2 times the limit"
        assert wrong == protocol.JudgeError(stage=protocol.Stage.MEASURE, message=message)


def test_a_launch_that_does_not_end_is_a_time_limit() -> None:
    fault = Fault(cause="time-limit", message="no end within 25 s")
    outcome = ended(kernel_time=lambda n: fault if n > 8 else launch_time(10))
    message = "the kernel did not end within 20 s at 64×32×48"
    assert outcome == protocol.TimeLimit(
        stage=protocol.Stage.MEASURE, message=message, seconds=20, shape=Shape(64, 32, 48)
    )


class Clock:
    """A clock that each launch advances by a fixed time."""

    def __init__(self, workers: FakeTiming, seconds: float) -> None:
        self.workers, self.seconds = workers, seconds

    def monotonic(self) -> float:
        return self.workers.kernel.launches * self.seconds


@pytest.mark.usefixtures("no_unannounced_checks")
@pytest.mark.parametrize(("seconds", "rounds_then"), [(0.001, 36), (1.0, 25), (3.0, 8), (4.0, 6)])
def test_a_slow_kernel_gets_the_rounds_that_fit(
    seconds: float, rounds_then: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = timing()
    monkeypatch.setattr(rounds, "time", Clock(workers, seconds))
    timed = run(workers, FULL)
    assert timed.audited is not None
    assert len(timed.rounds) in (rounds_then, rounds_then + 1)  # the audit may ask for one more
    checks = len(UNSCORED_INPUTS) + len(MATRIX_MULTIPLICATION.accuracy_inputs)
    assert (workers.kernel.launches - checks) * seconds < 45


@pytest.mark.usefixtures("no_unannounced_checks")
def test_a_kernel_without_time_for_enough_rounds_is_too_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = timing()
    monkeypatch.setattr(rounds, "time", Clock(workers, 9.0))
    outcome = tried(workers, FULL)
    message = "too slow to measure: only 4 rounds ended within 40 s"
    assert outcome == protocol.TimeLimit(stage=protocol.Stage.MEASURE, message=message, seconds=40)
    assert workers.kernel.launches * 9 < 60


def test_a_launch_of_the_second_half_is_kept_for_audit() -> None:
    found = set()
    for _ in range(40):
        workers = timing()
        timed = run(workers, Extent(12, 1, checks=0, thorough=True))
        assert timed.audited is not None
        (launches,) = workers.fetched_after
        accuracy = len(MATRIX_MULTIPLICATION.accuracy_inputs)
        found.add(launches - warm_up_launches(workers, timed) + accuracy)
    assert min(found) >= 7 and len(found) > 3, "the choice is random"


def unsteady(launch: int) -> LaunchTime:
    return launch_time(10 + 2 * (launch % 2))


@pytest.mark.usefixtures("no_unannounced_checks")
def test_an_unsteady_score_is_given_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = timing(kernel_time=unsteady)
    monkeypatch.setattr(rounds, "time", Clock(workers, 1.0))
    monkeypatch.setattr(rounds, "MAX_SECONDS", 5.0 + 29.5)
    timed = run(workers, Extent(30, 40.0))
    assert timed.stopped_by is protocol.Steadiness.TIME
    assert len(timed.rounds) == 41


@pytest.mark.parametrize(("steady", "launches"), [(True, 6), (False, 8)])
def test_warming_up_takes_its_time_and_no_more(
    steady: bool, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clock(launch: int) -> LaunchTime:
        return launch_time(10).model_copy(update={"clock_mhz": 1980 - 500 * (launch % 2)})

    workers = timing() if steady else timing(kernel_time=clock)
    monkeypatch.setattr(rounds, "time", Clock(workers, 1.0))
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 6.0)
    monkeypatch.setattr(rounds, "MAX_WARM_UP_SECONDS", 8.0)
    timed = run(workers, Extent(12, 30.0))
    assert warm_up_launches(workers, timed) == launches


def near(workers: FakeTiming) -> Failure | None:
    return check_near_sizes(workers.workers[0], MATRIX_MULTIPLICATION, 20, Silent())


def test_sizes_near_the_ranked_one_are_checked_on_every_kind() -> None:
    workers = timing()
    assert near(workers) is None
    assert {*workers.draws} == {*SCORED_INPUTS, *UNSCORED_INPUTS}
    assert workers.kernel.closed == workers.baseline.closed == NEAR_SIZES
    wrong = UNSCORED_INPUTS[0]
    failure = near(timing(check=lambda kind, _: Checked(error=2) if kind == wrong else RIGHT))
    assert failure is not None and failure.case.inputs == wrong
