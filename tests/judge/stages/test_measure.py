"""Measuring with fake workers: the requests, the result, and the verdicts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.judge.grading import Measured
from harness.judge.stages.measure import audit, measure
from harness.judge.stages.score import possible_tflops
from harness.protocol import report as protocol
from harness.protocol.device import Load
from harness.protocol.request import Fault
from harness.protocol.timing import (
    Checked,
    FirstLaunches,
    MeasureFirstLaunch,
    MeasureHostMemory,
    TimeLaunch,
)
from problem.cases import Case, Shape
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import MAX_ERROR
from tests.judge.stages import fake_timing
from tests.judge.stages.fakes import (
    INFO,
    FakeDevice,
    Watcher,
    disassembled,
    grading,
    kernel,
    launch_time,
    on_gpu,
    outcome_of,
    right,
)

pytestmark = pytest.mark.usefixtures("no_warm_up")

SMALL = Case(Shape(256, 64, 512))
"""Stands for the ranked size."""

SIZES = (Shape(64, 32, 48), Shape(128, 32, 48))
"""The other sizes that are measured, for information."""

KINDS = (protocol.HostMemoryKind.PINNED, protocol.HostMemoryKind.PAGEABLE)
STUCK = Fault(cause="time-limit", message="no end")
PROBLEM = replace(MATRIX_MULTIPLICATION, ranked=SMALL, other_sizes=SIZES)


def timing(ms: float = 8.0) -> fake_timing.FakeTiming:
    return fake_timing.FakeTiming([ms], baseline_ms=2 * ms)


class Run:
    """Measures and audits a kernel."""

    def __init__(
        self, workers: fake_timing.FakeTiming, device: FakeDevice = FakeDevice(), **options: Any
    ) -> None:
        chosen: dict[str, Any] = {"seed": 9, "seconds": 4.0} | options
        session, self.watcher = on_gpu(device, timing=workers.workers[0]), Watcher()
        made = grading(session, problem=PROBLEM, progress=self.watcher, **chosen)
        stages = protocol.Stage.COMPILE, protocol.Stage.VERIFY
        made.times = [protocol.StageTime(stage=stage, seconds=0.25) for stage in stages]
        self.outcome = outcome_of(measure, made) or outcome_of(audit, made)
        self.grading = made

    @property
    def measured(self) -> Measured:
        assert self.outcome is None and self.grading.measured is not None, self.outcome
        return self.grading.measured


def test_all_that_was_measured_is_reported() -> None:
    workers = timing()
    made = Run(workers)
    score, measured = made.measured.score, made.grading.measurement
    assert isinstance(score, protocol.Score) and score.ratio == 2.0 and measured is not None
    assert len(measured.rounds) >= 36 and measured.stopped_by is protocol.Steadiness.STEADY
    assert measured.audit_error is not None and 0 < measured.audit_error < MAX_ERROR
    assert measured.first_launch == fake_timing.FIRST_TIMES and measured.sizes == ()
    assert measured.host_memory == tuple(fake_timing.host_memory(kind) for kind in KINDS)
    assert made.watcher.told[-2:] == [
        "product of the first launch on the CPU",
        "full product of a timed launch on the CPU",
    ]
    first, *others = workers.kernel.asked
    assert others[:3] == [
        *(MeasureHostMemory(memory=kind, arguments=first.arguments) for kind in KINDS),
        Load(kernel=kernel()),
    ], "the process has not used the GPU before its first launch"
    assert first.time_limit == 2 * first.seconds + 5, "it makes two launches"
    assert (first.kernel, first.arguments.shape, first.compile_ms) == (kernel(), SMALL.shape, 250)
    assert all(map(np.array_equal, first.parts, Case(Shape(256, 64, 256)).draw(9)))


def test_no_launch_of_the_ranked_size_may_take_longer_than_5_seconds() -> None:
    for given, allowed in ((4.0, 4.0), (20.0, 5.0)):
        workers = timing()
        Run(workers, seconds=given, quick=True)
        kinds = MeasureFirstLaunch | TimeLaunch
        launches = [each for each in workers.kernel.asked if isinstance(each, kinds)]
        assert {each.seconds for each in launches} == {allowed} and len(launches) > 12


def test_either_of_the_first_two_launches_is_checked() -> None:
    fetched = set()
    for _ in range(24):
        workers = timing()
        workers.kernel.ready = STUCK  # which ends it
        Run(workers)
        fetched.add(workers.kernel.asked[0].fetch)
    assert fetched == {1, 2}


def test_other_sizes_have_scores_of_their_own() -> None:
    measured = Run(timing(), sizes=True, quick=True).measured.measurement
    assert [other.shape for other in measured.sizes] == [*SIZES]
    for other in measured.sizes:
        assert isinstance(other.score, protocol.Score) and other.score.ratio == 2.0
        assert other.score.tflops == pytest.approx(other.shape.flop / 8e-3 / 1e12)
        assert other.score.peak_share == pytest.approx(other.score.tflops / 67)
    workers = timing()
    workers.kernel.answer = lambda _: STUCK if workers.shape == SIZES[0] else launch_time(8)
    outcome = Run(workers, sizes=True, quick=True).outcome
    assert isinstance(outcome, protocol.TimeLimit) and outcome.message == f"{AT} {SIZES[0]}"


AT = "the kernel did not end within 4 s at"


@pytest.mark.parametrize(
    ("broken", "kind", "message"),
    [
        ({"first": lambda _: STUCK}, protocol.TimeLimit, f"{AT} 256×64×512"),
        ({"memory": lambda _: STUCK}, protocol.TimeLimit, f"{AT} 256×64×512"),
        (
            {"memory": lambda kind: Fault(cause="out-of-memory", message=f"no {kind} memory")},
            protocol.RuntimeFault,
            "no pinned memory at 256×64×512",
        ),
        ({"ready": STUCK}, protocol.TimeLimit, "the kernel could not be loaded within 60 s"),
        ({"answer": lambda _: STUCK}, protocol.TimeLimit, f"{AT} 256×64×512"),
    ],
    ids=["first launch", "host memory", "no host memory", "load", "timed launch"],
)
def test_a_part_that_fails_is_the_outcome(broken: Any, kind: Any, message: str) -> None:
    workers = timing()
    for name, answer in broken.items():
        setattr(workers.kernel, name, answer)
    outcome = Run(workers).outcome
    assert isinstance(outcome, kind) and outcome.message == message


def test_a_wrong_first_launch_is_a_stale_result() -> None:
    def wrong(request: MeasureFirstLaunch) -> FirstLaunches:
        found = fake_timing.first_launches(request)
        found.output[-1, -1] += 0.02
        return found

    workers = timing()
    workers.kernel.first = wrong
    made = Run(workers)
    found = made.outcome
    assert isinstance(found, protocol.RuleViolation) and made.grading.measurement is None
    assert (found.stage, found.rule) == (protocol.Stage.MEASURE, protocol.Rule.STALE_RESULT)
    said, _, limits = found.message.rpartition("is ")
    assert "wrong in the first launches" in said
    assert 10 < float(limits.removesuffix(" times the limit")) < 100


def test_a_wrong_timed_launch_is_shown() -> None:
    workers = timing()
    workers.fetched_off = 0.5
    found = Run(workers).outcome
    assert isinstance(found, protocol.WrongAnswer) and found.stage is protocol.Stage.MEASURE
    shown = found.counterexample
    assert (shown.case, shown.seed) == (SMALL, 9)
    assert (shown.elements[0].row, shown.elements[0].column) == (255, 511)


def test_a_score_beyond_the_gpu_is_flagged() -> None:
    found = Run(timing(ms=SMALL.shape.flop / 1e9 / 400)).outcome
    assert (found.stage, found.rule) == (protocol.Stage.MEASURE, protocol.Rule.IMPOSSIBLE_SCORE)
    assert found.message.startswith("400.0 TFLOP/s is more") and "(89.3)" in found.message


@pytest.mark.parametrize("alone", [False, True])
def test_an_error_near_the_ranked_size_is_run_again(alone: bool) -> None:
    """alone: it is wrong in that process alone, and not when it runs again."""
    device = FakeDevice() if alone else FakeDevice(multiply=lambda A, B: 0 * right(A, B))
    workers = timing()
    workers.kernel.check = lambda *_: (
        fake_timing.RIGHT if workers.shape == SMALL.shape else Checked(error=2)
    )
    outcome = Run(workers, device).outcome
    if alone:
        assert isinstance(outcome, protocol.RuleViolation) and "wrong when timed" in outcome.message
    else:
        assert isinstance(outcome, protocol.WrongAnswer)
        assert "every element of C is zero" in outcome.message


def test_the_possible_score_depends_on_the_cores() -> None:
    facts = disassembled(kernel())
    tensor = facts.model_copy(update={"badges": (protocol.Badge.TENSOR_CORES,)})
    assert possible_tflops(INFO, facts) == pytest.approx(67 * 4 / 3)
    assert possible_tflops(INFO, tensor) == 67 * 16
    unknown = INFO.model_copy(update={"fp32_peak_tflops": None})
    assert possible_tflops(unknown, facts) == possible_tflops(unknown, tensor) == float("inf")


@pytest.mark.parametrize(
    ("pageable", "pinned", "expected"),
    [
        ((1, 2), (5, 1), 12 / 4),  # once: 3 and 15; each: 8 and 4
        ((1, 1.125), (5, 1), 12 / 0.5),
        ((9, 2), (1, 1), 0.0),
        ((1, 2), (5, 2), None),
        ((1, 1), (5, 2), None),
    ],
)
def test_pinned_memory_pays_after_some_round_trips(
    pageable: Any, pinned: Any, expected: float | None
) -> None:
    costs = dict(zip(KINDS, (pinned, pageable), strict=True))
    workers = timing()
    workers.kernel.memory = lambda kind: fake_timing.host_memory(kind, *costs[kind])
    assert Run(workers).measured.measurement.pinning_pays_after == expected
