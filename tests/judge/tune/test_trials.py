"""Tuning in a fake session with times: the best variant, interruptions, and workers that fail."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.judge.grading import GradingOptions
from harness.judge.progress import Silent
from harness.judge.tune.tunable import Setting
from harness.judge.tune.tune import Tuning, tune
from harness.protocol import report as protocol
from harness.protocol.compiler import Compile, Compiled, PtxProgram, Translate
from harness.protocol.errors import UsageError
from harness.protocol.request import Fault
from problem.cases import Case, Shape
from problem.launcher import LaunchLine
from problem.problem import Problem
from tests.judge.stages.fake_timing import FakeTiming
from tests.judge.stages.fakes import FakeCompiler, FakeDevice, FakeSession, kernel, right

SOURCE = """\
// solve: tile=16x16
// tune: solve tile={16 * ROWS}x16
constexpr int ROWS = 1;  // tune: 1 2 3
"""
SUBMISSION = protocol.Submission(name="rows", author="ada", sha256="0" * 64, source=SOURCE)
ROWS = [{"ROWS": 1}, {"ROWS": 2}, {"ROWS": 3}]


@pytest.fixture(autouse=True)
def few(no_warm_up: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "cases", lambda *_, **how: [Case(Shape(17, 33, 18))])


@dataclass
class Machine(FakeCompiler):
    """A compiler, which also makes the device answer by the rows of the variant."""

    compiled: Callable[[int], Any] = lambda rows: None
    """Another answer than a kernel."""
    ms: dict[int, float] = field(default_factory=lambda: dict.fromkeys((1, 2, 3), 8.0))
    wrong: tuple[int, ...] = ()
    renewed: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        self.device = FakeDevice()
        self.timing = FakeTiming([8.0], noise=1e-5)

    def ask(self, request: Any) -> Any:
        match request:
            case Translate():
                self.rows = int(request.source.partition("ROWS = ")[2][0])
                return PtxProgram(entry="kernel", ptx="", launch=LaunchLine())
            case Compile():
                self.timing.kernels[0].ms = self.ms[self.rows]
                factor = 2 if self.rows in self.wrong else 1
                self.device.multiply = lambda A, B: factor * right(A, B)
                made = kernel(LaunchLine(tile_rows=16 * self.rows))
                answer = self.compiled(self.rows)
                return answer or Compiled(kernel=made, warnings=(), nvrtc="13.0")
        return super().ask(request)

    def renew(self) -> None:
        self.renewed += 1


def tuned(machine: Machine, *, limit: int = 100, seed: int | None = 5) -> Tuning:
    (timing,) = machine.timing.workers
    here = FakeSession(machine, machine.device, timing=timing, renewed=machine.renew)
    options = GradingOptions(quick=True, seed=seed)
    found = tune(SUBMISSION, here, Silent(), options, limit)
    locks = [event for event in here.events if event != "renew"]
    assert locks == ["exclusive", "end of exclusive"], "one lock for all variants"
    return found


def test_the_fastest_accepted_variant_is_the_best() -> None:
    found = tuned(Machine(ms={1: 10.0, 2: 6.4, 3: 0.1}))
    assert [variant.setting for variant in found.variants] == ROWS
    first, second, third = found.variants
    assert first.score is not None and first.score.ratio == pytest.approx(0.8, abs=1e-3)
    assert third.outcome.rule is protocol.Rule.IMPOSSIBLE_SCORE
    assert found.original is first and found.best is second
    assert found.best_source is not None and "ROWS = 2" in found.best_source
    assert "// solve: tile=32x16" in found.best_source
    facts = [variant.kernel for variant in found.variants]
    assert [each and each.launch.tile_rows for each in facts] == [16, 32, 48]


def test_a_wrong_variant_is_not_timed() -> None:
    found = tuned(Machine(ms={1: 8.0, 2: 1.0, 3: 1.0}, wrong=(2, 3)), seed=None)
    first, *others = found.variants
    assert first.score is not None
    assert {type(each.outcome) for each in others} == {protocol.WrongAnswer}
    assert {each.outcome.counterexample.seed for each in others} == {found.seed}
    assert all(each.kernel is not None and each.score is None for each in others)


def test_a_sample_is_drawn_by_the_seed() -> None:
    def drawn(seed: int) -> list[Setting]:
        return [each.setting for each in tuned(Machine(), seed=seed, limit=2).variants]

    assert drawn(3) == drawn(3)
    assert len({str(drawn(seed)) for seed in range(8)}) == 2


def test_an_invalid_launch_line_is_reported_before_tuning() -> None:
    machine = Machine()
    source = SOURCE.replace("16 * ROWS", "32 / (3 - ROWS)")
    here = FakeSession(machine, machine.device, timing=machine.timing.workers[0])
    with pytest.raises(UsageError, match="divides by zero"):
        tune(SUBMISSION.model_copy(update={"source": source}), here, Silent())
    assert machine.rows == 0


def test_an_interruption_keeps_the_results_so_far() -> None:
    def interrupted(rows: int) -> None:
        if rows == 2:
            raise KeyboardInterrupt

    found = tuned(Machine(compiled=interrupted))
    assert [variant.setting for variant in found.variants] == ROWS[:1]
    assert (found.planned, found.possible) == (3, 3)


def test_a_defect_of_the_judge_costs_one_variant() -> None:
    def defective(rows: int) -> None:
        assert rows != 3, "a defect"

    *others, last = (variant.outcome for variant in tuned(Machine(compiled=defective)).variants)
    assert isinstance(last, protocol.JudgeError) and "a defect" in last.message
    assert {type(each) for each in others} == {protocol.Accepted}


@pytest.mark.parametrize(
    "fault",
    [
        Fault(cause="time-limit", message="no end"),
        Fault(cause="judge", message="it was ended", signal="SIGXCPU"),
        Fault(cause="judge", message="it was ended by SIGKILL"),
    ],
)
def test_a_suspicious_failure_is_tried_again_in_a_new_worker(fault: Fault) -> None:
    tries: list[int] = []

    def worn_out(rows: int) -> Fault | None:
        tries.append(rows)
        return fault if tries == [1, 2] else None

    machine = Machine(compiled=worn_out)
    assert {type(each.outcome) for each in tuned(machine).variants} == {protocol.Accepted}
    assert tries == [1, 2, 2, 3] and machine.renewed == 1


@pytest.mark.parametrize(
    ("cause", "kind"), [("trap", protocol.RuntimeFault), ("time-limit", protocol.TimeLimit)]
)
def test_faults_of_the_kernel_are_not_repeated(cause: Any, kind: type) -> None:
    machine = Machine()
    machine.device.run = lambda _: Fault(cause=cause, message="so")
    assert {type(each.outcome) for each in tuned(machine).variants} == {kind}
    assert machine.renewed == 0
