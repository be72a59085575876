"""Each fault becomes a verdict with a message."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judge.stages.compile import compile_kernel, disassemble_kernel, load_kernel
from harness.judge.stages.outcomes import judge_error, launch_outcome, touched
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


WHERE = "it went wrong at 17×33×18"
STUCK = FINDING.model_copy(update={"hazard": Hazard.DEADLOCK})


def stopped(at: Place | None) -> RuntimeFault:
    return RuntimeFault(stage=Stage.VERIFY, message=WHERE, at=at)


def late(line: str, at: Place | None) -> TimeLimit:
    message = f"the kernel did not end within 2.5 s at 17×33×18{line}"
    return TimeLimit(stage=Stage.VERIFY, message=message, seconds=2.5, at=at)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            fault("judge", details="why"),
            JudgeError(stage=Stage.VERIFY, message="it went wrong", details="why"),
        ),
        (fault("memory"), MemoryFault(stage=Stage.VERIFY, message=WHERE)),
        (
            fault("memory", finding=FINDING),
            MemoryFault(stage=Stage.VERIFY, message=WHERE, findings=(FINDING,)),
        ),
        (
            fault("deadlock", finding=STUCK),
            Race(stage=Stage.VERIFY, message=WHERE, findings=(STUCK,)),
        ),
        (fault("trap"), stopped(None)),
        (fault("launch-refused", at=PLACE), stopped(PLACE)),
        (fault("out-of-memory", finding=FINDING), stopped(PLACE)),
        (fault("time-limit"), late("", None)),
        (fault("time-limit", at=Place()), late("", Place())),
        (fault("time-limit", at=PLACE), late(", in line 12", PLACE)),
    ],
)
def test_a_fault_of_a_launch_is_a_verdict(found: Fault, expected: Outcome) -> None:
    assert launch_outcome(found, SHAPE, 2.5, Stage.VERIFY) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            fault("judge", details="why"),
            JudgeError(stage=Stage.COMPILE, message="it went wrong", details="why"),
        ),
        (
            fault("time-limit"),
            TimeLimit(
                stage=Stage.COMPILE,
                message="the kernel could not be loaded within 60 s",
                seconds=ANSWER_SECONDS,
            ),
        ),
        (
            fault("trap", at=PLACE),
            RuntimeFault(
                stage=Stage.COMPILE,
                message="the kernel could not be loaded: it went wrong",
                at=PLACE,
            ),
        ),
        (
            Refusal(message="no clusters here", instruction="barrier.cluster", at=PLACE),
            Unsupported(
                stage=Stage.COMPILE,
                message="no clusters here",
                instruction="barrier.cluster",
                at=PLACE,
            ),
        ),
    ],
)
def test_a_kernel_that_cannot_be_loaded_has_not_run(found: Any, expected: Outcome) -> None:
    assert load_kernel(Answering(found), kernel()) == expected


def test_a_changed_canary_is_a_write_outside_its_matrix() -> None:
    found = touched((), ("after A",), "in round 3", SHAPE, Stage.MEASURE)
    message = "the kernel wrote after A in round 3: outside the matrix"
    (finding,) = found.findings
    assert (found.stage, found.message, finding.message) == (Stage.MEASURE, message, message)
    assert (finding.tool, finding.hazard) == (Tool.MEMCHECK, Hazard.OUT_OF_BOUNDS)
    assert (finding.array, finding.access, finding.shape) == ("A", "write", SHAPE)
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
