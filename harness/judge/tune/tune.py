"""The tuner compiles, checks and times every variant of a kernel file, as a quick grading does."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pydantic import NonNegativeInt, PositiveInt

from harness import __version__
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.stages.compile import compile_kernel, disassemble_kernel, load_kernel
from harness.judge.stages.measure import impossible
from harness.judge.stages.prepared import prepared_cases
from harness.judge.stages.rounds import QUICK, Timed, timed_rounds
from harness.judge.stages.score import score
from harness.judge.stages.verify import run_cases
from harness.judge.tune.tunable import Setting, Tunables, find_tunables
from harness.protocol.compiler import Compiled, Disassembled, Kernel
from harness.protocol.device import Ready
from harness.protocol.errors import crash
from harness.protocol.report import (
    Accepted,
    DeviceInfo,
    DisassembledKernel,
    JudgeError,
    KernelFacts,
    Outcome,
    Score,
    Stage,
    Submission,
    TimeLimit,
    Unscored,
    Value,
    score_of,
)
from harness.protocol.timing import TimingWorkers
from problem.problem import MATRIX_MULTIPLICATION


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """How to tune.

    limit: variants to try at most. seconds: time limit of one launch; the ranked size takes the
    naive kernel 0.4 s on an H100.
    """

    limit: int = 100
    seed: int | None = None
    seconds: float = 20.0


class Variant(Value):
    """One setting of the tuned constants, and its result."""

    setting: Setting
    outcome: Outcome
    kernel: DisassembledKernel | KernelFacts | None = None
    """The facts of the kernel; None if it did not compile."""

    @property
    def score(self) -> Score | None:
        """The score, if there is one."""
        return score_of(self.outcome)


class Tuning(Value):
    """The result of a tuning. Its times are those of quick gradings and are never ranked."""

    judge: str
    created: datetime
    seed: NonNegativeInt
    """The seed of the inputs and of the sample."""
    submission: Submission
    device: DeviceInfo
    possible: PositiveInt
    """The number of variants that the file allows."""
    planned: PositiveInt
    """The number of variants that were to be tried: at most the limit."""
    variants: tuple[Variant, ...]
    """The variants that were tried, the file as written first; fewer after an interruption."""

    @property
    def original(self) -> Variant | None:
        return self.variants[0] if self.variants else None

    @property
    def best(self) -> Variant | None:
        """The variant with the highest score."""
        scored = [(variant.score.ratio, variant) for variant in self.variants if variant.score]
        return max(scored, key=lambda pair: pair[0])[1] if scored else None

    @property
    def best_source(self) -> str | None:
        """The file with the best values."""
        if self.best is None:
            return None
        return find_tunables(self.submission.source).source(self.best.setting)


class Watcher(Progress, Protocol):
    """A progress display that also shows the plan and the result of each variant."""

    def plan(self, planned: int, possible: int, seed: int) -> None: ...

    def trying(self, number: int, setting: Setting) -> None: ...

    def tried(self, number: int, variant: Variant) -> None: ...


def tune(
    submission: Submission, session: Session, options: TuningOptions, watcher: Watcher
) -> Tuning:
    """Try the variants of one kernel file; an interruption ends it with the variants so far.

    Raises UsageError if there is nothing to tune, or the GPU is in use.
    """
    seed = secrets.randbits(48) if options.seed is None else options.seed
    tunables = find_tunables(submission.source)
    settings = tunables.settings(options.limit, seed)
    for setting in settings:
        tunables.source(setting)  # raises where a launch line has no value
    trial = Trial(tunables, session, watcher, seed, options.seconds)
    variants: list[Variant] = []
    with session.exclusive_lock(watcher):
        watcher.plan(len(settings), tunables.count, seed)
        with suppress(KeyboardInterrupt):  # the caller sees that fewer were tried than planned
            for number, setting in enumerate(settings, 1):
                watcher.trying(number, setting)
                variants.append(trial.judge(setting))
                watcher.tried(number, variants[-1])
        return Tuning(
            judge=__version__,
            created=datetime.now(UTC).replace(microsecond=0),
            seed=seed,
            submission=submission,
            device=session.info,
            possible=tunables.count,
            planned=len(settings),
            variants=tuple(variants),
        )


@dataclass
class Trial:
    """Judges one variant after another in the same workers."""

    tunables: Tunables
    session: Session
    progress: Progress
    seed: int
    seconds: float
    workers_are_fresh: bool = True

    def judge(self, setting: Setting) -> Variant:
        variant = self._judge(setting)
        if not self.workers_are_fresh and _may_be_a_worker_limit(variant.outcome):
            # A worker's limits of CPU time and memory hold for its whole life.
            self.session.renew()
            variant = self._judge(setting)
        self.workers_are_fresh = False
        return variant

    def _judge(self, setting: Setting) -> Variant:
        try:
            self.progress.begin(Stage.COMPILE, None)
            source = self.tunables.source(setting)
            compiled = compile_kernel(self.session.compiler, source, self.session.arch)
            if not isinstance(compiled, Compiled):
                return Variant(setting=setting, outcome=compiled)
            outcome, known = self._run(compiled.kernel)
            return Variant(setting=setting, outcome=outcome, kernel=known)
        except Exception as error:
            message, details = crash(error)
            outcome = JudgeError(stage=Stage.COMPILE, message=message, details=details)
            return Variant(setting=setting, outcome=outcome)

    def _run(self, kernel: Kernel) -> tuple[Outcome, KernelFacts]:
        timing = self.session.timing
        if timing is None:
            unscored = Unscored(reason="device", message="scores come from a GPU")
            return self._failure(kernel) or Accepted(score=unscored), kernel.facts
        with ThreadPoolExecutor(1) as thread:
            disassembling = thread.submit(disassemble_kernel, self.session.compiler, kernel)
            failure = self._failure(kernel)
        if failure is not None:
            return failure, kernel.facts
        found = disassembling.result()
        if not isinstance(found, Disassembled):
            return found, kernel.facts
        return self._timed(kernel, found.kernel, timing), found.kernel

    def _failure(self, kernel: Kernel) -> Outcome | None:
        """Return why the variant need not be timed."""
        ready = load_kernel(self.session.device, kernel)
        if not isinstance(ready, Ready):
            return ready
        seed, sampled = self.seed, self.session.timing is None
        chosen = MATRIX_MULTIPLICATION.cases(seed, quick=True, sampled=sampled)
        self.progress.begin(Stage.VERIFY, len(chosen))
        failure = run_cases(
            self.session.device,
            kernel.launch,
            prepared_cases(MATRIX_MULTIPLICATION, chosen, seed),
            seed=seed,
            seconds=self.seconds,
            results=[],
            printed=[],
            progress=self.progress,
        )
        return failure.outcome if failure else None

    def _timed(self, kernel: Kernel, known: DisassembledKernel, timing: TimingWorkers) -> Outcome:
        self.progress.begin(Stage.MEASURE, None)
        ready = load_kernel(timing.kernel, kernel)
        if not isinstance(ready, Ready):
            return ready
        timed = timed_rounds(
            timing,
            MATRIX_MULTIPLICATION,
            QUICK,
            baseline=False,
            seconds=self.seconds,
            progress=self.progress,
            audit=False,
        )
        if not isinstance(timed, Timed):
            return timed
        result = score(timed.rounds, self.session.info, MATRIX_MULTIPLICATION.ranked.shape)
        return impossible(result, self.session.info, known) or Accepted(score=result)


def _may_be_a_worker_limit(outcome: Outcome) -> bool:
    return isinstance(outcome, JudgeError) or (
        isinstance(outcome, TimeLimit) and outcome.stage is Stage.COMPILE
    )
