"""Timed rounds: who cheats in one of them is found out; no GPU is needed to judge what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from harness.devices.device import Fault, Prepare, Prepared, RoundTime, ScoringDevice, TimeRound
from harness.report import JudgeError, Outcome, Rule, RuleViolation, TimeLimit, WrongAnswer
from harness.stages import rounds
from harness.stages.progress import Silent
from harness.stages.rounds import Extent, Timed, timed_rounds
from problem.cases import Matrix, Shape

GOOD = RoundTime(
    kernel_ms=10,
    baseline_ms=8,
    clock_mhz=1980,
    power_w=500,
    throttled=(),
    check=0.3,
    baseline_check=0.2,
    kernel_host_ms=10.05,
)
SHAPE = Shape(64, 32, 48)


class Machine:
    """Says of every round what it is told to say."""

    def __init__(self, answer: Callable[[TimeRound, int], RoundTime | Fault]) -> None:
        self.answer = answer
        self.asked: list[TimeRound] = []
        self.C: Matrix | None = None

    def prepare(self, request: Prepare) -> Prepared:
        return Prepared(launches=10, seconds=1, clock_mhz=1980)

    def time_round(self, request: TimeRound) -> RoundTime | Fault:
        self.asked.append(request)
        return self.answer(request, len(self.asked))

    def fetch_round(self) -> tuple[Matrix, Matrix, Matrix]:
        generator = np.random.default_rng(1)
        A = generator.random((SHAPE.M, SHAPE.N), np.float32)
        B = generator.random((SHAPE.N, SHAPE.K), np.float32)
        return A, B, A @ B if self.C is None else self.C


def run(machine: Machine, count: int = 40) -> Timed | Outcome:
    return timed_rounds(
        cast(ScoringDevice, machine),
        Extent(rounds=count, seconds=1),
        baseline=False,
        seed=1,
        seconds=20,
        progress=Silent(),
        shape=SHAPE,
    )


def test_an_honest_kernel_is_timed_and_surprised() -> None:
    machine = Machine(lambda request, _: GOOD)
    timed = run(machine)
    assert isinstance(timed, Timed) and timed.audit_error is not None
    surprises = [request for request in machine.asked if request.surprise]
    assert surprises and len(timed.rounds) == len(machine.asked) - len(surprises)
    assert all(request.seconds == 20 for request in machine.asked)


@pytest.mark.parametrize("number", [1, 17, 40])
def test_a_wrong_round_is_a_stale_result(number: int) -> None:
    outcome = run(
        Machine(lambda _, n: GOOD if n < number else GOOD.model_copy(update={"check": 1.01}))
    )
    assert isinstance(outcome, RuleViolation) and outcome.rule is Rule.STALE_RESULT
    assert "right when verified, wrong when timed" in outcome.message


def test_a_kernel_that_takes_the_magnitude_of_timed_inputs_for_granted_is_found_out() -> None:
    wrong = GOOD.model_copy(update={"check": 1e6})
    outcome = run(Machine(lambda request, _: wrong if request.surprise else GOOD))
    assert isinstance(outcome, RuleViolation) and "2^±10" in outcome.message


def test_changed_inputs_are_named() -> None:
    changed = GOOD.model_copy(update={"changed_inputs": ("A", "B")})
    outcome = run(Machine(lambda _, n: changed if n > 20 else GOOD))
    assert isinstance(outcome, RuleViolation) and outcome.rule is Rule.INPUTS_CHANGED
    assert "changed A and B" in outcome.message


def test_a_gpu_clock_that_the_host_contradicts_is_not_believed() -> None:
    slower = GOOD.model_copy(update={"kernel_host_ms": 14.0})
    outcome = run(Machine(lambda request, _: slower if request.surprise else GOOD))
    assert isinstance(outcome, RuleViolation) and outcome.rule is Rule.IMPOSSIBLE_SCORE
    assert "host's clock" in outcome.message


def test_one_late_reading_of_the_hosts_clock_is_no_proof() -> None:
    late = [14.0, 10.02]

    def answer(request: TimeRound, number: int) -> RoundTime:
        host_ms = late[number % 2] if request.surprise else 0.0
        return GOOD.model_copy(update={"kernel_host_ms": host_ms})

    timed = [run(Machine(answer), 60) for _ in range(3)]
    assert any(isinstance(result, Timed) for result in timed)


def test_a_wrong_baseline_is_our_fault() -> None:
    wrong = GOOD.model_copy(update={"baseline_check": 2.0})
    assert isinstance(run(Machine(lambda *_: wrong)), JudgeError)


def test_the_audit_sees_what_no_check_saw() -> None:
    machine = Machine(lambda *_: GOOD)
    machine.C = np.zeros((SHAPE.M, SHAPE.K), np.float32)
    assert isinstance(run(machine), WrongAnswer)


def test_a_round_that_does_not_end_is_a_time_limit() -> None:
    fault = Fault(cause="time-limit", message="no end within 20 s")
    outcome = run(Machine(lambda _, n: fault if n > 3 else GOOD))
    assert isinstance(outcome, TimeLimit) and outcome.seconds == 20


def test_rounds_that_never_become_enough_are_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "MOST_SECONDS", 0.0)
    outcome = run(Machine(lambda *_: GOOD))
    assert isinstance(outcome, TimeLimit) and "rounds" in outcome.message
