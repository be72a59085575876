"""Verdicts for the faults of devices and workers."""

from typing import TypeVar

from harness.protocol.device import Ready, Touched
from harness.protocol.report import (
    Finding,
    Hazard,
    JudgeError,
    MemoryFault,
    Outcome,
    Place,
    Race,
    Rule,
    RuleViolation,
    RunStage,
    RuntimeFault,
    Stage,
    TimeLimit,
    Tool,
    Unsupported,
)
from harness.protocol.request import ANSWER_SECONDS, Fault
from problem.cases import Shape

T = TypeVar("T")


class Ended(Exception):
    """Ends a grading, or a part of one, with this outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def judge_error(fault: Fault, stage: Stage) -> JudgeError:
    return JudgeError(stage=stage, message=fault.message, details=fault.details)


def loaded(answer: Ready | Unsupported | Fault) -> Ready:
    """Return the answer to `Load`. Raises Ended if the kernel could not be loaded."""
    match answer:
        case Ready():
            return answer
        case Unsupported():
            raise Ended(answer)
        case Fault(cause="judge"):
            raise Ended(judge_error(answer, Stage.COMPILE))
        case Fault(cause="out-of-memory"):  # the variables of a kernel fit on most GPUs
            message = (
                "the GPU has no memory left for the kernel and its variables; end other programs "
                "that use it, or declare smaller variables"
            )
            raise Ended(JudgeError(stage=Stage.COMPILE, message=message))
        case Fault(cause="time-limit"):
            message = f"the kernel could not be loaded within {ANSWER_SECONDS:g} s"
            late = TimeLimit(stage=Stage.COMPILE, message=message, seconds=ANSWER_SECONDS)
            raise Ended(late)
        case Fault():
            message = f"the kernel could not be loaded: {answer.message}"
            raise Ended(RuntimeFault(stage=Stage.COMPILE, message=message, at=answer.at))


def touched(
    launch: Touched, where: str, shape: Shape, stage: RunStage
) -> RuleViolation | MemoryFault | None:
    """Return the verdict if a launch wrote to anything but its output.

    where: for example "at 17×33×18" or "in round 3".
    """
    if launch.changed_inputs:
        return RuleViolation(
            stage=stage,
            rule=Rule.INPUTS_CHANGED,
            message=f"the kernel changed {' and '.join(launch.changed_inputs)} {where}; "
            "inputs must not be changed",
        )
    if not launch.wrote_outside:
        return None
    place = launch.wrote_outside[0]
    message = f"the kernel wrote {place} {where}: outside the matrix"
    finding = Finding(
        tool=Tool.MEMCHECK,
        hazard=Hazard.OUT_OF_BOUNDS,
        message=message,
        at=Place(),
        access="write",
        array=place.rsplit(maxsplit=1)[-1],
        shape=shape,
    )
    return MemoryFault(stage=stage, message=message, findings=(finding,))


def finished(answer: T | Fault, shape: Shape, seconds: float, stage: RunStage) -> T:
    """Return the answer to a launch. Raises Ended if it is a fault. seconds: its time limit."""
    if isinstance(answer, Fault):
        raise Ended(launch_outcome(answer, shape, seconds, stage))
    return answer


def launch_outcome(fault: Fault, shape: Shape, seconds: float, stage: RunStage) -> Outcome:
    """Return the verdict for a launch that did not finish. seconds: its time limit."""
    where = f" at {shape}"
    at = fault.at or (fault.finding.at if fault.finding else None)
    findings = (fault.finding,) if fault.finding else ()
    match fault.cause:
        case "memory":
            return MemoryFault(stage=stage, message=fault.message + where, findings=findings)
        case "deadlock":
            assert fault.finding is not None
            return Race(stage=stage, message=fault.message + where, findings=(fault.finding,))
        case "trap" | "launch-refused" | "out-of-memory":
            return RuntimeFault(stage=stage, message=fault.message + where, at=at)
        case "time-limit":
            line = f", in line {at.line}" if at and at.line else ""
            return TimeLimit(
                stage=stage,
                message=f"the kernel did not end within {seconds:g} s{where}{line}",
                seconds=seconds,
                at=at,
                shape=shape,
            )
        case "judge":
            return judge_error(fault, stage)
