"""Timed rounds: who cheats in one of them is found out; no GPU is needed to judge what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from harness.progress import Silent
from harness.protocol.request import Fault
from harness.protocol.timing import (
    Attach,
    Checked,
    CheckLaunch,
    Detach,
    Done,
    DrawInputs,
    Fetched,
    FetchLaunch,
    LaunchTime,
    LayOut,
    SharedMatrices,
    TimeLaunch,
    TimingWorkers,
)
from harness.report import JudgeError, Outcome, Rule, RuleViolation, TimeLimit, WrongAnswer
from harness.stages import rounds
from harness.stages.rounds import Extent, Timed, timed_rounds
from problem.cases import Matrix, Shape

SHAPE = Shape(64, 32, 48)
RIGHT = Checked(error=0.3)


def launch_time(ms: float, host_ms: float | None = None) -> LaunchTime:
    host_ms = ms + 0.02 if host_ms is None else host_ms
    return LaunchTime(ms=ms, host_ms=host_ms, clock_mhz=1980, power_w=500, throttled=())


@dataclass
class FakeDevice:
    """A device whose launches take as long as it is told."""

    workers: FakeWorkers
    answer: Callable[[int], LaunchTime | Fault]
    launches: int = 0
    attached: bool = False

    def ask(self, request: Any) -> Any:
        match request:
            case Attach():
                self.attached = True
                return Done()
            case Detach():
                assert not self.workers.interrupted, "a worker at a launch answers nothing else"
                self.attached = False
                return Done()
            case TimeLaunch():
                assert self.attached and request.seconds == 20
                self.launches += 1
                self.workers.last = self
                timed = self.answer(self.launches)
                self.attached = not isinstance(timed, Fault)  # a process that faults is gone
                return timed
        raise AssertionError(request)


@dataclass
class FakeWorkers:
    """Fake devices, and a checker who says of each launch what it is told to say."""

    kernel_time: Callable[[int], LaunchTime | Fault] = lambda _: launch_time(10)
    baseline_time: Callable[[int], LaunchTime | Fault] = lambda _: launch_time(8)
    check: Callable[[bool, int], Checked | Fault] = lambda rescaled, launch: RIGHT
    baseline_check: Checked = RIGHT
    C: Matrix | None = None
    draws: list[bool] = field(default_factory=list)
    last: FakeDevice | None = None
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.kernel = FakeDevice(self, self.kernel_time)
        self.baseline = FakeDevice(self, self.baseline_time)

    def ask(self, request: Any) -> Any:
        """As the checker."""
        match request:
            case LayOut():
                return SharedMatrices(shape=request.shape, handles=("", "", ""))
            case DrawInputs():
                self.draws.append(request.rescaled)
                return Done()
            case CheckLaunch():
                if self.last is self.baseline:
                    return self.baseline_check
                return self.check(self.draws[-1], self.kernel.launches)
            case FetchLaunch():
                assert self.last is self.kernel
                generator = np.random.default_rng(1)
                A = generator.random((SHAPE.M, SHAPE.N), np.float32)
                B = generator.random((SHAPE.N, SHAPE.K), np.float32)
                return Fetched(A=A, B=B, C=A @ B if self.C is None else self.C)
        raise AssertionError(request)


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 0.0)


def run(count: int = 40, **what: Any) -> Timed | Outcome:
    return run_on(FakeWorkers(**what), count)


def run_on(workers: FakeWorkers, count: int = 40) -> Timed | Outcome:
    timed = timed_rounds(
        TimingWorkers(workers.kernel, workers.baseline, workers, workers.kernel),
        Extent(rounds=count, seconds=1),
        baseline=False,
        seed=1,
        seconds=20,
        progress=Silent(),
        shape=SHAPE,
    )
    assert not workers.kernel.attached and not workers.baseline.attached
    return timed


def test_an_honest_kernel_is_timed_and_rescaled() -> None:
    workers = FakeWorkers()
    timed = run_on(workers)
    assert isinstance(timed, Timed) and timed.audit_error is not None
    rescaled = sum(workers.draws)
    in_warm_up = timed.warm_up.launches // 2
    assert rescaled and workers.kernel.launches == in_warm_up + len(timed.rounds) + rescaled
    assert workers.baseline.launches == in_warm_up + len(timed.rounds)
    assert len(workers.draws) == workers.kernel.launches + workers.baseline.launches


def test_warm_up_waits_for_a_steady_clock() -> None:
    def rising(launch: int) -> LaunchTime:
        return launch_time(10).model_copy(update={"clock_mhz": min(1980, 1000 + 100 * launch)})

    timed = run(kernel_time=rising)
    assert isinstance(timed, Timed) and timed.warm_up.launches == 2 * 14


@pytest.mark.parametrize("number", [1, 17, 40])
def test_a_wrong_round_is_a_stale_result(number: int) -> None:
    warm_up = 5

    def check(rescaled: bool, launch: int) -> Checked:
        return RIGHT if launch < warm_up + number else Checked(error=1.01)

    outcome = run(check=check)
    assert isinstance(outcome, RuleViolation) and outcome.rule is Rule.STALE_RESULT
    assert "right when verified, wrong when timed" in outcome.message


def test_a_kernel_that_takes_the_magnitude_of_timed_inputs_for_granted_is_found_out() -> None:
    outcome = run(check=lambda rescaled, _: Checked(error=1e6) if rescaled else RIGHT)
    assert isinstance(outcome, RuleViolation) and "2^±10" in outcome.message


def test_changed_inputs_are_named() -> None:
    changed = Checked(error=0.3, changed_inputs=("A", "B"))
    outcome = run(check=lambda _, launch: changed if launch > 20 else RIGHT)
    assert isinstance(outcome, RuleViolation) and outcome.rule is Rule.INPUTS_CHANGED
    assert "changed A and B" in outcome.message


def test_a_gpu_clock_that_the_host_contradicts_is_not_believed() -> None:
    outcome = run(kernel_time=lambda _: launch_time(10, host_ms=10.2))
    assert isinstance(outcome, RuleViolation) and outcome.rule is Rule.IMPOSSIBLE_SCORE
    assert "host's clock" in outcome.message


def test_events_that_are_changed_in_most_rounds_only_are_not_believed() -> None:
    """A kernel sees by the magnitude of its inputs which launches are rescaled."""
    outcome = run(kernel_time=lambda n: launch_time(10, 14.0 if n % 5 else 10.02))
    assert isinstance(outcome, RuleViolation) and outcome.rule is Rule.IMPOSSIBLE_SCORE


def test_a_host_that_is_late_now_and_then_is_no_proof() -> None:
    assert isinstance(run(kernel_time=lambda n: launch_time(10, 10.02 if n % 3 else 14.0)), Timed)


def test_a_host_that_is_late_for_both_is_no_proof() -> None:
    timed = run(
        kernel_time=lambda _: launch_time(10, host_ms=11),
        baseline_time=lambda _: launch_time(8, host_ms=9),
    )
    assert isinstance(timed, Timed)


def test_a_host_that_is_late_because_the_gpu_is_shared_is_no_proof() -> None:
    timed = run(
        kernel_time=lambda n: launch_time(10, 11 + n % 3),
        baseline_time=lambda n: launch_time(8, 8 + n % 3),
    )
    assert isinstance(timed, Timed)


def test_an_interruption_waits_for_no_launch() -> None:
    def interrupt(launch: int) -> LaunchTime:
        workers.interrupted = True
        raise KeyboardInterrupt

    workers = FakeWorkers(kernel_time=interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_on(workers)


def test_a_wrong_baseline_is_our_fault() -> None:
    assert isinstance(run(baseline_check=Checked(error=2.0)), JudgeError)


def test_a_baseline_that_does_not_end_is_our_fault() -> None:
    fault = Fault(cause="time-limit", message="no end within 25 s")
    assert isinstance(run(baseline_time=lambda _: fault), JudgeError)


def test_the_audit_sees_what_no_check_saw() -> None:
    assert isinstance(run(C=np.zeros((SHAPE.M, SHAPE.K), np.float32)), WrongAnswer)


def test_a_launch_that_does_not_end_is_a_time_limit() -> None:
    fault = Fault(cause="time-limit", message="no end within 25 s")
    outcome = run(kernel_time=lambda n: fault if n > 8 else launch_time(10))
    assert isinstance(outcome, TimeLimit) and outcome.seconds == 20


def test_rounds_that_never_become_enough_are_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "MAX_SECONDS", 0.0)
    outcome = run()
    assert isinstance(outcome, TimeLimit) and "rounds" in outcome.message
