"""Sanitizing with fake programs: shapes, findings and verdicts."""

from dataclasses import replace
from typing import Any

import pytest

from harness.judge.grading import Compared, Failure, Grading
from harness.judge.stages import sanitize
from harness.judge.stages.counterexample import wrong_answer
from harness.protocol import report as protocol
from harness.protocol.device import Load, Sanitize, Sanitized, Stopped
from harness.protocol.request import Fault
from harness.ptxcpu.grid import Clusters
from problem.cases import INTEGERS, NORMAL, RANKED, UNIFORM, Case, Shape
from problem.launcher import LaunchLine
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import compare
from tests.judge.stages.fakes import RACE, FakeDevice, grading, on_cpu, on_gpu, outcome_of, right

OUTSIDE = protocol.Finding(
    tool=protocol.Tool.MEMCHECK,
    hazard=protocol.Hazard.OUT_OF_BOUNDS,
    message="outside",
    at=protocol.Place(line=9),
    array="A",
)


BARRIER = RACE.model_copy(update={"hazard": protocol.Hazard.DIVERGENT_BARRIER})
STOPPED = Stopped(launch=0, fault=Fault(cause="trap", message="it trapped"))


SMALL = Case(Shape(320, 64, 256))
"""Stands for the ranked size, which takes seconds to draw."""

PROBLEM = replace(MATRIX_MULTIPLICATION, ranked=SMALL)


def run(
    device: FakeDevice, cpu: FakeDevice | None = None, *, failed: Case | None = None, **how: Any
) -> tuple[protocol.Outcome | None, Grading]:
    """Sanitize on a device, and on a CPU device next to it if there is one."""
    made = grading(on_cpu(device) if cpu is None else on_gpu(device, cpu), problem=PROBLEM, **how)
    if failed is not None:
        A, B = SMALL.draw(7)
        C = 0 * (A @ B)
        compared = Compared(SMALL, (A, B), C, compare(A, B, C))
        failure = wrong_answer(PROBLEM, protocol.Stage.VERIFY, 7, compared)
        made.failure = Failure(failed, failure)
    found = outcome_of(sanitize.sanitize_on_device, made)
    return found or outcome_of(sanitize.conclude_sanitizing, made), made


def outcome(device: FakeDevice, cpu: FakeDevice | None = None, **how: Any) -> Any:
    return run(device, cpu, **how)[0]


def cases_of(launch: LaunchLine = LaunchLine(), seed: int = 7) -> tuple[Case, ...]:
    return sanitize.sanitizer_cases(
        grading(on_cpu(FakeDevice()), problem=PROBLEM, launch=launch, seed=seed)
    )


def test_a_right_kernel_is_clean_under_both_programs() -> None:
    device, cpu = FakeDevice(), FakeDevice(program="the CPU device")
    found, made = run(device, cpu)
    assert found is None and made.findings == []
    assert [program.program for program in made.sanitizing] == ["a fake", "the CPU device"]
    for program in made.sanitizing:
        assert {run.tool for run in program.tools} == {*protocol.Tool}
    shapes = {*device.watched_shapes}
    assert len(shapes - {*cpu.watched_shapes}) == 1 and len(shapes) == 8
    work = [shape.flop for shape in device.watched_shapes]
    assert work == sorted(work), "the smallest first"
    assert device.watched_shapes[-1] == PROBLEM.mid_size_case(7).shape


@pytest.mark.parametrize("launch", [LaunchLine(), LaunchLine(128, 256), LaunchLine(200, 32)])
def test_shapes_are_secret_awkward_and_larger_than_a_tile(launch: LaunchLine) -> None:
    rows, columns = launch.tile_rows, launch.tile_columns
    drawn = [cases_of(launch, seed) for seed in range(60)]
    assert len({cases[0].shape for cases in drawn}) > 50
    assert drawn[5] == cases_of(launch, 5)
    for cases in drawn:
        shapes = [case.shape for case in cases]
        small, aligned, awkward = shapes[:3]
        assert max(small.M, small.K) <= 40 and small.N >= 17
        assert aligned.M % rows == aligned.K % columns == aligned.N % 16 == 0
        assert rows < awkward.M < rows + 32 and columns < awkward.K < columns + 32
        assert awkward.N % 2
        assert all(shape.flop <= sanitize.SMALL_FLOP for shape in shapes[3:])
    assert {case.inputs for cases in drawn for case in cases} > {UNIFORM, INTEGERS}


def test_a_failed_case_comes_first_unless_too_large() -> None:
    failed = Case(Shape(65, 129, 33), NORMAL)
    for device, case in ((FakeDevice(), failed), (FakeDevice(), RANKED)):
        run(device, failed=case, quick=True)
        assert (device.watched_shapes[0] == case.shape) is (case is failed)


def sampled(device: FakeDevice, *, small_failed: Case | None = None, **options: Any) -> list[bool]:
    """Return for each device whether it sanitizes some blocks of the ranked size."""
    cpu = FakeDevice()
    run(device, cpu, failed=small_failed, **options)
    limits = [request.sample_seconds for request in cpu.asked if isinstance(request, Sanitize)]
    assert {*limits} <= {sanitize.SAMPLE_SECONDS_NEXT_TO_GPU}
    return [SMALL.shape in each.watched_shapes for each in (device, cpu)]


def test_only_the_cpu_device_samples_the_ranked_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.judge.stages.sanitize.SMALL_FLOP", SMALL.shape.flop - 1)
    alone = FakeDevice()
    run(alone)
    assert alone.watched_shapes[-1] == SMALL.shape
    assert sampled(FakeDevice()) == [False, True]
    assert sampled(FakeDevice(), quick=True) == [False, False]
    assert sampled(FakeDevice(), small_failed=Case(Shape(16, 17, 18))) == [False, False]
    assert sampled(FakeDevice(), small_failed=SMALL) == [False, True]


def test_a_sample_is_the_first_cluster_and_secret_ones() -> None:
    launch = LaunchLine(16, 32, cluster=(2, 2, 1))  # 8 by 20 blocks
    device = on_cpu(FakeDevice())
    shape = SMALL.shape
    drawn = [
        sanitize.sample_of(grading(device, problem=PROBLEM, launch=launch, seed=seed % 39), shape)
        for seed in range(40)
    ]
    for each in drawn:
        assert {*each.blocks} == {*range(160)}
        assert len(each.blocks) == 160 and {*each.blocks[:4]} == {0, 1, 8, 9}
        others = Clusters((8, 20, 1), (2, 2, 1))
        assert len({others.of(block) for block in each.blocks[4:8]}) == 1
    assert len({each.blocks for each in drawn}) > 20
    assert drawn[0] == drawn[39] and drawn[3].shape == shape


def test_a_failure_under_a_sanitizer_alone_decides() -> None:
    found = outcome(FakeDevice(watched=lambda A, B: 2 * right(A, B)))
    assert isinstance(found, protocol.WrongAnswer) and found.stage == "sanitize"
    found = outcome(FakeDevice(), FakeDevice(watched=lambda A, B: 2 * right(A, B)))
    assert isinstance(found, protocol.WrongAnswer)
    trap = Stopped(launch=1, fault=Fault(cause="trap", message="it trapped"))
    found = outcome(FakeDevice(sanitized={"stopped": (trap,)}))
    assert isinstance(found, protocol.RuntimeFault)
    assert f"it trapped at {cases_of()[1].shape}" in found.message
    wrong = FakeDevice(watched=lambda A, B: 2 * right(A, B), sanitized={"stopped": (trap,)})
    found = outcome(wrong, FakeDevice(sanitized={"stopped": (trap,)}))
    assert isinstance(found, protocol.WrongAnswer), "the first error"
    found = outcome(FakeDevice(sanitized={"stopped": (trap,)}), failed=Case(Shape(16, 16, 16)))
    assert isinstance(found, protocol.WrongAnswer) and found.stage == "verify"


def test_a_tool_that_did_not_run_is_not_clean() -> None:
    broken = FakeDevice(unavailable=("racecheck",))
    found = outcome(broken)
    assert isinstance(found, protocol.JudgeError) and "racecheck" in found.message
    assert "out of order" in found.message
    assert outcome(broken, FakeDevice()) is None
    also_broken = FakeDevice(unavailable=("racecheck", "memcheck"))
    assert isinstance(outcome(broken, also_broken), protocol.JudgeError)
    refusal = protocol.Unsupported(stage=protocol.Stage.COMPILE, message="no clusters here")
    assert outcome(broken, FakeDevice({Load: refusal})).message == (
        "no sanitizer could run racecheck: a fake says out of order; "
        "the CPU device says no clusters here"
    )


def test_a_quick_grading_asks_the_cpu_only_where_it_must() -> None:
    cpu = FakeDevice()
    assert outcome(FakeDevice(), cpu, quick=True) is None and not cpu.watched_shapes
    assert outcome(FakeDevice(unavailable=("memcheck",)), cpu, quick=True) is None
    assert cpu.watched_shapes


def test_findings_of_both_programs_are_merged_and_counted() -> None:
    race = RACE.model_copy(update={"other": protocol.Place(line=8)})
    turned = race.model_copy(update={"at": race.other, "other": race.at})
    of_b = OUTSIDE.model_copy(update={"array": "B"})
    found = outcome(FakeDevice(findings=(race,)), FakeDevice(findings=(turned, OUTSIDE, of_b)))
    assert isinstance(found, protocol.MemoryFault)
    assert [(f.hazard, f.array, f.occurrences) for f in found.findings] == [
        (protocol.Hazard.OUT_OF_BOUNDS, "A", 1),
        (protocol.Hazard.OUT_OF_BOUNDS, "B", 1),
        (protocol.Hazard.RACE, None, 2),
    ]


SEEN = {"sampled": protocol.WatchedBlocks(blocks=160, watched=2, bounded=0)}
"""What a CPU device says that ran some blocks of each sample."""


@pytest.mark.parametrize("quick", [True, False])
def test_races_that_only_racecheck_reports_are_dismissed(quick: bool) -> None:
    cpu = FakeDevice(sanitized=SEEN)
    found, made = run(FakeDevice(findings=(RACE,)), cpu, quick=quick)
    assert found is None and made.findings == []
    statuses = {tool.tool: tool.status for tool in made.sanitizing[0].tools}
    assert statuses.pop(protocol.Tool.RACECHECK) == "dismissed"
    assert {*statuses.values()} == {"clean"}
    middle = PROBLEM.mid_size_case(7).shape
    assert (middle in cpu.watched_shapes) is not quick


@pytest.mark.parametrize(
    ("cpu", "more"),
    [
        (FakeDevice(findings=(RACE,), sanitized=SEEN), ()),
        (FakeDevice(unavailable=("racecheck",), sanitized=SEEN), ()),
        (FakeDevice(), ()),  # no block of the samples
        (FakeDevice(sanitized=SEEN | {"stopped": (STOPPED,)}), ()),
        (FakeDevice(sanitized=SEEN), (BARRIER,)),
    ],
)
def test_races_stay_unless_the_cpu_device_rules_them_out(
    cpu: FakeDevice, more: tuple[protocol.Finding, ...]
) -> None:
    found = outcome(FakeDevice(findings=(RACE, *more)), cpu)
    assert isinstance(found, protocol.Race)
    assert RACE.at in {finding.at for finding in found.findings}


UNINITIALISED = RACE.model_copy(update={"hazard": protocol.Hazard.UNINITIALISED})


@pytest.mark.parametrize(
    ("found", "kind", "first"),
    [
        ((RACE, OUTSIDE), protocol.MemoryFault, OUTSIDE),
        ((RACE,), protocol.Race, RACE),
        ((UNINITIALISED, RACE), protocol.Race, RACE),
        ((UNINITIALISED,), protocol.MemoryFault, UNINITIALISED),
        ((RACE, BARRIER), protocol.Race, BARRIER),
    ],
)
def test_errors_come_before_those_that_follow_from_them(
    found: tuple[protocol.Finding, ...], kind: type[protocol.Outcome], first: protocol.Finding
) -> None:
    verdict = sanitize.unsafe(found, None)
    assert isinstance(verdict, protocol.MemoryFault | protocol.Race) and isinstance(verdict, kind)
    assert verdict.findings[0] == first and {*verdict.findings} == {*found}
    assert sanitize.unsafe((), None) is None


def test_a_full_sanitizing_takes_small_cases_of_verification_too() -> None:
    for seed in range(10):
        verified = PROBLEM.small_cases(seed, 2, 1 << 23)
        assert cases_of(seed=seed)[5:] == tuple(verified)
        assert {*verified} <= {*PROBLEM.cases(seed, quick=False, sampled=True)}


def test_a_device_that_fails_is_a_verdict_of_this_stage() -> None:
    shape = cases_of()[0].shape
    message = f"the kernel did not end within {sanitize.SECONDS:g} s at {shape}"
    expected = protocol.TimeLimit(
        stage=protocol.Stage.SANITIZE, message=message, seconds=sanitize.SECONDS, shape=shape
    )
    assert outcome(FakeDevice({object: Fault(cause="time-limit", message="no end")})) == expected


@pytest.mark.parametrize(
    ("signal", "verdict"), [("SIGKILL", protocol.JudgeError), ("SIGSEGV", protocol.WrongAnswer)]
)
def test_a_wrong_kernel_whose_sanitizer_was_killed_is_graded_again(
    signal: str, verdict: type[protocol.Outcome]
) -> None:
    ended = Fault(cause="judge", message=f"ended by {signal}", signal=signal)
    assert isinstance(outcome(FakeDevice({object: ended}), failed=Case(Shape(16, 16, 16))), verdict)


LATE = protocol.TimeLimit(stage=protocol.Stage.VERIFY, message="no end", seconds=20)


def hanging(
    answer: Any, case: Case, *, has_gpu: bool = True
) -> tuple[protocol.Outcome | None, Sanitize]:
    """Sanitize a kernel whose launch did not end in this case, with what the CPU device says."""
    cpu = FakeDevice({Sanitize: answer})
    session = on_gpu(FakeDevice(), cpu) if has_gpu else on_cpu(cpu)
    made = grading(session, problem=PROBLEM)
    made.failure = Failure(case, LATE)
    assert sanitize.sanitizers_may_say_more(made, made.failure)
    return outcome_of(sanitize.sanitize_on_device, made), cpu.asked[-1]


def test_a_hang_is_explained_by_the_cpu_device() -> None:
    case = Case(Shape(16, 16, 16))
    sanitized = Sanitized(program="cpu", runs=(), findings=(BARRIER,), products=())
    found, asked = hanging(sanitized, case)
    assert isinstance(found, protocol.Race) and found.findings == (BARRIER,)
    assert [each.shape for each in asked.launches] == [case.shape] and asked.seconds == 2
    assert found.counterexample is None and found.stage is protocol.Stage.SANITIZE
    nothing = sanitized.model_copy(update={"findings": ()})
    for answer in (nothing, Fault(cause="time-limit", message="no end")):
        assert isinstance(hanging(answer, case)[0], protocol.TimeLimit)


@pytest.mark.parametrize("has_gpu", [False, True])
def test_a_hang_of_a_large_case_is_explained_by_small_ones(has_gpu: bool) -> None:
    sanitized = Sanitized(program="cpu", runs=(), findings=(BARRIER,), products=())
    found, asked = hanging(sanitized, RANKED, has_gpu=has_gpu)
    assert isinstance(found, protocol.Race) and found.findings == (BARRIER,)
    assert asked.launches and all(each.shape.flop < 1 << 26 for each in asked.launches)
    assert asked.seconds == 2


SOMEWHERE = OUTSIDE.model_copy(update={"at": protocol.Place()})


def test_only_errors_without_a_line_are_explained() -> None:
    gpu = grading(on_gpu(FakeDevice()), problem=PROBLEM)
    for findings, may_say_more in (((), True), ((SOMEWHERE,), True), ((OUTSIDE,), False)):
        fault = protocol.MemoryFault(stage=protocol.Stage.VERIFY, message="", findings=findings)
        assert sanitize.sanitizers_may_say_more(gpu, Failure(RANKED, fault)) is may_say_more
