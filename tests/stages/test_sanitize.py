"""Sanitizing with programs that say what they are told: shapes, findings, what C became."""

from __future__ import annotations

from typing import Any

import pytest

from harness.progress import Silent
from harness.protocol.device import Stopped
from harness.protocol.request import Fault
from harness.report import (
    Array,
    Finding,
    Hazard,
    JudgeError,
    MemoryFault,
    Outcome,
    Place,
    Race,
    Rule,
    RuleViolation,
    RuntimeFault,
    Tool,
    WrongAnswer,
)
from harness.stages.sanitize import (
    MAX_EDGE,
    SMALL_FLOP,
    SanitizerResults,
    mid_size_case,
    sanitize,
    sanitizer_cases,
    unsafe,
)
from problem.cases import RANKED, Case, Inputs, Shape
from problem.launcher import MAX_TILE, LaunchLine
from tests.stages.fakes import FakeDevice, FakeSanitizer, kernel, right

RACE = Finding(tool=Tool.RACECHECK, hazard=Hazard.RACE, message="a race", at=Place(line=3))
OUTSIDE = Finding(
    tool=Tool.MEMCHECK,
    hazard=Hazard.OUT_OF_BOUNDS,
    message="outside",
    at=Place(line=9),
    array=Array.A,
)


def run(
    device: FakeDevice, beside: FakeSanitizer | None = None, **options: Any
) -> SanitizerResults | Outcome:
    chosen: dict[str, Any] = {
        "quick": False,
        "failed": None,
        "seconds": 60.0,
        "progress": Silent(),
    }
    return sanitize(device, beside, kernel(), 7, **chosen | options)


def outcome(device: FakeDevice, beside: FakeSanitizer | None = None, **options: Any) -> Any:
    found = run(device, beside, **options)
    assert isinstance(found, SanitizerResults)
    return found.outcome


def test_a_right_kernel_is_clean_under_both_programs() -> None:
    device, beside = FakeDevice(), FakeSanitizer(FakeDevice(program="the CPU device"))
    found = run(device, beside)
    assert isinstance(found, SanitizerResults)
    assert found.outcome is None and found.findings == ()
    assert [program.program for program in found.programs] == ["a fake", "the CPU device"]
    assert all({run.tool for run in program.tools} == {*Tool} for program in found.programs)
    assert device.watched_shapes[:-1] == beside.device.watched_shapes
    assert device.watched_shapes[-1] == mid_size_case(7).shape


@pytest.mark.parametrize("launch", [LaunchLine(), LaunchLine(128, 256), LaunchLine(200, 32)])
def test_shapes_are_secret_awkward_and_larger_than_a_tile(launch: LaunchLine) -> None:
    rows, columns = launch.tile_rows, launch.tile_columns
    drawn = [sanitizer_cases(launch, seed, quick=False) for seed in range(60)]
    assert len({cases[0].shape for cases in drawn}) > 50
    assert drawn[5] == sanitizer_cases(launch, 5, quick=False)
    for cases in drawn:
        shapes = [case.shape for case in cases]
        small, aligned, awkward = shapes[:3]
        assert max(small.M, small.K) <= 40 and small.N >= 17
        assert aligned.M % rows == aligned.K % columns == aligned.N % 16 == 0
        assert rows < awkward.M < rows + 32 and columns < awkward.K < columns + 32
        assert awkward.N % 2
        assert all(shape.flop <= SMALL_FLOP for shape in shapes[3:])
    assert {case.inputs for cases in drawn for case in cases} > {Inputs.UNIFORM, Inputs.INTEGERS}


@pytest.mark.parametrize("quick", [False, True])
def test_the_largest_tile_of_a_launch_line_makes_no_large_shape(quick: bool) -> None:
    launch = LaunchLine(MAX_TILE, MAX_TILE)
    for seed in range(60):
        for case in sanitizer_cases(launch, seed, quick=quick):
            assert max(case.shape.M, case.shape.K) <= 2 * MAX_EDGE


def test_the_case_that_failed_comes_first_unless_it_is_too_large() -> None:
    failed = Case(Shape(65, 129, 33), Inputs.NORMAL)
    for device, case in ((FakeDevice(), failed), (FakeDevice(), RANKED)):
        run(device, failed=case)
        assert (device.watched_shapes[0] == case.shape) is (case is failed)


def test_wrong_only_when_watched_is_a_wrong_answer() -> None:
    found = outcome(FakeDevice(watched=lambda A, B: 2 * right(A, B)))
    assert isinstance(found, WrongAnswer) and found.stage == "sanitize"
    found = outcome(FakeDevice(), FakeSanitizer(FakeDevice(watched=lambda A, B: 2 * right(A, B))))
    assert isinstance(found, WrongAnswer)


def test_inputs_changed_only_when_watched_are_a_violation() -> None:
    found = outcome(FakeDevice(product={"changed_inputs": ("A",)}))
    assert isinstance(found, RuleViolation) and found.rule is Rule.INPUTS_CHANGED


def test_a_launch_that_stops_under_a_tool_is_its_verdict() -> None:
    trap = Stopped(launch=1, fault=Fault(cause="trap", message="it trapped"))
    found = outcome(FakeDevice(sanitized={"stopped": (trap,)}))
    shape = sanitizer_cases(LaunchLine(), 7, quick=False)[1].shape
    assert isinstance(found, RuntimeFault) and f"it trapped at {shape}" in found.message


def test_a_tool_that_nobody_could_run_is_no_clean_tool() -> None:
    broken = FakeDevice(unavailable=("racecheck",))
    found = outcome(broken)
    assert isinstance(found, JudgeError) and "racecheck" in found.message
    assert "out of order" in found.message
    assert outcome(broken, FakeSanitizer()) is None
    also_broken = FakeSanitizer(FakeDevice(unavailable=("racecheck", "memcheck")))
    assert isinstance(outcome(broken, also_broken), JudgeError)


def test_a_quick_grading_asks_the_cpu_only_where_it_must() -> None:
    beside = FakeSanitizer()
    assert outcome(FakeDevice(), beside, quick=True) is None and not beside.loaded
    assert outcome(FakeDevice(unavailable=("memcheck",)), beside, quick=True) is None
    assert beside.loaded and beside.device.watched_shapes


def test_findings_of_both_programs_are_merged_and_counted() -> None:
    beside = FakeSanitizer(FakeDevice(findings=(RACE, OUTSIDE)))
    found = run(FakeDevice(findings=(RACE,)), beside)
    assert isinstance(found, SanitizerResults)
    assert [(f.hazard, f.occurrences) for f in found.findings] == [
        (Hazard.RACE, 2),
        (Hazard.OUT_OF_BOUNDS, 1),
    ]


def test_memory_errors_come_before_the_races_that_follow_from_them() -> None:
    verdict = unsafe((RACE, OUTSIDE), None)
    assert isinstance(verdict, MemoryFault) and verdict.findings == (OUTSIDE, RACE)
    assert isinstance(unsafe((RACE,), None), Race)
    assert unsafe((), None) is None
    uninitialised = RACE.model_copy(update={"hazard": Hazard.UNINITIALISED})
    assert isinstance(unsafe((uninitialised, RACE), None), Race)
    assert isinstance(unsafe((uninitialised,), None), MemoryFault)
    barrier = RACE.model_copy(update={"hazard": Hazard.DIVERGENT_BARRIER})
    verdict = unsafe((RACE, barrier), None)
    assert isinstance(verdict, Race) and verdict.findings == (barrier, RACE)
