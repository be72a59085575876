"""Examine a kernel for an explanation: compile it, check it on a few cases, count its accesses."""

from __future__ import annotations

from harness.judge.explain.examination import Examination
from harness.judge.grade import Lock, Part, run
from harness.judge.grading import Grading, GradingOptions
from harness.judge.progress import Progress, Silent
from harness.judge.session import Session
from harness.judge.stages.compile import await_machine_code, compile_submission, disassemble, load
from harness.judge.stages.count import count
from harness.judge.stages.sanitize import sanitize_in_background, sanitize_on_device
from harness.judge.stages.verify import start_references, verify
from harness.judge.submission import Unreadable
from harness.protocol.device import NoProfile, Profile, ReadCounters
from harness.protocol.report import Outcome, Stage, Submission, Unsupported
from problem.cases import Shape
from problem.problem import MATRIX_MULTIPLICATION, Problem

PROFILED_SHAPE, PROFILE_SECONDS = Shape(4096, 3072, 2048), 120.0
"""An eighth of the ranked size: `ncu` repeats a launch for each group of counters."""


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
    if not grading.scores:  # a core is free while the compiler works
        start_references(grading)
    examination = _ExclusivePart()
    parts = (
        Part(compile_submission, Stage.COMPILE, Lock.NONE),
        Part(examination.run, Stage.VERIFY, Lock.EXCLUSIVE),
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
        blocks_share_work=bool(
            (grading.counters and grading.counters.blocks_depend)
            or (grading.ready and grading.ready.blocks_depend_on_one_another)
        ),
        profile=examination.profile,
        note=examination.note or grading.why_uncounted,
    )


class _ExclusivePart:
    """The part of an examination that needs an exclusive lock: a GPU's hardware counters count all
    kernels that run."""

    def __init__(self) -> None:
        self.profile: Profile | None = None
        self.note = ""

    def run(self, grading: Grading) -> Outcome | None:
        """Check the kernel and count its accesses, even if it is wrong."""
        outcome = load(grading)
        if grading.ready is not None:
            outcome = _checked(grading)
            if outcome is None and grading.scores:
                self._read_counters(grading)
        elif isinstance(outcome, Unsupported):
            self.note, outcome = outcome.message, None
        if grading.ready is not None:
            count(grading)
        return await_machine_code(grading) or disassemble(grading) or outcome

    def _read_counters(self, grading: Grading) -> None:
        """Read the GPU's hardware counters, if they may be read."""
        request = ReadCounters(shape=PROFILED_SHAPE, seconds=PROFILE_SECONDS)
        found = grading.session.device.ask(request)
        if isinstance(found, Profile):
            self.profile = found
        else:
            self.note = found.why if isinstance(found, NoProfile) else found.message


def _checked(grading: Grading) -> Outcome | None:
    return verify(grading) or sanitize_on_device(grading) or sanitize_in_background(grading)
