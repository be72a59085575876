"""The whole story of a grading: read → compile → verify → sanitize → measure → report."""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Thread
from typing import TypeVar

from harness import __version__
from harness.judge.explain.examined import Examined
from harness.judge.explain.workload import all_products_executed
from harness.judge.progress import Progress, Silent
from harness.judge.stages import interim
from harness.judge.stages.compile import compile_kernel, disassemble_kernel, load_kernel
from harness.judge.stages.measure import Measured, audited, measure
from harness.judge.stages.preparation import Preparation
from harness.judge.stages.sanitize import (
    Begun,
    Watching,
    begin_beside,
    begin_on_device,
    diagnose_hang,
    sanitize,
    tools_of_a_grading,
    unsafe,
)
from harness.judge.stages.verify import Failure, prepare, verify
from harness.judge.submission import Unreadable
from harness.judge.workers.session import Session
from harness.protocol import background
from harness.protocol.compiler import (
    COMPILE_SECONDS,
    Compiled,
    Disassembled,
    Kernel,
    PtxProgram,
)
from harness.protocol.device import (
    Count,
    Counted,
    LaunchInputs,
    LoadAhead,
    Ready,
    Uncounted,
)
from harness.protocol.errors import JudgeFailure, UsageError, crash
from harness.protocol.profile import NoProfile, Profile, ReadCounters
from harness.protocol.report import (
    MAX_PRINTED,
    Accepted,
    Counters,
    DisassembledKernel,
    Environment,
    HostMemoryKind,
    JudgeError,
    KernelFacts,
    Measurement,
    MemoryFault,
    Outcome,
    Report,
    Sanitizing,
    Stage,
    StageTime,
    Submission,
    TimeLimit,
    Unscored,
    Unsupported,
    Verification,
    WrongAnswer,
)
from harness.protocol.request import Fault
from harness.protocol.timing import TimingWorkers
from problem.cases import CASES_VERSION, OTHER_SIZES, Case, Shape, counting_case

AnyOutcome = TypeVar("AnyOutcome", Outcome, Outcome | None)

COUNTED_BLOCKS, COUNTING_SECONDS = 2, 30.0
"""What to count memory traffic on: seconds even when instrumented."""

EXAMINED = Shape(256, 1024, 256)
"""What an explanation counts, so that two kernels' counters can be compared."""

EXAMINED_LARGER = Shape(1152, 1024, 1280)
"""The same, of a kernel that has other matrix instructions than those that it executes there: a
small problem may have a way of its own."""

LOOKED_OVER_FLOP = 1 << 26
"""Of the cases to which an explanation without a GPU holds a kernel: every access is watched."""

PROFILED, PROFILE_SECONDS = Shape(4096, 3072, 2048), 120.0
"""An eighth of the ranked size: `ncu` repeats a launch for each group of counters."""

SOON_DISASSEMBLED = 1 << 20
"""Bytes of machine code that the disassembler reads in two seconds."""

SANITIZE_SECONDS = 120.0
"""Limit of one device's sanitizing: all tools, all shapes."""


@dataclass(frozen=True, slots=True)
class GradingOptions:
    """How to grade.

    sizes: also score other sizes, for information.
    seconds: time limit of one launch; the ranked size takes the naive kernel 0.4 s on an H100.
    compile_seconds: time limit of the compiler.
    examined: the size at which an explanation counts accesses; None is the usual one.
    counting_seconds: how long counting may take.
    """

    quick: bool = False
    sizes: bool = False
    seed: int | None = None
    host_memory: tuple[HostMemoryKind, ...] = tuple(HostMemoryKind)
    seconds: float = 20.0
    compile_seconds: float = COMPILE_SECONDS
    examined: Shape | None = None
    counting_seconds: float = COUNTING_SECONDS


def grade(
    submission: Submission | Unreadable,
    session: Session,
    options: GradingOptions = GradingOptions(),
    progress: Progress | None = None,
) -> Report:
    """Grade one submission; whatever becomes of it is a verdict in the report."""
    grading = _Grading(session, options, progress or Silent())
    if isinstance(submission, Unreadable):
        return grading.report(submission.submission, submission.error)
    return grading.report(submission, grading.outcome(submission, grading.stages))


def examine(
    submission: Submission | Unreadable,
    session: Session,
    options: GradingOptions = GradingOptions(quick=True),
    progress: Progress | None = None,
) -> Examined | Outcome:
    """What an explanation needs: the kernel compiled, held to a few cases, its accesses counted.
    An outcome where it cannot be compiled."""
    if isinstance(submission, Unreadable):
        return submission.error
    grading = _Grading(session, options, progress or Silent(), only_examines=True)
    failure = grading.outcome(submission, grading.look_over)
    if grading.disassembled is None:
        assert failure is not None
        return failure
    return Examined(
        name=submission.name,
        source=submission.source,
        device=session.info,
        kernel=grading.disassembled.kernel,
        counters=grading.counters,
        outcome=failure,
        blocks_share_work=bool(grading.counters and grading.counters.blocks_depend),
        profile=grading.profile,
        note=grading.uncounted,
    )


@dataclass
class _Grading:
    """One grading, and what its stages have found so far."""

    session: Session
    options: GradingOptions
    progress: Progress
    only_examines: bool = False
    """Most launches will be watched, by checks or counters."""
    created: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    compiled: Compiled | None = None
    disassembling: Future[Disassembled | Outcome] | None = None
    """What the compiler is at while others check the kernel."""
    disassembled: Disassembled | None = None
    verification: Verification | None = None
    printed: list[str] = field(default_factory=list)
    wrong: Outcome | None = None
    """What verification says, where the sanitizers may say more."""
    sanitizing: tuple[Sanitizing, ...] = ()
    measurement: Measurement | None = None
    counters: Counters | None = None
    profile: Profile | None = None
    uncounted: str = ""
    """Why there are no counters, where it is known."""
    times: list[StageTime] = field(default_factory=list)
    sanitizing_beside: Begun | None = None
    counting_beside: Future[Counted | Uncounted | Fault] | None = None
    loading: Thread | None = None
    preparation: Preparation | None = None
    """What the CPU device and this process are at while the GPU verifies, or since before this
    grading had it."""

    def __post_init__(self) -> None:
        chosen = self.options.seed
        self.seed = secrets.randbits(48) if chosen is None else chosen

    def outcome(
        self, submission: Submission, stages: Callable[[Kernel], AnyOutcome]
    ) -> AnyOutcome | Outcome:
        """All stages, until one has the last word. Compiling waits for no GPU."""
        try:
            quick, alone = self.options.quick, self.session.cpu_sanitizer is None
            beside = not quick or self.only_examines
            self.session.prepare(tools_of_a_grading(quick=quick, alone=alone), beside)
            with self._timed(Stage.COMPILE):
                compiled = self._compile(submission)
                if self.loading is not None:
                    self.loading.join()
            if not isinstance(compiled, Compiled):
                self.session.renew_compiler()
                return compiled
            try:
                if self.session.works_ahead:
                    self._work_ahead(compiled.kernel)
                return stages(compiled.kernel)
            finally:
                self._end_disassembling()
                self.session.renew()
                if self.preparation is not None:
                    self.preparation.close()
        except JudgeFailure:  # the device does not work
            raise
        except UsageError as error:  # the GPU is taken
            return JudgeError(stage=Stage.READ, message=str(error))
        except Exception as error:
            stage = self.times[-1].stage if self.times else Stage.READ
            message, details = crash(error)
            return JudgeError(stage=stage, message=message, details=details)

    def report(self, submission: Submission, outcome: Outcome) -> Report:
        compiled, disassembled = self.compiled, self.disassembled
        return Report(
            environment=Environment(
                judge=__version__,
                cases=CASES_VERSION,
                python=platform.python_version(),
                system=f"{platform.system()} {platform.release()} {platform.machine()}",
                nvrtc=compiled.nvrtc if compiled else None,
                isolation=self.session.isolation(),
            ),
            created=self.created,
            seed=self.seed,
            quick=self.options.quick,
            submission=submission,
            device=self.session.info,
            outcome=outcome,
            diagnostics=(
                *(compiled.warnings if compiled else ()),
                *(disassembled.warnings if disassembled else ()),
            ),
            kernel=self.kernel,
            verification=self.verification,
            sanitizing=self.sanitizing,
            measurement=self.measurement,
            counters=self.counters,
            printed="".join(self.printed)[:MAX_PRINTED],
            stages=tuple(self.times),
        )

    @property
    def kernel(self) -> KernelFacts | None:
        if self.disassembled is not None:
            return self.disassembled.kernel
        return self.compiled.kernel.facts if self.compiled else None

    def look_over(self, kernel: Kernel) -> Outcome | None:
        """Verify on a few cases, sanitize, count: None where nothing was wrong so far."""
        with self.session.turn(self.progress):  # the GPU's counters tell of whatever runs there
            outcome = self._looked_over(kernel)
            known = self._disassemble(kernel)
        return outcome if isinstance(known, DisassembledKernel) else known

    def _looked_over(self, kernel: Kernel) -> Outcome | None:
        with self._timed(Stage.COMPILE):
            if self.session.cpu_sanitizer is not None:
                self.session.cpu_sanitizer.load(kernel)
            ready = load_kernel(self.session.device, kernel, mostly_watched=self.only_examines)
            if not isinstance(ready, Ready):
                self.uncounted = getattr(ready, "message", "")
                return None if isinstance(ready, Unsupported) else ready
        with self._timed(Stage.VERIFY):
            if self.session.timing is None:
                self.preparation = prepare(
                    self.seed, quick=True, sampled=True, max_flop=LOOKED_OVER_FLOP
                )
            failure = self._verify(kernel, ready)
        outcome = failure.outcome if failure else None
        if outcome is None or _worth_sanitizing(outcome):
            with self._timed(Stage.SANITIZE):
                watching = self._sanitize(kernel, failure)
                outcome = self._sanitized(watching) if isinstance(watching, Watching) else watching
        if outcome is None and self.session.timing is not None:
            self._read_counters()
        known = self._disassemble(kernel)
        if isinstance(known, DisassembledKernel):
            self._count_what_is_explained(known)
        return outcome

    def _read_counters(self) -> None:
        """What the GPU's own counters say, where they may be read."""
        found = self.session.device.ask(ReadCounters(shape=PROFILED, seconds=PROFILE_SECONDS))
        if isinstance(found, Profile):
            self.profile = found
        else:
            self.uncounted = found.why if isinstance(found, NoProfile) else found.message

    def stages(self, kernel: Kernel) -> Outcome:
        with ExitStack() as company:
            company.enter_context(self.session.company(self.progress))
            checked = self._checked_on_device(kernel)
            if not isinstance(checked, Watching):
                return checked
            if self.session.cpu_sanitizer is not None:
                company.close()  # the CPU device does the rest, and the GPU need not wait for it
            outcome = self._checked_beside(kernel, checked)
            if outcome is not None:
                return outcome
        timing = self.session.timing
        if timing is None:
            message = "scores come from a GPU; this device gives every verdict but no score"
            return Accepted(score=Unscored(reason="device", message=message))
        with self.session.turn(self.progress), self._timed(Stage.MEASURE):
            measured = self._measured(kernel, timing)
        with self._timed(Stage.MEASURE):
            if isinstance(measured, Measured):
                measured = audited(measured, self.seed, self.progress)
            if not isinstance(measured, Measured):
                return measured
        self.measurement = measured.measurement
        return Accepted(score=measured.score)

    def _checked_on_device(self, kernel: Kernel) -> Watching | Outcome:
        """The verdict of a kernel with which the sanitizers have nothing to do any more."""
        with self._timed(Stage.COMPILE):
            ready = load_kernel(self.session.device, kernel)
            if not isinstance(ready, Ready):
                return ready
        self._begin_beside(kernel)
        if self.session.timing is not None:
            begin_on_device(
                self.session.device,
                kernel,
                self.seed,
                quick=self.options.quick,
                seconds=SANITIZE_SECONDS,
            )
        with self._timed(Stage.VERIFY):
            failure = self._verify(kernel, ready)
            if failure is not None and not _worth_sanitizing(failure.outcome):
                return failure.outcome
        with self._timed(Stage.SANITIZE):
            if failure is None:
                self._begin_counting(kernel)
            return self._sanitize(kernel, failure)

    def _checked_beside(self, kernel: Kernel, watching: Watching) -> Outcome | None:
        """The verdict of a kernel that is wrong or unsafe."""
        with self._timed(Stage.SANITIZE):
            found = self._sanitized(watching)
            if found is not None:
                return found
            if self._disassembles_while_measured(kernel):
                return None
            known = self._disassemble(kernel)
            if not isinstance(known, DisassembledKernel):
                return known
            if not self.options.quick:
                self._count(counting_case(self.seed), known)
            return None

    def _disassembles_while_measured(self, kernel: Kernel) -> bool:
        """Nobody but the rounds of a quick grading must wait for what soon ends."""
        soon = len(kernel.cubin) <= SOON_DISASSEMBLED
        return self.options.quick and self.session.timing is not None and soon

    @contextmanager
    def _timed(self, stage: Stage) -> Iterator[None]:
        before = self.times.pop().seconds if self.times and self.times[-1].stage is stage else 0.0
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = before + time.monotonic() - started
            self.times.append(StageTime(stage=stage, seconds=seconds))

    def _compile(self, submission: Submission) -> Compiled | Outcome:
        self.progress.begin(Stage.COMPILE, None)
        compiled = compile_kernel(
            self.session.compiler,
            submission.source,
            self.session.arch,
            self.options.compile_seconds,
            self._load_ahead if self.session.timing is None else None,
        )
        if isinstance(compiled, Compiled):
            self.compiled = compiled
            self.progress.found(interim.of_kernel(compiled.kernel.facts, compiled.warnings))
            # Translating a large kernel takes seconds: a quick grading does it only to say what
            # failed.
            if self.session.cpu_sanitizer is not None and not self.options.quick:
                self.session.cpu_sanitizer.load(compiled.kernel)
            if self.session.timing is not None or self.only_examines:
                self._begin_disassembling(compiled.kernel)
        return compiled

    def _begin_disassembling(self, kernel: Kernel) -> None:
        """Where the processor has little else to do, or there is no doubt that it is needed."""
        compiler = self.session.compiler
        self.disassembling = background.begin(disassemble_kernel, compiler, kernel)

    def _disassemble(self, kernel: Kernel) -> DisassembledKernel | Outcome:
        """Whoever needs it first waits for it."""
        if self.disassembled is None:
            begun = self.disassembling
            found = begun.result() if begun else disassemble_kernel(self.session.compiler, kernel)
            if not isinstance(found, Disassembled):
                return found
            self.disassembled = found
            self.progress.found(interim.of_machine_code(found.kernel, found.warnings))
        return self.disassembled.kernel

    def _end_disassembling(self) -> None:
        if self.disassembling is not None and not self.disassembling.done():
            self.session.renew_compiler()
            wait([self.disassembling])

    def _load_ahead(self, program: PtxProgram) -> None:
        """The CPU device needs no machine code, and translates as long as that takes."""
        request = LoadAhead(program=program, mostly_watched=self.only_examines)
        self.loading = Thread(target=self.session.device.ask, args=(request,))
        self.loading.start()

    def _work_ahead(self, kernel: Kernel) -> None:
        """While others have the GPU."""
        self._begin_beside(kernel)
        self.preparation = prepare(self.seed, quick=self.options.quick, sampled=False, ahead=None)
        self._begin_counting(kernel)

    def _begin_beside(self, kernel: Kernel) -> None:
        """The CPU device waits for no GPU."""
        beside = self.session.cpu_sanitizer
        if beside is None or self.options.quick or self.sanitizing_beside is not None:
            return
        self.sanitizing_beside = begin_beside(beside, kernel, self.seed, seconds=SANITIZE_SECONDS)

    def _begin_counting(self, kernel: Kernel) -> None:
        """By the CPU device, once it has sanitized the kernel."""
        beside = self.session.cpu_sanitizer
        if beside is None or self.options.quick or self.counting_beside is not None:
            return
        known = self._disassemble(kernel)
        if isinstance(known, DisassembledKernel):
            case = counting_case(self.seed)
            self.counting_beside = beside.count(self._counting(case, known))

    def _verify(self, kernel: Kernel, ready: Ready, max_flop: int | None = None) -> Failure | None:
        verified = verify(
            self.session.device,
            kernel.launch,
            self.seed,
            quick=self.options.quick,
            sampled=self.session.timing is None,
            blocks_depend=ready.blocks_depend_on_one_another,
            seconds=self.options.seconds,
            printed=self.printed,
            progress=self.progress,
            begun=self.preparation,
        )
        if isinstance(verified, Verification):
            self.verification = verified
            self.progress.found(interim.of_verification(verified))
            return None
        self.progress.found(interim.of_failure(verified.outcome))
        cpu_sanitizer = self.session.cpu_sanitizer
        if cpu_sanitizer is not None and self.sanitizing_beside is not None:
            cpu_sanitizer.reset()  # it is asked for something else now
            self.sanitizing_beside = self.counting_beside = None
        if cpu_sanitizer is not None and isinstance(verified.outcome, TimeLimit):
            hung = diagnose_hang(cpu_sanitizer, kernel, verified.case, self.seed)
            return Failure(verified.case, hung or verified.outcome)
        return verified

    def _sanitize(self, kernel: Kernel, failure: Failure | None) -> Watching | Outcome:
        self.wrong = failure.outcome if failure else None
        watching = sanitize(
            self.session.device,
            self.session.cpu_sanitizer,
            kernel,
            self.seed,
            quick=self.options.quick,
            failed=failure.case if failure else None,
            seconds=SANITIZE_SECONDS,
            progress=self.progress,
            begun=self.sanitizing_beside,
        )
        return watching if isinstance(watching, Watching) else self.wrong or watching

    def _sanitized(self, watching: Watching) -> Outcome | None:
        """Unsafe beats wrong: it is usually why a kernel is wrong."""
        found = watching.results()
        self.sanitizing = found.programs
        seen = self.wrong.counterexample if isinstance(self.wrong, WrongAnswer) else None
        return unsafe(found.findings, seen) or self.wrong or found.outcome

    def _count(self, case: Case, known: DisassembledKernel) -> None:
        """What the memory system would do, where the CPU device can tell in time. Of C, which few
        blocks have written to, nothing is asked here."""
        beside = self.session.cpu_sanitizer
        if beside is None:
            counted = self.session.device.ask(self._counting(case, known))
        else:
            begun = self.counting_beside or beside.count(self._counting(case, known))
            counted = begun.result()
        if isinstance(counted, Fault):
            self.uncounted = f"its accesses could not be counted: {counted.message}"
        if isinstance(counted, Counted):
            self.counters = counted.counters

    def _counting(self, case: Case, known: DisassembledKernel) -> Count:
        A, B = case.draw(self.seed)
        return Count(
            inputs=LaunchInputs(shape=case.shape, A=A, B=B),
            max_blocks=COUNTED_BLOCKS,
            code=known.lines,
            seconds=self.options.counting_seconds,
        )

    def _count_what_is_explained(self, known: DisassembledKernel) -> None:
        self._count(Case(self.options.examined or EXAMINED), known)
        chosen, counters = self.options.examined, self.counters
        if chosen is None and counters is not None and not all_products_executed(known, counters):
            self.counters = None
            self._count(Case(EXAMINED_LARGER), known)

    def _measured(self, kernel: Kernel, workers: TimingWorkers) -> Measured | Outcome:
        return measure(
            workers,
            self.session.info,
            kernel,
            lambda: self._disassemble(kernel),
            compile_seconds=sum(t.seconds for t in self.times if t.stage is Stage.COMPILE),
            host_memory=() if self.options.quick else self.options.host_memory,
            quick=self.options.quick,
            sizes=OTHER_SIZES if self.options.sizes else (),
            seed=self.seed,
            seconds=self.options.seconds,
            progress=self.progress,
        )


def _worth_sanitizing(outcome: Outcome) -> bool:
    """Whether the sanitizer may say more of a failure than verification did."""
    return isinstance(outcome, WrongAnswer) or (
        isinstance(outcome, MemoryFault)
        and all(finding.at.line is None for finding in outcome.findings)
    )
