"""Tuning in a fake session: the order of variants, and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from harness import __version__
from harness.judge.grading import GradingOptions
from harness.judge.stages import rounds
from harness.judge.stages.rounds import QUICK
from harness.judge.tune.tunable import Setting
from harness.judge.tune.tune import Tuning, Variant, tune
from harness.protocol.compiler import (
    Compile,
    Compiled,
    Disassemble,
    Disassembled,
    PtxProgram,
    Translate,
)
from harness.protocol.device import Load, Ready
from harness.protocol.report import (
    Accepted,
    CompileError,
    JudgeError,
    Rule,
    RuleViolation,
    RuntimeFault,
    Stage,
    Submission,
    TimeLimit,
    Unscored,
    WrongAnswer,
)
from harness.protocol.request import Fault
from harness.protocol.timing import TimeLaunch
from problem.cases import Case, Matrix, Shape
from problem.launcher import LaunchLine
from problem.problem import Problem
from tests.judge.stages.fake_timing import FakeTiming
from tests.judge.stages.fakes import (
    INFO,
    FakeDevice,
    FakeSession,
    Watcher,
    disassembled,
    kernel,
    right,
    session,
)

SOURCE = """\
// solve: tile=16x16
// tune: solve tile={16 * ROWS}x16
constexpr int ROWS = 1;  // tune: 1 2 3
"""
SUBMISSION = Submission(name="rows", author="ada", sha256="0" * 64, source=SOURCE)
CASE = Case(Shape(17, 33, 18))
ROWS = [{"ROWS": 1}, {"ROWS": 2}, {"ROWS": 3}]


@pytest.fixture(autouse=True)
def few_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "cases", lambda *_, **how: [CASE])
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 0.0)


class Listener(Watcher):
    """Remembers all that it is told."""

    def plan(self, planned: int, possible: int, seed: int) -> None:
        self.told.append(("plan", planned, possible, seed))

    def trying(self, number: int, setting: Setting) -> None:
        self.told.append(("trying", number, setting))

    def tried(self, number: int, variant: Variant) -> None:
        self.told.append(("tried", number, variant))

    def of(self, word: str) -> list[Any]:
        return [each for each in self.told if each[0] == word]


def rows_of(source: str) -> int:
    """Return the number of rows that a source has."""
    return int(source.partition("ROWS = ")[2][0])


@dataclass
class Machine:
    """A session whose compiler and device answer by the rows of a variant."""

    compiled: Callable[[int], Any] = lambda rows: None
    """Another answer than a kernel."""
    disassembled: Callable[[int], Any] = lambda rows: None
    """Another answer than what is known of a kernel."""
    loaded: Callable[[int], Any] = lambda rows: Ready()
    multiply: Callable[[int], Callable[[Matrix, Matrix], Matrix]] = lambda rows: right
    ms: dict[int, float] | None = None
    """A GPU's times; None for a device without."""
    asked: list[Any] = field(default_factory=list)
    renewed: int = 0
    turns: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        self.device = FakeDevice()
        self.timing = FakeTiming([8.0], noise=1e-5)

    def ask(self, request: Any) -> Any:
        """A compiler and a device in one."""
        self.asked.append(request)
        match request:
            case Translate():
                self.rows = rows_of(request.source)
                return PtxProgram(entry="kernel", ptx="", launch=LaunchLine())
            case Compile():
                answer = self.compiled(self.rows)
                made = kernel(LaunchLine(tile_rows=16 * self.rows))
                return answer or Compiled(kernel=made, warnings=(), nvrtc="13.0")
            case Disassemble():
                return self.disassembled(self.rows) or Disassembled(
                    kernel=disassembled(request.kernel), warnings=()
                )
            case Load():
                if self.ms is not None:
                    self.timing.kernels[0].ms = self.ms[self.rows]
                return self.loaded(self.rows)
        self.device.multiply = self.multiply(self.rows)
        return self.device.ask(request)

    def renew(self) -> None:
        self.renewed += 1

    def close(self) -> None: ...

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        assert name == "exclusive"
        self.turns += 1
        yield

    @property
    def session(self) -> FakeSession:
        timing = self.timing.workers[0] if self.ms is not None else None
        return session(self, self, timing=timing, renewed=self.renew, lock=self.locked)


def tuned(
    machine: Machine, listener: Listener | None = None, *, limit: int = 100, **options: Any
) -> Tuning:
    chosen = GradingOptions(**{"quick": True, "seed": 5} | options)
    return tune(SUBMISSION, machine.session, listener or Listener(), chosen, limit)


def outcomes(machine: Machine) -> list[Any]:
    return [variant.outcome for variant in tuned(machine).variants]


def test_every_variant_is_tried_in_order_and_told() -> None:
    machine, listener = Machine(), Listener()
    found = tuned(machine, listener)
    assert machine.turns == 1 and machine.renewed == 0
    assert [variant.setting for variant in found.variants] == ROWS
    assert listener.told[0] == ("plan", 3, 3, 5)
    assert listener.of("trying") == [("trying", n, ROWS[n - 1]) for n in (1, 2, 3)]
    assert listener.of("tried") == [("tried", n, found.variants[n - 1]) for n in (1, 2, 3)]
    assert [each for each in listener.told if each[0] is Stage.COMPILE] == 3 * [
        (Stage.COMPILE, None)
    ]
    assert (found.judge, found.seed, found.submission) == (__version__, 5, SUBMISSION)
    assert (found.device, found.possible, found.planned) == (INFO, 3, 3)
    assert found.created.microsecond == 0 and found.created.tzinfo is UTC
    assert abs((datetime.now(UTC) - found.created).total_seconds()) < 60


def test_a_sample_is_drawn_by_the_seed() -> None:
    def drawn(seed: int) -> list[Setting]:
        return [each.setting for each in tuned(Machine(), seed=seed, limit=2).variants]

    assert drawn(3) == drawn(3)
    assert len({str(drawn(seed)) for seed in range(8)}) == 2


def test_each_variant_is_compiled_and_verified_with_the_seed() -> None:
    machine = Machine()
    found = tuned(machine, seconds=7.0)
    compiles = [request for request in machine.asked if isinstance(request, Compile)]
    assert [rows_of(each.source) for each in compiles] == [1, 2, 3]
    assert "// solve: tile=48x16" in compiles[2].source
    assert {each.arch for each in compiles} == {INFO.arch}
    first, *others = machine.device.ran
    assert len(others) == 2  # nothing of the ranked size
    assert (CASE.draw(5)[0] == first.inputs.matrices[0]).all() and first.seconds == 7
    facts = [variant.kernel for variant in found.variants]
    assert [each and each.launch.tile_rows for each in facts] == [16, 32, 48]


def test_without_a_gpu_nothing_is_scored() -> None:
    found = tuned(Machine())
    unscored = Unscored(reason="device", message="scores come from a GPU")
    assert {variant.outcome for variant in found.variants} == {Accepted(score=unscored)}
    assert all(variant.score is None for variant in found.variants)
    assert found.best is None and found.best_source is None


def test_the_fastest_is_the_best() -> None:
    listener = Listener()
    machine = Machine(ms={1: 10.0, 2: 6.4, 3: 8.0})
    found = tuned(machine, listener)
    scores = [variant.score for variant in found.variants]
    assert [each and round(each.ratio, 3) for each in scores] == [0.8, 1.25, 1.0]
    assert found.best == found.variants[1]
    assert found.best_source is not None and rows_of(found.best_source) == 2
    assert listener.told.count((Stage.MEASURE, None)) == 3
    assert len(machine.timing.launched) > 3 * 2 * QUICK.rounds
    kernel, baseline = machine.timing.kernel, machine.timing.baseline
    launches = [each for each in kernel.asked if isinstance(each, TimeLaunch)]
    assert {each.seconds for each in launches} == {20.0}
    assert all(each.baseline for each in baseline.attachments)
    assert not any(each.baseline for each in kernel.attachments)


def test_a_best_one_needs_a_score() -> None:
    machine = Machine(compiled=lambda rows: broken() if rows > 1 else None, ms={1: 9.0})
    found = tuned(machine)
    assert found.best == found.original == found.variants[0]
    nothing = found.model_copy(update={"variants": ()})
    assert nothing.original is None and nothing.best is None


def broken() -> CompileError:
    return CompileError(stage=Stage.COMPILE, message="three rows are too many")


def test_a_variant_that_does_not_compile_is_never_run() -> None:
    machine = Machine(compiled=lambda rows: broken())
    found = tuned(machine)
    assert [variant.outcome for variant in found.variants] == 3 * [broken()]
    assert all(variant.kernel is None for variant in found.variants)
    assert machine.device.ran == []


def test_a_wrong_variant_is_not_timed() -> None:
    machine = Machine(
        multiply=lambda rows: lambda A, B: right(A, B) * (1 if rows == 1 else 2),
        ms={1: 8.0, 2: 1.0, 3: 1.0},
    )
    first, *others = tuned(machine).variants
    assert first.score is not None
    assert {type(each.outcome) for each in others} == {WrongAnswer}
    assert all(each.kernel is not None and each.score is None for each in others)


def test_an_impossibly_fast_variant_is_not_the_best() -> None:
    found = tuned(Machine(ms={1: 8.0, 2: 0.1, 3: 9.0}))
    impossible = found.variants[1].outcome
    assert isinstance(impossible, RuleViolation) and impossible.rule is Rule.IMPOSSIBLE_SCORE
    assert found.best == found.variants[0]


# ------------------------------------------------------------------------ what happens meanwhile


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

    *_, last = outcomes(Machine(compiled=defective))
    assert isinstance(last, JudgeError) and last.stage is Stage.COMPILE
    assert "AssertionError" in last.message and "a defect" in last.message


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
    assert {type(each) for each in outcomes(machine)} == {Accepted}
    assert tries == [1, 2, 2, 3] and machine.renewed == 1


def test_faults_of_the_kernel_are_not_repeated() -> None:
    """Its own trap or its own time limit is no worker's age."""
    for cause, kind in (("trap", RuntimeFault), ("time-limit", TimeLimit)):
        machine = Machine()
        machine.device.run = lambda _, cause=cause: Fault(cause=cause, message="so")  # type: ignore[misc,arg-type]
        assert {type(each) for each in outcomes(machine)} == {kind}
        assert machine.renewed == 0
