"""Each fault becomes a verdict with a message."""

from typing import Any

import pytest

from harness.judge.stages.compile import compile_kernel
from harness.judge.stages.outcomes import launch_outcome, loaded, touched
from harness.protocol import report as protocol
from harness.protocol.compiler import Compile
from harness.protocol.device import Touched
from harness.protocol.request import Fault
from problem.cases import Shape
from tests.judge.stages.fakes import Process, outcome_of

SHAPE = Shape(17, 33, 18)
PLACE = protocol.Place(line=12)
FINDING = protocol.Finding(
    tool=protocol.Tool.MEMCHECK, hazard=protocol.Hazard.MISALIGNED, message="here", at=PLACE
)
STUCK = FINDING.model_copy(update={"hazard": protocol.Hazard.DEADLOCK})


def fault(cause: Any, **details: Any) -> Fault:
    return Fault(**{"cause": cause, "message": "it went wrong"} | details)


WHERE = "it went wrong at 17×33×18"
LATE = "the kernel did not end within 2.5 s at 17×33×18"


@pytest.mark.parametrize(
    ("found", "kind", "message", "facts"),
    [
        (fault("judge", details="why"), protocol.JudgeError, "it went wrong", {"details": "why"}),
        (fault("memory"), protocol.MemoryFault, WHERE, {"findings": ()}),
        (fault("memory", finding=FINDING), protocol.MemoryFault, WHERE, {"findings": (FINDING,)}),
        (fault("deadlock", finding=STUCK), protocol.Race, WHERE, {"findings": (STUCK,)}),
        (fault("trap"), protocol.RuntimeFault, WHERE, {"at": None}),
        (fault("launch-refused", at=PLACE), protocol.RuntimeFault, WHERE, {"at": PLACE}),
        (fault("out-of-memory", finding=FINDING), protocol.RuntimeFault, WHERE, {"at": PLACE}),
        (fault("time-limit", at=protocol.Place()), protocol.TimeLimit, LATE, {"seconds": 2.5}),
        (fault("time-limit", at=PLACE), protocol.TimeLimit, f"{LATE}, in line 12", {"at": PLACE}),
    ],
)
def test_a_fault_of_a_launch_is_a_verdict(
    found: Fault, kind: Any, message: str, facts: dict[str, Any]
) -> None:
    outcome = launch_outcome(found, SHAPE, 2.5, protocol.Stage.VERIFY)
    assert (type(outcome), outcome.message) == (kind, message)
    assert {name: getattr(outcome, name) for name in facts} == facts


FULL_GPU = (
    "the GPU has no memory left for the kernel and its variables; end other programs that use it, "
    "or declare smaller variables"
)


@pytest.mark.parametrize(
    ("found", "kind", "words"),
    [
        (fault("judge"), protocol.JudgeError, "it went wrong"),
        (fault("time-limit"), protocol.TimeLimit, "the kernel could not be loaded within 60 s"),
        (fault("trap"), protocol.RuntimeFault, "the kernel could not be loaded: it went wrong"),
        (fault("out-of-memory"), protocol.JudgeError, FULL_GPU),
    ],
)
def test_a_kernel_that_cannot_be_loaded_has_not_run(found: Any, kind: Any, words: str) -> None:
    outcome = outcome_of(loaded, found)
    assert isinstance(outcome, kind) and outcome.message == words
    assert outcome.stage is protocol.Stage.COMPILE


def test_a_changed_canary_is_a_write_outside_its_matrix() -> None:
    launch = Touched(wrote_outside=("after A",))
    found = touched(launch, "in round 3", SHAPE, protocol.Stage.MEASURE)
    message = "the kernel wrote after A in round 3: outside the matrix"
    (finding,) = found.findings
    assert found.stage is protocol.Stage.MEASURE and found.message == finding.message == message
    assert (finding.tool, finding.hazard) == (protocol.Tool.MEMCHECK, protocol.Hazard.OUT_OF_BOUNDS)
    assert (finding.array, finding.access, finding.shape) == ("A", "write", SHAPE)


SLOW = "the compiler did not end within 7 s"
CRASHED = "the compiler ran out of memory or crashed on this source"


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (fault("time-limit"), protocol.TimeLimit, SLOW),
        (fault("judge", signal="SIGXCPU"), protocol.TimeLimit, SLOW),
        (fault("judge", signal="SIGSEGV"), protocol.CompileError, f"{CRASHED} (it went wrong)"),
        (fault("judge", signal="SIGABRT"), protocol.CompileError, f"{CRASHED} (it went wrong)"),
        (fault("judge", signal="SIGBUS"), protocol.CompileError, f"{CRASHED} (it went wrong)"),
        (fault("judge", message="MemoryError"), protocol.CompileError, f"{CRASHED} (MemoryError)"),
        (fault("judge", signal="SIGKILL"), protocol.JudgeError, "it went wrong"),
        (fault("judge"), protocol.JudgeError, "it went wrong"),
    ],
)
def test_faults_that_a_source_can_cause_are_the_sources(
    answer: Fault, kind: Any, message: str
) -> None:
    outcome = outcome_of(compile_kernel, Process({object: answer}), Compile(source="", seconds=7))
    assert isinstance(outcome, kind) and outcome.message == message
