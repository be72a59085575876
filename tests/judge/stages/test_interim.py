"""The sentences that a view shows while it grades."""

from __future__ import annotations

import pytest

from harness.judge.stages import interim
from harness.protocol.report import (
    Accepted,
    Badge,
    CaseResult,
    Diagnostic,
    Finding,
    FirstLaunch,
    Hazard,
    Place,
    RuntimeFault,
    Sanitizing,
    Stage,
    Tool,
    ToolRun,
    Unscored,
    Verification,
)
from problem.cases import Case, Shape
from tests.judge.stages.fakes import disassembled, kernel

RACE = Finding(tool=Tool.RACECHECK, hazard=Hazard.RACE, message="a race", at=Place(line=3))


def test_a_kernel_is_described_with_resources_and_warnings() -> None:
    facts = kernel().facts
    resources = facts.resources.model_copy(
        update={
            "spill_store_bytes": 1200,
            "spill_load_bytes": 34,
            "static_shared_bytes": 9000,
            "dynamic_shared_bytes": 1000,
        }
    )
    occupancy = facts.occupancy.model_copy(update={"warps": 24, "limited_by": "registers"})
    known = facts.model_copy(update={"resources": resources, "occupancy": occupancy})
    warnings = [
        Diagnostic(severity="warning", message="never used", line=1),
        Diagnostic(severity="note", message="of the whole file"),
    ]
    assert list(interim.of_kernel(known, warnings)) == [
        "32 registers, 10\N{NO-BREAK SPACE}000 B shared memory, 1\N{NO-BREAK SPACE}234 B spilled; "
        "38% occupancy, limited by registers",
        "line 1: warning: never used",
        "note: of the whole file",
    ]


def test_machine_code_is_described_with_badges_and_warnings() -> None:
    known = disassembled(kernel())
    assert list(interim.of_machine_code(known, [])) == ["cuda-cores, default-launch"]
    unread = known.model_copy(update={"badges": (Badge.DEFAULT_LAUNCH,)})
    warning = Diagnostic(severity="warning", message="not to be read")
    assert list(interim.of_machine_code(unread, [warning])) == [
        "default-launch",
        "warning: not to be read",
    ]


@pytest.mark.parametrize("note", [None, "a smaller size was run whole"])
def test_verification_is_described_with_its_worst_error(note: str | None) -> None:
    case = CaseResult(case=Case(Shape(16, 16, 16)), error=2.2e-6, seconds=0.1)
    found = Verification(cases=(case, case), worst_error=2.2e-6, note=note)
    said = "2 cases right; worst block 2.2e-6 (limit 1e-5)"
    assert list(interim.of_verification(found)) == [said, *([note] if note else [])]


def test_a_failure_is_described_with_its_reason() -> None:
    trapped = RuntimeFault(stage=Stage.VERIFY, message="it trapped")
    assert list(interim.of_failure(trapped)) == ["runtime-error: it trapped"]
    unscored = Accepted(score=Unscored(reason="device", message="no GPU"))
    assert list(interim.of_failure(unscored)) == []


def test_a_sanitizer_is_described_with_its_findings() -> None:
    statuses = {Tool.MEMCHECK: "clean", Tool.RACECHECK: "found", Tool.INITCHECK: "clean"}
    program = Sanitizing(
        program="the CPU device",
        shapes=(),
        tools=tuple(
            ToolRun(tool=tool, status=status, seconds=0)  # type: ignore[arg-type]
            for tool, status in statuses.items()
        ),
    )
    often = RACE.model_copy(update={"occurrences": 2})
    assert list(interim.of_sanitizing(program, [RACE, often])) == [
        "the CPU device: nothing found by memcheck, initcheck",
        "racecheck: a race",
        "racecheck: a race (2 times)",
    ]
    broken = program.model_copy(
        update={"tools": (ToolRun(tool=Tool.MEMCHECK, status="unavailable", seconds=0),)}
    )
    assert list(interim.of_sanitizing(broken, [])) == []


def test_the_first_launch_is_described_with_the_second() -> None:
    found = FirstLaunch(
        context_ms=1,
        compile_ms=2,
        module_load_ms=3,
        first_allocation_ms=4,
        first_launch_ms=5.26,
        second_launch_ms=0.44,
    )
    assert list(interim.of_first_launch(found)) == ["first launch 5.3 ms, second 0.4 ms"]
