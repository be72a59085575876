"""Examine a kernel for an explanation: compile it, check it on a few cases, count its accesses."""

from harness.judge.explain.examination import Examination
from harness.judge.grade import Lock, Part, run
from harness.judge.grading import Grading, GradingOptions
from harness.judge.progress import Progress, Silent
from harness.judge.session import Session
from harness.judge.stages.compile import await_machine_code, compile_submission, disassemble, load
from harness.judge.stages.count import count
from harness.judge.stages.outcomes import Ended
from harness.judge.stages.sanitize import conclude_sanitizing, sanitize_on_device
from harness.judge.stages.verify import start_references, verify
from harness.judge.submission import Unreadable
from harness.protocol.report import Outcome, Stage, Submission, Unsupported
from problem.problem import MATRIX_MULTIPLICATION, Problem


def examine(
    submission: Submission | Unreadable,
    session: Session,
    options: GradingOptions = GradingOptions(quick=True),
    progress: Progress | None = None,
    problem: Problem = MATRIX_MULTIPLICATION,
) -> Examination | Outcome:
    """Return what an explanation needs, or an outcome if the kernel does not compile."""
    if isinstance(submission, Unreadable):
        return submission.error
    grading = Grading(submission, session, options, progress or Silent(), problem, few_cases=True)
    if not grading.has_gpu:  # a core is free while the compiler works
        start_references(grading)
    parts = (
        Part(compile_submission, Stage.COMPILE, Lock.NONE),
        Part(_check_and_count, Stage.VERIFY, Lock.SHARED),
    )
    outcome = run(grading, parts)
    if grading.disassembled is None:
        assert outcome is not None
        return outcome
    return Examination(
        name=submission.name,
        source=submission.source,
        device=session.info,
        kernel=grading.disassembled.kernel,
        counters=grading.counters,
        outcome=outcome,
        blocks_depend=grading.ready is not None and grading.ready.blocks_depend,
        note=grading.why_uncounted,
    )


def _check_and_count(grading: Grading) -> None:
    """Check the kernel and count its accesses, even if it is wrong or cannot be loaded."""
    found: Ended | None = None
    try:
        for part in (load, verify, sanitize_on_device, conclude_sanitizing):
            part(grading)
    except Ended as ended:
        found = ended
    if grading.ready is not None:
        count(grading)
    elif found is not None and isinstance(found.outcome, Unsupported):
        grading.why_uncounted, found = found.outcome.message, None
    await_machine_code(grading)
    disassemble(grading)
    if found is not None:
        raise found
