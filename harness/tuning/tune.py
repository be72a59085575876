"""The tuner: every variant of a kernel file compiled, checked and timed as a quick grading does."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from pydantic import NonNegativeInt, PositiveInt

from harness import __version__
from harness.compiling.kernel import DEFAULT_ARCH, Compiled
from harness.devices.available import open_device
from harness.devices.device import Fault, Ready
from harness.report import (
    Accepted,
    DeviceInfo,
    DeviceKind,
    JudgeError,
    KernelFacts,
    Outcome,
    Score,
    Stage,
    Submission,
    TimeLimit,
    Unscored,
    Value,
)
from harness.stages.compile import compile_kernel, load_kernel
from harness.stages.measure import impossible
from harness.stages.progress import Progress
from harness.stages.rounds import QUICK, Timed, timed_rounds
from harness.stages.score import score
from harness.stages.verify import Failure, verify
from harness.submission import UsageError, read
from harness.tuning.tunable import Setting, Tunables, find_tunables
from harness.workers.gpu_lock import alone_on
from harness.workers.remote import RemoteBench, RemoteCompiler


@dataclass(frozen=True, slots=True)
class Options:
    """How to tune.

    limit: variants to try at most. seconds: time limit of one launch; the ranked size takes the
    naive kernel 0.4 s on an H100.
    """

    device: Literal["cuda", "cpu"] = "cuda"
    limit: int = 100
    seed: int | None = None
    seconds: float = 20.0


class Variant(Value):
    """One setting of the tuned constants, and what came of it."""

    setting: Setting
    outcome: Outcome
    kernel: KernelFacts | None = None
    """None where it did not compile."""

    @property
    def score(self) -> Score | None:
        """The score, where there is one."""
        if isinstance(self.outcome, Accepted) and isinstance(self.outcome.score, Score):
            return self.outcome.score
        return None


class Tuning(Value):
    """All that a tuning found. Times are those of quick gradings: to steer by, never ranked."""

    judge: str
    created: datetime
    seed: NonNegativeInt
    """Drew the inputs, and the sample where not all variants were tried."""
    submission: Submission
    device: DeviceInfo
    possible: PositiveInt
    """Variants that the file allows."""
    planned: PositiveInt
    """Variants that were to be tried: fewer where there are more than the limit."""
    variants: tuple[Variant, ...]
    """Those that were tried, the file as it stands first: fewer after an interruption."""

    @property
    def as_it_stands(self) -> Variant | None:
        return self.variants[0] if self.variants else None

    @property
    def best(self) -> Variant | None:
        """The highest score."""
        scored = [(variant.score.ratio, variant) for variant in self.variants if variant.score]
        return max(scored, key=lambda pair: pair[0])[1] if scored else None

    @property
    def best_source(self) -> str | None:
        """The file with the best values put in."""
        if self.best is None:
            return None
        return find_tunables(self.submission.source).source(self.best.setting)


class Watcher(Progress, Protocol):
    """Progress, told besides what is planned and what came of each variant."""

    def plan(self, planned: int, possible: int, seed: int) -> None: ...

    def trying(self, number: int, setting: Setting) -> None: ...

    def tried(self, number: int, variant: Variant) -> None: ...


def tune(path: Path, options: Options, watcher: Watcher) -> Tuning | JudgeError:
    """Try the variants of one kernel file; an interruption (Ctrl-C) ends it with what there is.

    Raises UsageError when there is nothing to tune, or no such device.
    """
    submission, unreadable = read(path)
    if unreadable is not None:
        raise UsageError(f"{path}: {unreadable.message}")
    seed = secrets.randbits(48) if options.seed is None else options.seed
    try:
        tunables = find_tunables(submission.source)
        settings = tunables.settings(options.limit, seed)
        for setting in settings:
            tunables.source(setting)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    with ExitStack() as stack:
        compiler, device = RemoteCompiler(), open_device(options.device)
        bench = RemoteBench(device)
        for close in (compiler.worker.close, device.close, bench.close):
            stack.callback(close)
        compiler.worker.start()
        info = device.info()
        if isinstance(info, Fault):
            return JudgeError(stage=Stage.COMPILE, message=info.message, details=info.details)
        if info.kind is DeviceKind.CUDA:
            stack.enter_context(alone_on(info.uuid or info.name, watcher))
        watcher.plan(len(settings), tunables.count, seed)
        trial = _Trial(compiler, bench, info, tunables, seed, options.seconds, watcher)
        return Tuning(
            judge=__version__,
            created=datetime.now(UTC).replace(microsecond=0),
            seed=seed,
            submission=submission,
            device=info,
            possible=tunables.count,
            planned=len(settings),
            variants=_try_all(trial, settings, watcher),
        )


def _try_all(trial: _Trial, settings: Iterable[Setting], watcher: Watcher) -> tuple[Variant, ...]:
    variants: list[Variant] = []
    try:
        for number, setting in enumerate(settings, start=1):
            watcher.trying(number, setting)
            variants.append(trial.judge(setting))
            watcher.tried(number, variants[-1])
    except KeyboardInterrupt:
        pass  # whoever called sees that fewer were tried than planned
    return tuple(variants)


@dataclass
class _Trial:
    """Judges one variant after another in the same workers."""

    compiler: RemoteCompiler
    bench: RemoteBench
    info: DeviceInfo
    tunables: Tunables
    seed: int
    seconds: float
    watcher: Watcher
    workers_are_fresh: bool = True

    def judge(self, setting: Setting) -> Variant:
        variant = self._judge(setting)
        if not self.workers_are_fresh and _may_be_the_workers(variant.outcome):
            # A worker's limits of CPU time and memory hold for its whole life.
            self.compiler.worker.close()
            self.bench.kernel.close()
            variant = self._judge(setting)
        self.workers_are_fresh = False
        return variant

    def _judge(self, setting: Setting) -> Variant:
        try:
            self.watcher.begin(Stage.COMPILE, None)
            source = self.tunables.source(setting)
            compiled = compile_kernel(self.compiler, source, self.info.arch or DEFAULT_ARCH)
            if not isinstance(compiled, Compiled):
                return Variant(setting=setting, outcome=compiled)
            outcome = self._run(compiled)
            return Variant(setting=setting, outcome=outcome, kernel=compiled.kernel.facts)
        except Exception as error:
            message = f"the judge failed: {type(error).__name__}: {error}"
            details = traceback.format_exc()
            outcome = JudgeError(stage=Stage.COMPILE, message=message, details=details)
            return Variant(setting=setting, outcome=outcome)

    def _run(self, compiled: Compiled) -> Outcome:
        kernel, device = compiled.kernel, self.bench.kernel
        ready = load_kernel(device, kernel, self.seconds)
        if not isinstance(ready, Ready):
            return ready
        verification = verify(
            device,
            kernel.launch,
            self.seed,
            quick=True,
            sampled=self.info.kind is DeviceKind.CPU,
            blocks_depend=ready.blocks_depend_on_one_another,
            seconds=self.seconds,
            printed=[],
            progress=self.watcher,
        )
        if isinstance(verification, Failure):
            return verification.outcome
        if self.info.kind is DeviceKind.CPU:
            return Accepted(score=Unscored(reason="device", message="scores come from a GPU"))
        self.watcher.begin(Stage.MEASURE, None)
        timed = timed_rounds(
            self.bench,
            QUICK,
            baseline=False,
            seed=self.seed,
            seconds=self.seconds,
            progress=self.watcher,
            audit=False,
        )
        if not isinstance(timed, Timed):
            return timed
        result = score(timed.rounds, self.info)
        return impossible(result, self.info, kernel.facts) or Accepted(score=result)


def _may_be_the_workers(outcome: Outcome) -> bool:
    return isinstance(outcome, JudgeError) or (
        isinstance(outcome, TimeLimit) and outcome.stage is Stage.COMPILE
    )
