"""Grade a submission: compile → verify → sanitize → measure → report."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import Enum, auto
from typing import NamedTuple

from harness.judge.grading import Grading, GradingOptions
from harness.judge.progress import Progress, Silent
from harness.judge.session import Session
from harness.judge.stages.accuracy import grade_accuracy
from harness.judge.stages.compile import (
    await_machine_code,
    compile_submission,
    disassemble,
    disassembling,
    load,
)
from harness.judge.stages.count import count_accesses, start_counting
from harness.judge.stages.measure import audit, measure
from harness.judge.stages.outcomes import Ended
from harness.judge.stages.sanitize import (
    conclude_sanitizing,
    sanitize_on_device,
    start_cpu_sanitizer,
    start_sanitizer,
)
from harness.judge.stages.verify import start_references, verify
from harness.judge.steps import Executor
from harness.judge.submission import Unreadable
from harness.protocol.errors import JudgeFailure, UsageError, crash
from harness.protocol.report import (
    MAX_PRINTED,
    Accepted,
    Environment,
    JudgeError,
    Outcome,
    Report,
    Stage,
    Submission,
    Unscored,
)
from problem.problem import MATRIX_MULTIPLICATION, Problem

__all__ = ["GradingOptions", "grade"]


class Lock(Enum):
    """The lock that a part of a grading needs on the GPU."""

    NONE = auto()
    SHARED = auto()
    """No other grading may measure meanwhile."""
    EXCLUSIVE = auto()
    """No other grading may use the GPU meanwhile."""


class Part(NamedTuple):
    """A part of a grading. It raises Ended if an outcome ends the grading."""

    run: Callable[[Grading], None]
    stage: Stage
    lock: Lock


def start_before_the_gpu_is_free(grading: Grading) -> None:
    """Start what needs no GPU, if it does not disturb measurements of other gradings."""
    if grading.session.has_own_cores:
        start_in_background(grading)


def start_in_background(grading: Grading) -> None:
    """Start the work that the processor does while the GPU works."""
    start_references(grading)
    start_cpu_sanitizer(grading)
    if grading.watched_by is not Executor.DEVICE:
        start_counting(grading)


def start_after_verification(grading: Grading) -> None:
    """Start the rest of the work for a kernel that is right so far, while it is sanitized."""
    if grading.failure is None:
        grading.steps.start(disassembling(grading))
        start_counting(grading)


CHECKING = (
    Part(compile_submission, Stage.COMPILE, Lock.NONE),
    Part(start_before_the_gpu_is_free, Stage.COMPILE, Lock.NONE),
    Part(load, Stage.COMPILE, Lock.SHARED),
    Part(start_sanitizer, Stage.COMPILE, Lock.SHARED),
    Part(start_in_background, Stage.COMPILE, Lock.SHARED),
    Part(verify, Stage.VERIFY, Lock.SHARED),
    Part(await_machine_code, Stage.VERIFY, Lock.SHARED),
    Part(grade_accuracy, Stage.VERIFY, Lock.SHARED),
    Part(start_after_verification, Stage.VERIFY, Lock.SHARED),
    Part(sanitize_on_device, Stage.SANITIZE, Lock.SHARED),
    Part(conclude_sanitizing, Stage.SANITIZE, Lock.NONE),
    Part(count_accesses, Stage.SANITIZE, Lock.NONE),
)
MEASURING = (
    Part(measure, Stage.MEASURE, Lock.EXCLUSIVE),
    Part(disassemble, Stage.MEASURE, Lock.NONE),
    Part(audit, Stage.MEASURE, Lock.NONE),
)
NOT_MEASURING = (Part(disassemble, Stage.SANITIZE, Lock.NONE),)


def grade(
    submission: Submission | Unreadable,
    session: Session,
    options: GradingOptions = GradingOptions(),
    progress: Progress | None = None,
    problem: Problem = MATRIX_MULTIPLICATION,
) -> Report:
    """Grade one submission. The report always has a verdict, even after a failure of the judge."""
    if isinstance(submission, Unreadable):
        grading = Grading(submission.submission, session, options, progress or Silent(), problem)
        return _report(grading, submission.error)
    grading = Grading(submission, session, options, progress or Silent(), problem)
    parts = NOT_MEASURING if session.timing is None else MEASURING
    outcome = run(grading, CHECKING + parts)
    message = "scores come from a GPU, and so do verdicts that depend on timing"
    unscored = Unscored(reason="device", message=message)
    score = grading.measured.score if grading.measured else unscored
    return _report(grading, outcome or Accepted(score=score))


def run(grading: Grading, parts: Sequence[Part], *, own_processes: bool = True) -> Outcome | None:
    """Run one part after the other until one raises Ended, and return its outcome.

    own_processes: the processes are started together, and those that see the submission end.
    """
    session, held = grading.session, Lock.NONE
    try:
        if own_processes:
            session.start(cpu_sanitizer=grading.needs_cpu_sanitizer)
        with ExitStack() as lock:
            for part in parts:
                if part.lock is not held:
                    lock.close()
                    held = part.lock
                    if held is Lock.SHARED:
                        lock.enter_context(session.shared_lock(grading.progress))
                    elif held is Lock.EXCLUSIVE:
                        lock.enter_context(session.exclusive_lock(grading.progress))
                with grading.timed(part.stage):
                    part.run(grading)
        return None
    except Ended as ended:
        return ended.outcome
    except JudgeFailure:  # the device does not work
        raise
    except UsageError as error:  # another grading holds the GPU for too long
        return JudgeError(stage=Stage.READ, message=str(error))
    except Exception as error:
        stage = grading.times[-1].stage if grading.times else Stage.READ
        message, details = crash(error)
        return JudgeError(stage=stage, message=message, details=details)
    finally:
        grading.steps.close()
        if own_processes and (grading.program is not None or grading.compiled is not None):
            session.renew()
        elif own_processes:  # only the compiler has seen the submission
            session.compiler.close()


def _report(grading: Grading, outcome: Outcome) -> Report:
    compiled, disassembled = grading.compiled, grading.disassembled
    return Report(
        environment=Environment.here(
            grading.problem.version,
            nvrtc=compiled.nvrtc if compiled else None,
            isolation=grading.session.isolation(),
        ),
        created=grading.created,
        seed=grading.seed,
        quick=grading.quick,
        submission=grading.submission,
        device=grading.session.info,
        outcome=outcome,
        diagnostics=(
            *(compiled.warnings if compiled else ()),
            *(disassembled.warnings if disassembled else ()),
        ),
        kernel=grading.facts,
        verification=grading.verification,
        accuracy=grading.accuracy,
        sanitizing=tuple(grading.sanitizing),
        measurement=grading.measurement,
        counters=grading.counters,
        printed="".join(grading.printed)[:MAX_PRINTED],
        stages=tuple(grading.times),
    )
