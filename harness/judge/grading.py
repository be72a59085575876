"""One grading: its options, its session, and what the stages have found so far."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.steps import Executor, Step, Steps
from harness.protocol.compiler import COMPILE_SECONDS, Compiled, Disassembled, Kernel, PtxProgram
from harness.protocol.device import LaunchInputs, Ready
from harness.protocol.report import (
    Accuracy,
    Counters,
    Finding,
    KernelFacts,
    Measurement,
    Outcome,
    Sanitizing,
    Score,
    Stage,
    StageTime,
    Submission,
    Unscored,
    Verification,
)
from problem.cases import Case, Shape
from problem.inputs import Matrix
from problem.launcher import LaunchLine
from problem.problem import MATRIX_MULTIPLICATION, Inputs, Problem
from problem.reference import Comparison

COUNTING_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GradingOptions:
    """How to grade.

    quick: fewer cases, sanitizer tools and rounds.
    sizes: also score other sizes, for information.
    seconds: time limit of one launch; the ranked size takes the naive kernel 0.4 s on an H100.
    compile_seconds: time limit of the compiler.
    counted_shape: the size at which accesses are counted; None is the ranked one, where possible.
    counting_seconds: time limit of counting accesses.
    """

    quick: bool = False
    sizes: bool = False
    seed: int | None = None
    seconds: float = 20.0
    compile_seconds: float = COMPILE_SECONDS
    counted_shape: Shape | None = None
    counting_seconds: float = COUNTING_SECONDS


def launch_inputs(
    problem: Problem, case: Case, inputs: Inputs, blocks: tuple[int, ...] | None = None
) -> LaunchInputs:
    """Return what a device is given for one launch."""
    arguments = problem.arguments(case.shape)
    return LaunchInputs(arguments=arguments, matrices=inputs, blocks=blocks)


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that the kernel got wrong, and the verdict."""

    case: Case
    outcome: Outcome


class Compared(NamedTuple):
    """An output, or a part of one, and how it compares with what it should be."""

    case: Case
    inputs: Inputs
    """The inputs on which the output depends."""
    output: Matrix
    comparison: Comparison
    corner: tuple[int, int] = (0, 0)
    """The first row and column, if it is a part of the whole output."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a measurement, before the audit of two launches.

    first: the comparison of one of the first two launches. audit: that of a timed launch, if one is
        audited.
    """

    score: Score | Unscored
    measurement: Measurement
    first: Step[Comparison]
    audit: Step[Compared] | None


@dataclass
class Grading:
    """A grading. Each stage reads the findings of the stages before it and adds its own."""

    submission: Submission
    session: Session
    options: GradingOptions
    progress: Progress
    problem: Problem = MATRIX_MULTIPLICATION
    few_cases: bool = False
    """The kernel is only explained, so a few small cases suffice."""

    created: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    times: list[StageTime] = field(default_factory=list)
    program: PtxProgram | None = None
    compiled: Compiled | None = None
    disassembled: Disassembled | None = None
    ready: Ready | None = None
    verification: Verification | None = None
    accuracy: Accuracy | None = None
    printed: list[str] = field(default_factory=list)
    failure: Failure | None = None
    """Verification went wrong, and the sanitizers may say why."""
    sanitizing: list[Sanitizing] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    sanitizer_outcome: Outcome | None = None
    """The error of a launch under a sanitizer, if no finding explains it."""
    measured: Measured | None = None
    measurement: Measurement | None = None
    counters: Counters | None = None
    why_uncounted: str = ""

    def __post_init__(self) -> None:
        self.steps = Steps(self.session)
        chosen = self.options.seed
        self.seed = secrets.randbits(48) if chosen is None else chosen

    @property
    def quick(self) -> bool:
        return self.options.quick

    @property
    def grades_accuracy(self) -> bool:
        """Return whether a correct kernel gets an accuracy grade."""
        return not self.quick and bool(self.problem.accuracy_inputs)

    @property
    def has_gpu(self) -> bool:
        """Return whether the device is a GPU: only a GPU gives scores."""
        return self.session.timing is not None

    @property
    def needs_cpu_sanitizer(self) -> bool:
        """Return whether a CPU device that only sanitizes will surely be needed."""
        return not self.quick or self.few_cases if self.has_gpu else not self.few_cases

    @property
    def watched_by(self) -> Executor:
        """Return the process in which the CPU device watches the kernel. A kernel that is only
        explained is translated once without a GPU, in the process that verifies it."""
        if self.session.cpu_sanitizer is not None:
            return Executor.CPU_SANITIZER
        return Executor.DEVICE if self.few_cases else Executor.SANITIZER

    @property
    def kernel(self) -> Kernel:
        assert self.compiled is not None, "the kernel has not been compiled"
        return self.compiled.kernel

    @property
    def loadable(self) -> Kernel | PtxProgram:
        """Return the kernel, or as much of it as the CPU device needs."""
        if self.compiled is None and self.program is not None:
            return self.program
        return self.kernel

    @property
    def launch(self) -> LaunchLine:
        return self.loadable.launch

    @property
    def facts(self) -> KernelFacts | None:
        """Return all that is known of the kernel's machine code."""
        if self.disassembled is not None:
            return self.disassembled.kernel
        return self.compiled.kernel.facts if self.compiled else None

    @contextmanager
    def timed(self, stage: Stage) -> Iterator[None]:
        """A context whose time is added to that of the stage."""
        before = self.times.pop().seconds if self.times and self.times[-1].stage is stage else 0.0
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = before + time.monotonic() - started
            self.times.append(StageTime(stage=stage, seconds=seconds))
