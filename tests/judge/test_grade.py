"""Grading with fake devices: the stages, the verdict, and what the report says."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.judge.examine import examine
from harness.judge.explain.examination import Examination
from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.protocol import report as protocol
from harness.protocol.compiler import Compile, Disassemble, PtxProgram, Translate
from harness.protocol.device import BranchesDiffer, Count, Load, MergeLoads, Ready, Run, Sanitize
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.request import Fault
from problem.cases import QUICK_CASES, SCORED_INPUTS, Case, Extent, Shape
from problem.launcher import LaunchLine
from problem.problem import MATRIX_MULTIPLICATION
from tests.board.factory import COUNTERS
from tests.judge.stages import fakes
from tests.judge.stages.fake_timing import FakeTiming
from tests.judge.stages.fakes import RACE, SUBMISSION
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("no_warm_up")
SMALL = Case(Shape(512, 48, 512))
"""Stands for the ranked size."""

STAGES = [protocol.Stage.COMPILE, protocol.Stage.VERIFY, protocol.Stage.SANITIZE]
PROBLEM = replace(
    MATRIX_MULTIPLICATION,
    ranked=SMALL,
    known=QUICK_CASES[:4],
    quick_known=QUICK_CASES[:4],
    extent=lambda *_: Extent(2, 1, 1, 0, 1 << 22, 1 << 24, 256),
    accuracy_inputs=("uniform", "constant lines"),
    accuracy_shape=Shape(24, 48, 20),
)


WRONG = fakes.FakeDevice(multiply=lambda A, B: 2 * fakes.right(A, B))


def with_times(device: fakes.FakeDevice) -> fakes.FakeSession:
    (timing,) = FakeTiming([8.0], baseline_ms=16.0).workers
    return fakes.on_gpu(device, timing=timing)


def graded(session: fakes.FakeSession, **options: Any) -> protocol.Report:
    report = grade(SUBMISSION, session, GradingOptions(seed=3, **options), problem=PROBLEM)
    assert protocol.Report.model_validate_json(report.model_dump_json()) == report
    return report


def test_a_right_kernel_is_accepted_without_times() -> None:
    report = graded(fakes.on_cpu(fakes.FakeDevice()))
    assert isinstance(report.outcome, protocol.Accepted)
    assert isinstance(report.outcome.score, protocol.Unscored)
    assert [time.stage for time in report.stages] == STAGES
    assert report.verification and report.sanitizing and report.seed == 3
    assert report.submission == SUBMISSION and report.device == fakes.INFO
    flood = fakes.FakeDevice(run=lambda _: {"printed": "x" * protocol.MAX_PRINTED})
    assert len(graded(fakes.on_cpu(flood)).printed) == protocol.MAX_PRINTED, "of all launches"


@pytest.mark.parametrize("quick", [True, False])
def test_a_right_kernel_is_scored_where_times_mean_something(quick: bool) -> None:
    report = graded(with_times(fakes.FakeDevice()), quick=quick)
    assert report.score is not None and report.score.ratio == 2.0, report.outcome
    assert (report.measurement.audit_error is None) is quick
    assert (report.measurement.sustained is None) is quick
    assert {round.inputs for round in report.measurement.rounds} == {*SCORED_INPUTS}
    assert len(report.sanitizing) == (1 if quick else 2)
    if quick:
        assert report.accuracy is None
    else:
        assert report.accuracy is not None and report.accuracy.grade == "A"
        small, ranked = report.accuracy.sizes
        assert (small.baseline, ranked.baseline) == ("plain FP32 sums", "cuBLAS")
        assert report.measurement.sustained.ratio == pytest.approx(2.0)
        assert report.measurement.sustained.kernel_joules == pytest.approx(0.8)
        assert ranked.shape == SMALL.shape and len(small.results) == len(ranked.results)


def test_a_device_that_does_not_work_is_no_verdict() -> None:
    with pytest.raises(JudgeFailure, match="no driver"):
        graded(replace(with_times(fakes.FakeDevice()), known=JudgeFailure("no driver")))


def test_locks_are_held_in_order() -> None:
    made = with_times(fakes.FakeDevice())
    graded(made)
    locks = ["shared", "end of shared", "exclusive", "end of exclusive"]
    assert made.events[1:] == [*locks, "renew"]
    failed = with_times(WRONG)
    graded(failed)
    assert failed.events[1:] == ["shared", "end of shared", "renew"]


def test_early_work_stops_when_verification_fails() -> None:
    asked: list[Sanitize] = []

    class Endless(fakes.FakeDevice):
        """Sanitizes for ever, until its process is closed; then it is another one."""

        began, ended = threading.Event(), threading.Event()

        def ask(self, request: Any) -> Any:
            if isinstance(request, Sanitize):
                asked.append(request)
                self.began.set()
                if len(asked) == 1:
                    assert self.ended.wait(PATIENCE)
                    return Fault(cause="judge", message="closed")
            return super().ask(request)

        def close(self) -> None:
            self.ended.set()

    def wrong(A: Any, B: Any) -> Any:
        assert Endless.began.wait(PATIENCE)
        return WRONG.multiply(A, B)

    made = with_times(replace(WRONG, multiply=wrong))
    made.cpu_sanitizer, made.has_own_cores = Endless(), True
    assert isinstance(graded(made).outcome, protocol.WrongAnswer)
    assert len(asked) == 2 and len(asked[1].launches) == len(asked[0].launches)


def test_a_race_precedes_a_wrong_answer_and_a_fault_decides() -> None:
    outcome = graded(fakes.on_cpu(replace(WRONG, findings=(RACE,)))).outcome
    assert isinstance(outcome, protocol.Race) and outcome.counterexample is not None
    outcome = graded(fakes.on_cpu(WRONG)).outcome
    assert isinstance(outcome, protocol.WrongAnswer) and outcome.stage is protocol.Stage.VERIFY
    device = fakes.FakeDevice(run=lambda _: Fault(cause="trap", message="it trapped"))
    report = graded(fakes.on_cpu(device))
    assert report.verdict == "runtime-error" and report.sanitizing == ()


def test_findings_are_shown_while_it_grades() -> None:
    wrong, watcher = replace(WRONG, findings=(RACE,)), fakes.Watcher()
    grade(SUBMISSION, fakes.on_cpu(wrong), GradingOptions(seed=3), watcher, PROBLEM)
    begun = [each[0] for each in watcher.told if isinstance(each, tuple)]
    assert begun == STAGES
    used, failed, clean, race = watcher.sentences
    assert used.startswith("32 registers, 0 B shared memory, 0 B spilled; 100% occupancy")
    assert failed.startswith("wrong-answer: wrong at ") and "2 times what it should be" in failed
    assert "nothing found by memcheck" in clean and "racecheck" not in clean
    assert race == "racecheck: a race"


def test_only_an_accepted_kernel_has_badges() -> None:
    accepted = graded(fakes.on_cpu(fakes.FakeDevice())).kernel
    assert [badge.value for badge in accepted.badges] == ["cuda-cores", "default-launch"]
    for device in (WRONG, fakes.FakeDevice(findings=(RACE,))):
        rejected = graded(fakes.on_cpu(device)).kernel
        assert rejected is not None and not isinstance(rejected, protocol.DisassembledKernel)


@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize(
    ("cause", "verdict"), [("judge", "judge-error"), ("time-limit", "time-limit")]
)
def test_a_failed_disassembly_is_not_accepted(cause: Any, verdict: str, times: bool) -> None:
    compiler = fakes.FakeCompiler({Disassemble: Fault(cause=cause, message="it went wrong")})
    here = with_times(fakes.FakeDevice()) if times else fakes.on_cpu(fakes.FakeDevice())
    report = graded(replace(here, compiler=compiler), quick=True)
    assert report.verdict == verdict and report.measurement is None


@pytest.mark.parametrize("refuses", [Translate, Compile])
@pytest.mark.parametrize("on", [with_times, fakes.on_cpu])
def test_a_compiler_that_saw_a_refused_source_is_replaced(on: Any, refuses: type) -> None:
    refused = protocol.CompileError(stage=protocol.Stage.COMPILE, message="it does not compile")
    made = on(fakes.FakeDevice())
    made.compiler = fakes.FakeCompiler({refuses: refused})
    assert graded(made).outcome == refused
    assert made.compiler.closed or made.events[-1] == "renew"


UNSUPPORTED = protocol.Unsupported(stage=protocol.Stage.COMPILE, message="not on this device")


TRAP = Fault(cause="trap", message="it trapped")


@pytest.mark.parametrize("answers", [{Load: UNSUPPORTED}, {Run: TRAP}])
def test_a_slow_error_of_the_compiler_comes_first(answers: dict[type, Any]) -> None:
    class Slow(fakes.FakeCompiler):
        def ask(self, request: Any) -> Any:
            if isinstance(request, Compile):
                assert request.seconds == 40
                time.sleep(0.3)
                return protocol.CompileError(stage=protocol.Stage.COMPILE, message="of ptxas")
            return super().ask(request)

    program = PtxProgram(entry="kernel", ptx="", launch=LaunchLine(), seconds=20)
    made = replace(fakes.on_cpu(fakes.FakeDevice(answers)), compiler=Slow({Translate: program}))
    assert getattr(graded(made).outcome, "message", "") == "of ptxas"


def test_whatever_is_explained_is_disassembled() -> None:
    examined = examine(SUBMISSION, fakes.on_cpu(WRONG), problem=PROBLEM)
    assert isinstance(examined, Examination) and isinstance(examined.outcome, protocol.WrongAnswer)
    assert examined.kernel.instructions == {"FFMA": 1}
    fault = Fault(cause="judge", message="it went wrong")
    broken = replace(
        fakes.on_cpu(fakes.FakeDevice()), compiler=fakes.FakeCompiler({Disassemble: fault})
    )
    assert isinstance(examine(SUBMISSION, broken, problem=PROBLEM), protocol.JudgeError)


def examined(device: fakes.FakeDevice) -> Examination:
    (timing,) = FakeTiming().workers
    found = examine(SUBMISSION, fakes.on_cpu(device, timing=timing), problem=PROBLEM)
    assert isinstance(found, Examination), found
    return found


def test_an_explanation_has_all_counters_or_says_why_not() -> None:
    device = fakes.FakeDevice({Count: COUNTERS})
    found = examined(device)
    assert (found.name, found.source, found.device) == ("mine", "a kernel", fakes.INFO)
    assert (found.counters, found.note) == (COUNTERS, "")
    assert found.outcome is None and not found.blocks_depend
    assert all(each.mostly_watched for each in device.asked if isinstance(each, Load))
    fault = Fault(cause="time-limit", message="it took too long")
    found = examined(fakes.FakeDevice({Count: fault}))
    assert found.counters is None and not found.blocks_depend
    assert found.note == "its accesses could not be counted: it took too long"


def test_an_unreadable_file_needs_no_device(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_bytes(b"\0")
    unreadable = read(tmp_path / "mine.cu")
    nothing = fakes.on_cpu(fakes.FakeDevice(run=stop))
    assert examine(unreadable, nothing) is unreadable.error
    report = grade(unreadable, nothing)
    assert (report.submission, report.outcome) == (unreadable.submission, unreadable.error)


def test_a_failed_start_belongs_to_the_first_stage() -> None:
    class NoRoom(fakes.FakeSession):
        def start(self, *, cpu_sanitizer: bool) -> None:
            raise OSError("no space left")

    outcome = graded(NoRoom(fakes.FakeCompiler(), fakes.FakeDevice())).outcome
    assert isinstance(outcome, protocol.JudgeError) and outcome.stage is protocol.Stage.READ
    assert "no space left" in outcome.message


RANKED_SHAPE = PROBLEM.ranked.shape
WHOLE = PROBLEM.counted_shapes
ALL, NOTHING = 1 << 20, 0


@pytest.mark.parametrize(
    ("depend", "matrices", "alike", "stored", "shapes"),
    [
        (False, False, {RANKED_SHAPE}, ALL, [RANKED_SHAPE]),
        (False, False, {RANKED_SHAPE, *WHOLE}, NOTHING, [RANKED_SHAPE, WHOLE[0]]),
        (True, False, {*WHOLE}, ALL, [WHOLE[0]]),
        (True, False, {WHOLE[2]}, ALL, [*WHOLE[:3]]),
        (True, True, {*WHOLE}, ALL, [WHOLE[-1]]),
        (True, False, set(), ALL, [*WHOLE]),
    ],
    ids=["sample", "idle sample", "depending", "another way", "tensor cores", "always another way"],
)
def test_counted_launches_branch_like_the_ranked_size(
    depend: bool, matrices: bool, alike: set[Shape], stored: int, shapes: list[Shape]
) -> None:
    compared: list[Shape] = []

    class Counting(fakes.FakeDevice):
        def ask(self, request: Any) -> Any:
            if isinstance(request, Load):
                facts = {"blocks_depend": depend, "multiplies_matrices": matrices}
                return Ready(**facts, has_mergeable_loads=True)
            if isinstance(request, MergeLoads):
                return COUNTERS.model_copy(update={"shape": request.shape})
            if not isinstance(request, Count):
                return super().ask(request)
            assert request.like == PROBLEM.arguments(RANKED_SHAPE)
            shape = request.inputs.shape
            compared.append(shape)
            if shape not in alike:
                return BranchesDiffer(line=7)
            sampled = {"counted_blocks": 1 if shape == RANKED_SHAPE else 4, "blocks": 4}
            update = {"shape": shape, "global_store_sectors": stored, **sampled}
            return COUNTERS.model_copy(update=update)

    examined = examine(SUBMISSION, fakes.on_cpu(Counting()), problem=PROBLEM)
    assert isinstance(examined, Examination) and compared == shapes
    assert examined.blocks_depend == depend
    if alike:
        assert examined.counters and examined.counters.shape == shapes[-1] and not examined.note
    else:
        assert examined.counters is None and "line 7 depends on the size" in examined.note


def test_a_busy_gpu_is_reported() -> None:
    @contextmanager
    def busy(_: str) -> Iterator[None]:
        raise UsageError("another grading has held this GPU")
        yield

    report = graded(replace(fakes.on_cpu(fakes.FakeDevice()), lock=busy))
    assert isinstance(report.outcome, protocol.JudgeError) and "has held" in report.outcome.message


def test_every_grading_has_a_seed_of_its_own() -> None:
    seeds = {
        grade(SUBMISSION, fakes.on_cpu(fakes.FakeDevice(run=stop)), problem=PROBLEM).seed
        for _ in range(5)
    }
    assert len(seeds) == 5


def stop(_: Any) -> Fault:
    return Fault(cause="trap", message="enough")
