"""The story of a grading, told with fakes: which stage has the last word."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.judge.explain.examined import Examined
from harness.judge.grade import EXAMINED, EXAMINED_LARGER, GradingOptions, examine, grade
from harness.judge.progress import Progress
from harness.judge.stages import rounds
from harness.judge.stages.sanitize import sanitizer_cases
from harness.judge.submission import Unreadable, read
from harness.judge.workers.session import Session
from harness.protocol.compiler import Disassemble, Disassembled
from harness.protocol.device import BeginSanitizing, Count, Counted, Load, Sanitize
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.profile import NoProfile, ReadCounters
from harness.protocol.report import (
    Accepted,
    Badge,
    CodeLine,
    DeviceInfo,
    Diagnostic,
    DisassembledKernel,
    Finding,
    FirstLaunch,
    Hazard,
    HostMemory,
    JudgeError,
    LineCounters,
    Place,
    Race,
    Report,
    RuleViolation,
    Score,
    Stage,
    Submission,
    Tool,
    Unscored,
    WrongAnswer,
)
from harness.protocol.request import Done, Fault
from harness.protocol.timing import (
    Attach,
    Checked,
    CheckLaunch,
    Detach,
    DrawInputs,
    Fetched,
    FetchLaunch,
    FirstLaunches,
    LaunchTime,
    LayOut,
    MeasureFirstLaunch,
    MeasureHostMemory,
    SharedMatrices,
    TimeLaunch,
    TimingWorkers,
)
from problem.cases import SCALED_GROUPS, SCORED_INPUTS, UNIFORM, Case, Extent, Shape
from problem.inputs import Draw
from problem.launcher import LaunchLine
from tests.board.factory import COUNTERS
from tests.judge.explain.test_records import profile
from tests.judge.stages.fakes import (
    INFO,
    FakeCompiler,
    FakeDevice,
    FakeSanitizer,
    Multiply,
    disassembled,
    right,
)
from tests.judge.stages.fakes import session as session_of
from tests.waiting import PATIENCE, eventually

SUBMISSION = Submission(name="mine", author="ada", sha256="0" * 64, source="a kernel")
SMALL = Case(Shape(512, 48, 512))
"""Stands for the ranked size."""


@pytest.fixture(autouse=True)
def small_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("verify", "sanitize", "measure", "rounds", "audit"):
        monkeypatch.setattr(f"harness.judge.stages.{module}.RANKED", SMALL)
    monkeypatch.setattr("problem.cases.extent", lambda **_: Extent(4, 1, 1, 1 << 22, 1 << 24))
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 0.0)


class FakeGpu(FakeDevice):
    """A device that can also be timed, and its own checker."""

    ms = 8.0
    rescaled_ms = 8.0
    first_is_idle = False
    inputs = UNIFORM

    def ask(self, request: Any) -> Any:
        match request:
            case LayOut():
                return SharedMatrices(shape=request.shape, handles=("", "", ""), offsets=(0, 0, 0))
            case DrawInputs():
                type(self).inputs = request.inputs
                return Done()
            case Attach() | Detach():
                return Done()
            case CheckLaunch():
                return Checked(error=0.1)
            case FetchLaunch():
                A = Draw.plain(1).matrix(SMALL.shape.M, SMALL.shape.N)
                B = Draw.plain(2).matrix(SMALL.shape.N, SMALL.shape.K)
                return Fetched(seed_of_A=1, seed_of_B=2, C=right(A, B))
            case TimeLaunch():
                rescaled = type(self).inputs == SCALED_GROUPS
                ms = self.rescaled_ms if rescaled else self.ms
                return LaunchTime(
                    ms=ms, host_ms=ms + 0.02, clock_mhz=1980, power_w=500, throttled=()
                )
            case MeasureHostMemory():
                return HostMemory(kind=request.memory, **dict.fromkeys(HOST_FIELDS, 1.0))
            case MeasureFirstLaunch():
                C = np.tile(
                    right(request.rows, request.columns),
                    (request.shape.M // len(request.rows), request.shape.K // len(request.rows)),
                )
                times = FirstLaunch(**dict.fromkeys(FirstLaunch.model_fields, 1.0))
                return FirstLaunches(times=times, C=0 * C if self.first_is_idle else C)
        return super().ask(request)


HOST_FIELDS = [name for name in HostMemory.model_fields if name != "kind"]


def session(device: FakeDevice, **parts: Any) -> Session:
    return session_of(FakeCompiler(), device, **parts)


def with_times(device: FakeGpu) -> Session:
    baseline = FakeGpu()
    baseline.ms = baseline.rescaled_ms = 16.0
    timing = TimingWorkers(device, baseline, checker=FakeGpu())
    return session(device, timing=timing, cpu_sanitizer=FakeSanitizer())


def graded(session: Session, **options: Any) -> Report:
    report = grade(SUBMISSION, session, GradingOptions(seed=3, **options))
    assert Report.model_validate_json(report.model_dump_json()) == report
    return report


def test_a_right_kernel_is_accepted_without_times() -> None:
    report = graded(session(FakeDevice()))
    assert isinstance(report.outcome, Accepted) and isinstance(report.outcome.score, Unscored)
    assert [time.stage for time in report.stages] == [
        Stage.COMPILE,
        Stage.VERIFY,
        Stage.SANITIZE,
    ]
    assert report.verification and report.sanitizing and report.seed == 3
    assert report.submission == SUBMISSION and report.device == INFO


@pytest.mark.parametrize("quick", [True, False])
def test_a_right_kernel_is_scored_where_times_mean_something(quick: bool) -> None:
    report = graded(with_times(FakeGpu()), quick=quick)
    assert report.score is not None and report.score.ratio == 2.0, report.outcome
    assert report.measurement is not None
    assert (report.measurement.audit_error is None) is quick
    assert {round.inputs for round in report.measurement.rounds} == {*SCORED_INPUTS}
    assert len(report.sanitizing) == (1 if quick else 2)


def test_a_device_that_does_not_work_is_no_verdict() -> None:
    """It has not said so before the kernel was compiled."""

    def describe() -> DeviceInfo:
        raise JudgeFailure("no driver")

    with pytest.raises(JudgeFailure, match="no driver"):
        graded(replace(with_times(FakeGpu()), describe=describe))


class Noting(FakeGpu):
    """A GPU that notes what it was asked."""

    def __init__(self, multiply: Multiply = right) -> None:
        super().__init__(multiply=multiply)
        self.asked: list[Any] = []

    def ask(self, request: Any) -> Any:
        self.asked.append(request)
        return super().ask(request)

    def said(self) -> list[str]:
        """Kinds of requests before anything is timed, those in a row once."""
        kinds = [type(request).__name__ for request in self.asked]
        until = kinds.index("MeasureFirstLaunch") if "MeasureFirstLaunch" in kinds else len(kinds)
        return [kind for kind, _ in groupby(kinds[:until])]


def watched(request: Sanitize) -> list[tuple[Shape, bytes, bytes]]:
    return [(each.shape, each.A.tobytes(), each.B.tobytes()) for each in request.launches]


@pytest.mark.parametrize("quick", [True, False])
def test_the_cpu_sanitizer_is_made_ready_where_a_grading_is_full(quick: bool) -> None:
    asked: list[tuple[tuple[Tool, ...], bool]] = []
    made = replace(with_times(FakeGpu()), prepare=lambda *how: asked.append(how))
    assert graded(made, quick=quick).score is not None
    tools = (Tool.MEMCHECK, Tool.RACECHECK) if quick else tuple(Tool)
    assert asked == [(tools, not quick)]


@pytest.mark.parametrize("quick", [True, False])
def test_the_gpus_tools_are_at_work_while_it_verifies(quick: bool) -> None:
    device = Noting()
    assert graded(with_times(device), quick=quick).score is not None
    assert device.said() == ["Load", "BeginSanitizing", "Run", "Sanitize"]
    begun, asked = (
        next(each for each in device.asked if isinstance(each, kind))
        for kind in (BeginSanitizing, Sanitize)
    )
    assert watched(begun.sanitize) == watched(asked) and begun.sanitize.tools == asked.tools


def test_where_verification_fails_the_failed_case_is_asked_for_instead() -> None:
    device = Noting(lambda A, B: 2 * right(A, B))
    report = graded(with_times(device))
    assert isinstance(report.outcome, WrongAnswer)
    assert device.said() == ["Load", "BeginSanitizing", "Run", "Sanitize"]
    begun, asked = device.asked[1], device.asked[-1]
    failed = report.outcome.counterexample.case.shape
    assert [each for each in watched(asked) if each[0] != failed] == watched(begun.sanitize)
    assert len(asked.launches) == len(begun.sanitize.launches) + 1


class Beside(FakeSanitizer):
    """A CPU device that notes when it was asked for what."""

    def __init__(self, events: list[object]) -> None:
        super().__init__()
        self.events = events

    def sanitize(self, request: Sanitize) -> Any:
        self.events.append([launch.shape for launch in request.launches])
        return super().sanitize(request)

    def count(self, request: Count) -> Any:
        self.events.append("count")
        return super().count(request)

    def reset(self) -> None:
        self.events.append("reset")


def ahead(device: FakeGpu, works_ahead: bool = True, **options: Any) -> tuple[list[object], Report]:
    """What the CPU device was asked before and after the grading had the GPU, in company and
    alone."""
    events: list[object] = []

    @contextmanager
    def company(_: Progress) -> Iterator[None]:
        events.append("company")
        yield

    @contextmanager
    def turn(_: Progress) -> Iterator[None]:
        events.append("turn")
        yield

    made = replace(
        with_times(device),
        cpu_sanitizer=Beside(events),
        works_ahead=works_ahead,
        company=company,
        turn=turn,
    )
    return events, graded(made, **options)


def test_the_cpu_device_waits_for_no_gpu_where_there_are_cores_for_both() -> None:
    events, report = ahead(FakeGpu())
    whole = [case.shape for case in sanitizer_cases(LaunchLine(), 3, quick=False)]
    shapes = [*whole, SMALL.shape]
    assert events == [shapes, "count", "company", "turn"]
    assert report.score is not None and [*report.sanitizing[1].shapes] == whole
    quick, _ = ahead(FakeGpu(), quick=True)
    assert quick == ["company", "turn"], "a quick grading has no use for it"
    assert ahead(FakeGpu(), works_ahead=False)[0] == ["company", shapes, "count", "turn"]


def test_the_gpu_does_not_wait_for_the_cpu_device() -> None:
    events: list[str] = []

    @contextmanager
    def company(_: Progress) -> Iterator[None]:
        yield
        events.append("the GPU is free")

    class Slow(FakeSanitizer):
        def sanitize(self, request: Sanitize) -> Any:
            begun = super().sanitize(request)
            wait = begun.result

            def result() -> Any:
                events.append("waiting")
                return wait()

            begun.result = result
            return begun

    made = replace(with_times(FakeGpu()), cpu_sanitizer=Slow(), company=company)
    assert graded(made).score is not None
    assert events == ["the GPU is free", "waiting"]


def test_what_was_begun_ahead_is_ended_where_verification_failed() -> None:
    events, report = ahead(FakeGpu(multiply=lambda A, B: 2 * right(A, B)))
    shapes, count, company, reset, again = events
    assert (count, company, reset) == ("count", "company", "reset"), "and it has no turn"
    assert isinstance(report.outcome, WrongAnswer)
    failed = report.outcome.counterexample.case.shape
    assert isinstance(shapes, list) and again == [failed, *shapes[:-1]]
    assert shapes[-1] == SMALL.shape, "some blocks of it, where nothing is wrong"


def test_cases_are_made_ready_before_the_gpu_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, where there are cores for that, so that none is left to do on the GPU."""
    device = FakeGpu()
    in_company, go = threading.Event(), threading.Event()

    @contextmanager
    def company(_: Progress) -> Iterator[None]:
        in_company.set()
        assert go.wait(PATIENCE)
        yield

    made = replace(with_times(device), works_ahead=True, company=company)
    ready: list[Case] = []
    draw = Case.draw

    def noted(case: Case, seed: int) -> Any:
        drawn = draw(case, seed)
        if threading.current_thread().name.startswith("preparation"):
            ready.append(case)
        return drawn

    monkeypatch.setattr(Case, "draw", noted)
    grading = threading.Thread(target=graded, args=(made,))
    grading.start()
    assert in_company.wait(PATIENCE)
    eventually(lambda: ready and ready[-1].shape == SMALL.shape, "the ranked size is drawn")
    assert device.ran == []
    go.set()
    grading.join(PATIENCE)
    assert len(device.ran) == len(ready)


def test_a_kernel_that_is_slower_on_rescaled_inputs_is_scored_on_them() -> None:
    device = FakeGpu()
    device.rescaled_ms = 32.0
    report = graded(with_times(device))
    assert isinstance(report.outcome, Accepted) and isinstance(report.outcome.score, Score)
    assert report.outcome.score.ratio == 0.5
    assert report.outcome.score.slower_on == SCALED_GROUPS


def test_a_first_launch_that_does_nothing_is_a_violation() -> None:
    device = FakeGpu()
    device.first_is_idle = True
    outcome = graded(with_times(device), quick=True).outcome
    assert isinstance(outcome, RuleViolation) and "first launches" in outcome.message


RACE = Finding(tool=Tool.RACECHECK, hazard=Hazard.RACE, message="a race", at=Place(line=3))


def test_unsafe_beats_wrong_and_shows_what_it_did_to_the_answer() -> None:
    wrong = FakeDevice(multiply=lambda A, B: 2 * right(A, B), findings=(RACE,))
    outcome = graded(session(wrong)).outcome
    assert isinstance(outcome, Race) and outcome.counterexample is not None
    safe = FakeDevice(multiply=lambda A, B: 2 * right(A, B))
    outcome = graded(session(safe)).outcome
    assert isinstance(outcome, WrongAnswer) and outcome.stage is Stage.VERIFY


def test_a_fault_of_verification_is_not_sanitized() -> None:
    device = FakeDevice(run=lambda _: Fault(cause="trap", message="it trapped"))
    assert graded(session(device)).verdict == "runtime-error"
    assert device.watched_shapes == []


class Told:
    """Keeps what a grading says while it works."""

    def __init__(self) -> None:
        self.found_in: list[tuple[Stage, str]] = []

    def begin(self, stage: Stage, total: int | None) -> None:
        self._stage = stage

    def step(self, text: str) -> None: ...

    def found(self, sentences: Iterable[str]) -> None:
        self.found_in += [(self._stage, sentence) for sentence in sentences]


def said(session: Session, **options: Any) -> list[tuple[Stage, str]]:
    """What whoever watches learns, in the order in which they do."""
    told = Told()
    grade(SUBMISSION, session, GradingOptions(seed=3, **options), told)
    return told.found_in


def test_what_is_found_is_told_before_the_grading_is_over() -> None:
    wrong = FakeDevice(multiply=lambda A, B: 2 * right(A, B), findings=(RACE,))
    told = said(session(wrong))
    assert [stage for stage, _ in told] == [
        Stage.COMPILE,
        Stage.VERIFY,
        *(Stage.SANITIZE, Stage.SANITIZE),
    ]
    (_, used), (_, failed), (_, clean), (_, race) = told
    assert used.startswith("32 registers, 0 B shared memory, 0 B spilled; 100% occupancy")
    assert failed.startswith("wrong-answer: wrong at ") and "2 times what it should be" in failed
    assert "nothing found by memcheck" in clean and "racecheck" not in clean
    assert race == "racecheck: a race"


def test_what_is_right_is_told_too() -> None:
    sentences = [sentence for _, sentence in said(with_times(FakeGpu()), quick=True)]
    assert any("cases right; worst block" in each for each in sentences)
    assert any(each.startswith("first launch ") for each in sentences)
    assert "cuda-cores, default-launch" in sentences


# --------------------------------------------------------------------------------- disassembling


@dataclass
class Disassembler(FakeCompiler):
    """A compiler that is asked for machine code, and answers so."""

    answer: Callable[[Disassemble], Any] = lambda request: None
    asked: list[Disassemble] = field(default_factory=list)

    def ask(self, request: Any) -> Any:
        if not isinstance(request, Disassemble):
            return super().ask(request)
        self.asked.append(request)
        return self.answer(request) or super().ask(request)


WRONG = FakeDevice(multiply=lambda A, B: 2 * right(A, B))


def test_a_kernel_is_disassembled_when_nothing_was_found_against_it() -> None:
    compiler = Disassembler()
    for device in (WRONG, FakeDevice(findings=(RACE,))):
        report = graded(replace(session(device), compiler=compiler))
        assert report.outcome.verdict != "accepted" and compiler.asked == []
        assert report.kernel is not None and not isinstance(report.kernel, DisassembledKernel)
    accepted = graded(replace(session(FakeDevice()), compiler=compiler))
    assert isinstance(accepted.kernel, DisassembledKernel) and len(compiler.asked) == 1
    assert [badge.value for badge in accepted.kernel.badges] == ["cuda-cores", "default-launch"]


def test_where_a_gpu_verifies_it_is_disassembled_meanwhile() -> None:
    verifying = threading.Event()

    def meanwhile(_: Disassemble) -> None:
        assert verifying.wait(PATIENCE)

    compiler = Disassembler(meanwhile)
    device = FakeGpu(run=lambda _: verifying.set() or {})  # type: ignore[func-returns-value]
    report = graded(replace(with_times(device), compiler=compiler), quick=True)
    assert report.score is not None and len(compiler.asked) == 1


def test_nobody_waits_for_the_machine_code_of_a_kernel_that_is_wrong() -> None:
    ended = threading.Event()

    def without_end(_: Disassemble) -> Fault:
        assert ended.wait(PATIENCE), "it is ended"
        return Fault(cause="judge", message="the compiler hung up")

    renewed: list[bool] = []
    made = replace(
        with_times(FakeGpu(multiply=WRONG.multiply)),
        compiler=Disassembler(without_end),
        renew_compiler=ended.set,
        renew=lambda: renewed.append(ended.is_set()),
    )
    report = graded(made, quick=True)
    assert isinstance(report.outcome, WrongAnswer) and renewed == [True]
    assert report.kernel is not None and not isinstance(report.kernel, DisassembledKernel)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize(
    ("cause", "verdict"), [("judge", "judge-error"), ("time-limit", "time-limit")]
)
def test_who_cannot_be_disassembled_in_time_is_not_accepted(
    cause: Any, verdict: str, times: bool, quick: bool
) -> None:
    compiler = Disassembler(lambda _: Fault(cause=cause, message="it went wrong"))
    here = with_times(FakeGpu()) if times else session(FakeDevice())
    report = graded(replace(here, compiler=compiler), quick=quick)
    assert report.verdict == verdict and report.measurement is None
    assert len(compiler.asked) == 1, "once is enough"


def test_machine_code_that_cannot_be_read_is_warned_of() -> None:
    warning = Diagnostic(severity="warning", message="not to be read")

    def unreadable(request: Disassemble) -> Disassembled:
        known = disassembled(request.kernel)
        update = {"badges": (Badge.DEFAULT_LAUNCH,), "instructions": {}}
        return Disassembled(kernel=known.model_copy(update=update), warnings=(warning,))

    made = replace(session(FakeDevice()), compiler=Disassembler(unreadable))
    assert graded(made).diagnostics == (warning,)
    sentences = [sentence for _, sentence in said(made)]
    assert sentences[-2:] == ["default-launch", "warning: not to be read"]


def test_who_counts_accesses_is_told_the_machine_code() -> None:
    line = CodeLine(line=7, opcodes={"LDS.128": 1})
    counts: list[Count] = []

    def with_a_line(request: Disassemble) -> Disassembled:
        known = disassembled(request.kernel).model_copy(update={"lines": (line,)})
        return Disassembled(kernel=known, warnings=())

    class Counting(FakeGpu):
        def ask(self, request: Any) -> Any:
            counts.extend([request] if isinstance(request, Count) else [])
            return super().ask(request)

    for made in (
        session(Counting()),
        replace(with_times(FakeGpu()), cpu_sanitizer=FakeSanitizer(Counting())),
    ):
        graded(replace(made, compiler=Disassembler(with_a_line)))
    assert [count.code for count in counts] == [(line,), (line,)]


COUNTED = Counted(counters=COUNTERS)
PROFILE = profile(4, 5)


def test_whatever_is_explained_is_disassembled() -> None:
    examined = examine(SUBMISSION, session(WRONG))
    assert isinstance(examined, Examined) and isinstance(examined.outcome, WrongAnswer)
    assert examined.kernel.instructions == {"FFMA": 1}
    fault = Fault(cause="judge", message="it went wrong")
    broken = replace(session(FakeDevice()), compiler=Disassembler(lambda _: fault))
    assert isinstance(examine(SUBMISSION, broken), JudgeError)


@dataclass
class Watched(FakeDevice):
    """A device that can be asked for what an explanation is made of."""

    counted: Any = COUNTED
    profiled: Any = PROFILE
    asked: list[Any] = field(default_factory=list)

    def ask(self, request: Any) -> Any:
        self.asked.append(request)
        match request:
            case Count():
                return self.counted
            case ReadCounters():
                return self.profiled
        return super().ask(request)


def examined(device: Watched, submission: Submission = SUBMISSION) -> Examined:
    timing = TimingWorkers(device, FakeGpu(), checker=FakeGpu())
    found = examine(submission, session(device, timing=timing))
    assert isinstance(found, Examined), found
    return found


def test_an_explanation_is_of_a_kernel_and_of_all_that_was_counted_of_it() -> None:
    device = Watched()
    found = examined(device)
    assert (found.name, found.source, found.device) == ("mine", "a kernel", INFO)
    assert (found.counters, found.profile, found.note) == (COUNTERS, PROFILE, "")
    assert found.outcome is None and not found.blocks_share_work
    assert [each.mostly_watched for each in device.asked if isinstance(each, Load)] == [True]
    depending = Counted(counters=COUNTERS.model_copy(update={"blocks_depend": True}))
    assert examined(Watched(counted=depending)).blocks_share_work


def test_an_explanation_without_counters_says_why() -> None:
    fault = Fault(cause="time-limit", message="it took too long")
    found = examined(Watched(counted=fault))
    assert found.counters is None and found.profile == PROFILE and not found.blocks_share_work
    assert found.note == "its accesses could not be counted: it took too long"
    for unread in (NoProfile(why="nobody may"), Fault(cause="judge", message="nobody may")):
        found = examined(Watched(profiled=unread))
        assert found.profile is None and found.counters == COUNTERS and found.note == "nobody may"


def test_a_file_that_cannot_be_read_is_refused_without_a_device(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_bytes(b"\xff")
    unreadable = read(tmp_path / "mine.cu")
    assert isinstance(unreadable, Unreadable)
    nothing = session(FakeDevice(run=stop))
    assert examine(unreadable, nothing) is unreadable.error
    report = grade(unreadable, nothing)
    assert (report.submission, report.outcome) == (unreadable.submission, unreadable.error)


def test_what_goes_wrong_before_the_first_stage_is_of_reading() -> None:
    def no_room(*_: object) -> None:
        raise OSError("no space left")

    outcome = graded(replace(session(FakeDevice()), prepare=no_room)).outcome
    assert isinstance(outcome, JudgeError) and outcome.stage is Stage.READ
    assert "no space left" in outcome.message


def test_what_is_explained_is_counted_at_the_size_that_was_asked_for() -> None:
    counts: list[Count] = []

    class Counting(FakeDevice):
        def ask(self, request: Any) -> Any:
            counts.extend([request] if isinstance(request, Count) else [])
            return super().ask(request)

    examine(SUBMISSION, session(Counting()))
    asked = GradingOptions(quick=True, examined=Shape(48, 32, 64), counting_seconds=7.0)
    examine(SUBMISSION, session(Counting()), asked)
    usual, other = counts
    assert (usual.inputs.shape, usual.seconds) == (Shape(256, 1024, 256), 30.0)
    assert (other.inputs.shape, other.seconds) == (Shape(48, 32, 64), 7.0)
    assert other.inputs.A.shape == (48, 32)


@pytest.mark.parametrize(
    ("executed", "shapes"),
    [((7, 8), [EXAMINED]), ((7,), [EXAMINED, EXAMINED_LARGER]), ((), [EXAMINED, EXAMINED_LARGER])],
)
def test_a_kernel_with_other_matrix_instructions_is_counted_at_a_larger_size(
    executed: tuple[int, ...], shapes: list[Shape]
) -> None:
    counted: list[Shape] = []
    lines = tuple(CodeLine(line=line, opcodes={"HGMMA.64x64x16.F32.BF16": 1}) for line in (7, 8))

    class Counting(FakeDevice):
        def ask(self, request: Any) -> Any:
            if not isinstance(request, Count):
                return super().ask(request)
            counted.append(request.inputs.shape)
            told = tuple(LineCounters(line=line, warp_instructions=4) for line in executed)
            update = {"shape": counted[-1], "lines": told}
            return Counted(counters=COUNTERS.model_copy(update=update))

    def with_products(request: Disassemble) -> Disassembled:
        known = disassembled(request.kernel).model_copy(update={"lines": lines})
        return Disassembled(kernel=known, warnings=())

    made = replace(session(Counting()), compiler=Disassembler(with_products))
    examined = examine(SUBMISSION, made)
    assert isinstance(examined, Examined) and counted == shapes
    assert examined.counters and examined.counters.shape == shapes[-1]
    examine(SUBMISSION, made, GradingOptions(quick=True, examined=Shape(16, 32, 48)))
    assert counted == [*shapes, Shape(16, 32, 48)]


def test_a_defect_is_said_without_a_path() -> None:
    def broken(_: Any) -> Any:
        raise OSError("cannot read /home/operator/secret/place.txt")

    report = graded(session(FakeDevice(run=broken)))
    assert isinstance(report.outcome, JudgeError) and report.outcome.stage is Stage.VERIFY
    said = report.model_dump_json()
    assert "place.txt" in said and "/home" not in said and "operator" not in said
    assert "harness/judge/stages/verify.py" in report.outcome.details


def test_a_gpu_that_others_hold_is_said() -> None:
    @contextmanager
    def busy(_: Progress) -> Iterator[None]:
        raise UsageError("another grading has held this GPU")
        yield

    report = graded(replace(session(FakeDevice()), company=busy))
    assert isinstance(report.outcome, JudgeError) and "has held" in report.outcome.message


def test_every_grading_has_a_seed_of_its_own() -> None:
    seeds = {grade(SUBMISSION, session(FakeDevice(run=stop))).seed for _ in range(5)}
    assert len(seeds) == 5


def stop(_: Any) -> Fault:
    return Fault(cause="trap", message="enough")
