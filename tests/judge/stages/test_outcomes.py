"""Each fault becomes a verdict with a message."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judge.stages.compile import compile_kernel, disassemble_kernel, load_kernel
from harness.judge.stages.outcomes import judge_error, launch_outcome, load_outcome, touched
from harness.protocol.compiler import (
    Disassemble,
)
from harness.protocol.device import Refusal
from harness.protocol.report import (
    CompileError,
    Finding,
    Hazard,
    JudgeError,
    MemoryFault,
    Outcome,
    Place,
    Race,
    RuntimeFault,
    Stage,
    TimeLimit,
    Tool,
    Unsupported,
)
from harness.protocol.request import ANSWER_SECONDS, Fault
from problem.cases import Shape
from tests.judge.stages.fakes import kernel

SHAPE = Shape(17, 33, 18)
PLACE = Place(line=12)
FINDING = Finding(tool=Tool.MEMCHECK, hazard=Hazard.MISALIGNED, message="here", at=PLACE)


def fault(cause: Any, **details: Any) -> Fault:
    return Fault(cause=cause, message="it went wrong", **details)


def test_a_fault_of_the_judge_keeps_its_details() -> None:
    expected = JudgeError(stage=Stage.VERIFY, message="it went wrong", details="at line 3")
    assert judge_error(fault("judge", details="at line 3"), Stage.VERIFY) == expected
    found = launch_outcome(fault("judge", details="at line 3"), SHAPE, 2, Stage.VERIFY)
    assert found == expected


def test_a_memory_fault_shows_its_finding() -> None:
    assert launch_outcome(fault("memory", finding=FINDING), SHAPE, 2, Stage.SANITIZE) == (
        MemoryFault(stage=Stage.SANITIZE, message="it went wrong at 17×33×18", findings=(FINDING,))
    )
    bare = launch_outcome(fault("memory"), SHAPE, 2, Stage.SANITIZE)
    assert isinstance(bare, MemoryFault) and bare.findings == ()


def test_a_deadlock_is_a_race() -> None:
    stuck = FINDING.model_copy(update={"hazard": Hazard.DEADLOCK})
    assert launch_outcome(fault("deadlock", finding=stuck), SHAPE, 2, Stage.VERIFY) == Race(
        stage=Stage.VERIFY, message="it went wrong at 17×33×18", findings=(stuck,)
    )


@pytest.mark.parametrize("cause", ["trap", "launch-refused", "out-of-memory"])
@pytest.mark.parametrize(
    ("details", "at"), [({}, None), ({"at": PLACE}, PLACE), ({"finding": FINDING}, PLACE)]
)
def test_a_stopped_launch_is_a_runtime_error_at_its_place(
    cause: str, details: dict[str, Any], at: Place | None
) -> None:
    found = launch_outcome(fault(cause, **details), SHAPE, 2, Stage.VERIFY)
    message = "it went wrong at 17×33×18"
    assert found == RuntimeFault(stage=Stage.VERIFY, message=message, at=at)


@pytest.mark.parametrize(
    ("at", "line"),
    [(None, ""), (Place(), ""), (PLACE, ", in line 12"), (Place(line=1), ", in line 1")],
)
def test_a_launch_without_end_says_where_it_was(at: Place | None, line: str) -> None:
    found = launch_outcome(fault("time-limit", at=at), SHAPE, 2.5, Stage.MEASURE)
    message = f"the kernel did not end within 2.5 s at 17×33×18{line}"
    assert found == TimeLimit(stage=Stage.MEASURE, message=message, seconds=2.5, at=at)


def test_a_kernel_that_cannot_be_loaded_has_not_run() -> None:
    assert load_outcome(fault("judge", details="why"), 9) == JudgeError(
        stage=Stage.COMPILE, message="it went wrong", details="why"
    )
    assert load_outcome(fault("time-limit"), 9) == TimeLimit(
        stage=Stage.COMPILE, message="the kernel could not be loaded within 9 s", seconds=9
    )
    assert load_outcome(fault("trap", at=PLACE), 9) == RuntimeFault(
        stage=Stage.COMPILE, message="the kernel could not be loaded: it went wrong", at=PLACE
    )


@pytest.mark.parametrize("array", ["A", "B", "C"])
def test_a_changed_canary_is_a_write_outside_its_matrix(array: str) -> None:
    found = touched((), (f"behind {array}",), "in round 3", SHAPE, Stage.MEASURE)
    message = f"the kernel wrote behind {array} in round 3: outside the matrix"
    (finding,) = found.findings
    assert (found.stage, found.message, finding.message) == (Stage.MEASURE, message, message)
    assert (finding.tool, finding.hazard) == (Tool.MEMCHECK, Hazard.OUT_OF_BOUNDS)
    assert (finding.array, finding.access, finding.shape) == (array, "write", SHAPE)
    assert finding.at == Place()


class Answering:
    """A compiler or a device that says one thing."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def ask(self, request: Any) -> Any:
        self.asked.append(request)
        return self.answer


LATE = TimeLimit(stage=Stage.COMPILE, message="the compiler did not end within 7 s", seconds=7)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (fault("time-limit"), LATE),
        (fault("judge", signal="SIGXCPU"), LATE),
        *(
            (
                fault("judge", signal=signal),
                CompileError(
                    stage=Stage.COMPILE,
                    message="the compiler ran out of memory or crashed on this source "
                    "(it went wrong)",
                ),
            )
            for signal in ("SIGSEGV", "SIGABRT", "SIGBUS")
        ),
        *(
            (each, judge_error(each, Stage.COMPILE))
            for each in (fault("judge", details="why"), fault("judge", signal="SIGKILL"))
        ),
    ],
)
def test_a_fault_of_the_compiler_is_a_verdict(answer: Fault, expected: Outcome) -> None:
    """Faults that a source can cause are the source's."""
    assert compile_kernel(Answering(answer), "", "sm_80", 7) == expected
    exhausted = Fault(cause="judge", message="MemoryError: no more")
    assert isinstance(compile_kernel(Answering(exhausted), "", "sm_80"), CompileError)


def test_a_late_disassembly_is_a_verdict() -> None:
    slow = disassemble_kernel(Answering(fault("time-limit")), kernel())
    assert isinstance(slow, TimeLimit) and slow.stage is Stage.COMPILE
    assert slow.seconds == Disassemble(kernel=kernel()).time_limit
    broken = fault("judge", details="why")
    assert disassemble_kernel(Answering(broken), kernel()) == judge_error(broken, Stage.COMPILE)


def test_a_kernel_that_a_device_cannot_run_is_not_judged() -> None:
    refusal = Refusal(message="no clusters here", instruction="barrier.cluster", at=PLACE)
    assert load_kernel(Answering(refusal), kernel()) == Unsupported(
        stage=Stage.COMPILE,
        message="no clusters here",
        instruction="barrier.cluster",
        at=PLACE,
    )


def test_a_kernel_that_breaks_the_loading_is_a_verdict() -> None:
    found = load_kernel(Answering(fault("time-limit")), kernel())
    assert isinstance(found, TimeLimit) and found.seconds == ANSWER_SECONDS
