"""Measuring with fake workers: the requests, and the result."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.judge.grading import Audit, Failure, Measured
from harness.judge.stages import measure as module
from harness.judge.stages.measure import audit, compare_timed, measure
from harness.judge.stages.rounds import Timed
from harness.judge.stages.score import possible_tflops
from harness.protocol.device import Load
from harness.protocol.report import (
    Badge,
    HostMemoryKind,
    Measurement,
    Outcome,
    Rule,
    RuleViolation,
    RuntimeFault,
    Score,
    Stage,
    StageTime,
    Steadiness,
    TimeLimit,
    Unscored,
    WrongAnswer,
)
from harness.protocol.request import Fault
from harness.protocol.timing import (
    Fetched,
    MeasureHostMemory,
    TimingWorkers,
)
from problem.cases import Case, Shape
from problem.problem import MATRIX_MULTIPLICATION, Problem
from problem.reference import MAX_ERROR, Comparison, compare_repeated
from tests.judge.stages.fake_timing import FIRST_TIMES, FakeTiming, host_memory
from tests.judge.stages.fakes import (
    INFO,
    FakeDevice,
    Watcher,
    disassembled,
    grading,
    kernel,
    on_gpu,
    right,
    timed_round,
)

SMALL = Case(Shape(256, 16, 512))
"""Stands for the ranked size."""

SIZES = (Shape(64, 32, 48), Shape(128, 32, 48))
"""The other sizes that are measured, for information."""

KINDS = (HostMemoryKind.PAGEABLE, HostMemoryKind.PINNED)
STUCK = Fault(cause="time-limit", message="no end")
FETCHED = Fetched(seed=1, output=np.zeros((256, 512), np.float32))


PROBLEM = replace(MATRIX_MULTIPLICATION, ranked=SMALL, other_sizes=SIZES)


class Rounds:
    """Stands for timed_rounds, which has tests of its own."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.kernel_ms = 8.0
        self.answers: dict[Shape, Outcome] = {}

    def __call__(
        self, workers: TimingWorkers, problem: Problem, extent: Any, **options: Any
    ) -> Timed | Outcome:
        assert isinstance(workers, TimingWorkers) and problem is PROBLEM
        self.asked.append({"extent": extent} | options)
        shape = options.get("shape", SMALL.shape)
        if shape in self.answers:
            return self.answers[shape]
        timed = timed_round(self.kernel_ms, 16.0)
        return Timed((timed,) * 12, Steadiness.STEADY, FETCHED)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    found = Rounds()
    monkeypatch.setattr(module, "timed_rounds", found)
    monkeypatch.setattr(module, "check_near_sizes", lambda *_, **how: None)
    return found


def run(timing: FakeTiming, **options: Any) -> Measured | Outcome:
    chosen: dict[str, Any] = {"host_memory": KINDS, "seed": 9, "seconds": 4.0} | options
    made = grading(on_gpu(FakeDevice(), timing=timing.workers[0]), problem=PROBLEM, **chosen)
    made.times = [StageTime(stage=Stage.COMPILE, seconds=0.25)]
    outcome = measure(made)
    assert outcome is not None or made.measured is not None
    return outcome or made.measured  # type: ignore[return-value]


def test_all_that_was_measured_is_reported(rounds: Rounds) -> None:
    found = run(FakeTiming())
    assert isinstance(found, Measured) and isinstance(found.score, Score)
    assert found.score.ratio == 2.0
    assert found.score.tflops == pytest.approx(INFO.fp32_peak_tflops * found.score.peak_share)
    measured = found.measurement
    assert len(measured.rounds) == 12 and measured.stopped_by is Steadiness.STEADY
    assert measured.audit_error is None and measured.first_launch == FIRST_TIMES
    assert found.audit is not None and found.first.result().passed
    assert measured.host_memory == tuple(host_memory(kind) for kind in KINDS)
    assert measured.sizes == () and measured.pinning_pays_after is None


def test_a_process_is_first_asked_for_a_first_launch(rounds: Rounds) -> None:
    timing = FakeTiming()
    found = run(timing)
    first, *others = timing.kernel.asked
    assert others == [
        *(MeasureHostMemory(memory=kind, arguments=first.arguments) for kind in KINDS),
        Load(kernel=kernel()),
    ]
    assert (first.kernel, first.arguments.shape, first.compile_ms) == (kernel(), SMALL.shape, 250)
    assert isinstance(found, Measured)
    assert all(map(np.array_equal, first.parts, Case(Shape(256, 16, 256)).draw(9)))
    blocks = found.first.result().block_errors
    assert blocks.shape == (16, 32) and 0 < blocks.max() < 1e-5


def test_either_of_the_first_two_launches_is_checked(rounds: Rounds) -> None:
    fetched = set()
    for _ in range(24):
        timing = FakeTiming()
        run(timing)
        fetched.add(timing.kernel.asked[0].fetch)
    assert fetched == {1, 2}


def test_other_sizes_have_scores_of_their_own(rounds: Rounds) -> None:
    found = run(FakeTiming(), sizes=True)
    assert isinstance(found, Measured)
    assert [other.shape for other in found.measurement.sizes] == [*SIZES]
    for other in found.measurement.sizes:
        assert isinstance(other.score, Score) and other.score.ratio == 2.0
        assert other.score.tflops == pytest.approx(other.shape.flop / 8e-3 / 1e12)
        assert other.score.peak_share == pytest.approx(other.score.tflops / 67)


def test_a_failed_round_is_the_outcome(rounds: Rounds) -> None:
    late = TimeLimit(stage=Stage.MEASURE, message="too slow", seconds=1)
    rounds.answers = {SIZES[0]: late}
    assert run(FakeTiming(), sizes=True) is late
    rounds.answers = {SMALL.shape: late}
    assert run(FakeTiming()) is late


def test_a_hanging_first_launch_is_a_time_limit(rounds: Rounds) -> None:
    timing = FakeTiming()
    timing.kernel.first = lambda _: STUCK
    found = run(timing)
    assert isinstance(found, TimeLimit) and found.stage is Stage.MEASURE and found.seconds == 4
    assert found.message == "the kernel did not end within 4 s at 256×16×512"
    assert not rounds.asked


def audited(
    monkeypatch: pytest.MonkeyPatch,
    first_off: float = 0.0,
    timed_off: float | None = 0.0,
    timed_scale: float = 1.0,
) -> tuple[list[Any], Outcome | None, Measurement | None]:
    """Audit launches whose last element is off by so much. timed_off: None if no timed launch was
    kept."""
    shape = AUDITED.shape
    rows, columns = Case(Shape(64, shape.N, 64)).draw(9)
    first = np.tile(right(rows, columns), (4, 8))
    first[-1, -1] += first_off
    problem = replace(MATRIX_MULTIPLICATION, ranked=AUDITED)
    timed = None
    if timed_off is not None:
        C = right(*AUDITED.draw(5)) * np.float32(timed_scale)
        C[-1, -1] += timed_off
        timed = Future[Audit]()
        timed.set_result(compare_timed(problem, Fetched(seed=5, output=C)))
    watcher, compared = Watcher(), Future[Comparison]()
    compared.set_result(compare_repeated(rows, columns, first))
    made = grading(on_gpu(FakeDevice()), seed=9, progress=watcher, problem=problem)
    unscored = Unscored(reason="throttled", message="it was hot")
    made.measured = Measured(unscored, Measurement.model_construct(), compared, timed)
    outcome = audit(made)
    return watcher.told, outcome, made.measurement


AUDITED = Case(Shape(256, 64, 512))


@pytest.mark.parametrize("scale", [1.0, 1 + 5e-6])
def test_correct_launches_have_an_error_within_the_limit(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, outcome, measurement = audited(monkeypatch, timed_scale=scale)
    assert outcome is None and measurement is not None
    assert measurement.audit_error is not None and 0 < measurement.audit_error < MAX_ERROR
    assert said == [
        "product of the first launch on the CPU",
        "full product of a timed launch on the CPU",
    ]


def test_a_wrong_first_launch_is_a_stale_result(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, measurement = audited(monkeypatch, first_off=0.02)
    assert isinstance(found, RuleViolation) and measurement is None
    assert (found.stage, found.rule) == (Stage.MEASURE, Rule.STALE_RESULT)
    said, _, limits = found.message.rpartition("is ")
    assert "wrong in the first launches" in said
    assert 10 < float(limits.removesuffix(" times the limit")) < 100


def test_a_wrong_timed_launch_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, _ = audited(monkeypatch, timed_off=0.5)
    assert isinstance(found, WrongAnswer) and found.stage is Stage.MEASURE
    shown = found.counterexample
    assert (shown.case, shown.seed) == (AUDITED, 9)
    assert (shown.elements[0].row, shown.elements[0].column) == (255, 511)


def test_missing_host_memory_is_reported(rounds: Rounds) -> None:
    timing = FakeTiming()
    timing.kernel.memory = lambda kind: Fault(cause="out-of-memory", message=f"no {kind} memory")
    assert run(timing) == RuntimeFault(
        stage=Stage.MEASURE, message="no pageable memory at 256×16×512", at=None
    )
    timing.kernel.memory = lambda _: STUCK
    found = run(timing)
    assert isinstance(found, TimeLimit) and found.seconds == 4


def test_a_kernel_that_cannot_be_loaded_again_is_a_verdict(rounds: Rounds) -> None:
    timing = FakeTiming()
    timing.kernel.ready = STUCK
    found = run(timing)
    assert isinstance(found, TimeLimit) and "loaded" in found.message


def test_a_score_beyond_the_gpu_is_flagged(rounds: Rounds) -> None:
    rounds.kernel_ms = SMALL.shape.flop / 1e9 / 400
    made = grading(on_gpu(FakeDevice()), problem=PROBLEM)
    measured = run(FakeTiming())
    assert isinstance(measured, Measured)
    made.measured = measured
    found = audit(made)
    assert isinstance(found, RuleViolation)
    assert (found.stage, found.rule) == (Stage.MEASURE, Rule.IMPOSSIBLE_SCORE)
    assert found.message.startswith("400.0 TFLOP/s is more") and "(89.3)" in found.message


@pytest.mark.parametrize("alone", [False, True])
def test_an_error_near_the_ranked_size_is_run_again(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    """alone: it is wrong in that process alone, and not when it runs again."""
    violation = RuleViolation(stage=Stage.MEASURE, rule=Rule.STALE_RESULT, message="at 40×16×24")
    wrong = Failure(Case(Shape(40, 16, 24)), violation)
    monkeypatch.setattr(module, "check_near_sizes", lambda *_, **how: wrong)
    device = FakeDevice() if alone else FakeDevice(multiply=lambda A, B: 0 * right(A, B))
    made = grading(
        on_gpu(device, timing=FakeTiming().workers[0]),
        problem=PROBLEM,
        host_memory=(),
    )
    outcome = measure(made)
    if alone:
        assert outcome is violation
    else:
        assert isinstance(outcome, WrongAnswer) and "every element of C is zero" in outcome.message


def test_the_possible_score_depends_on_the_cores() -> None:
    facts = disassembled(kernel())
    tensor = facts.model_copy(update={"badges": (Badge.TENSOR_CORES,)})
    assert possible_tflops(INFO, facts) == pytest.approx(67 * 4 / 3)
    assert possible_tflops(INFO, tensor) == 67 * 16
    unknown = INFO.model_copy(update={"fp32_peak_tflops": None})
    assert possible_tflops(unknown, facts) == possible_tflops(unknown, tensor) == float("inf")


@pytest.mark.parametrize(
    ("pageable", "pinned", "expected"),
    [
        ((1, 2), (5, 1), 12 / 4),  # once: 3 and 15; each: 8 and 4
        ((1, 1.125), (5, 1), 12 / 0.5),
        ((1, 2), (1, 1), 0.0),
        ((9, 2), (1, 1), 0.0),
        ((1, 2), (5, 2), None),
        ((1, 1), (5, 2), None),
    ],
)
def test_pinned_memory_pays_after_some_round_trips(
    rounds: Rounds, pageable: Any, pinned: Any, expected: float | None
) -> None:
    costs = dict(zip(KINDS, (pageable, pinned), strict=True))
    timing = FakeTiming()
    timing.kernel.memory = lambda kind: host_memory(kind, *costs[kind])
    found = run(timing)
    assert isinstance(found, Measured) and found.measurement.pinning_pays_after == expected
