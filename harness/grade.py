"""The whole story of a grading: read → compile → verify → sanitize → measure → report."""

from __future__ import annotations

import platform
import secrets
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from harness import __version__
from harness.compiling.kernel import Compiled, Kernel
from harness.devices.available import Choice, open_device
from harness.devices.device import Count, Fault, Ready
from harness.report import (
    Accepted,
    Counters,
    DeviceInfo,
    DeviceKind,
    Environment,
    HostMemoryKind,
    JudgeError,
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
    Verification,
    WrongAnswer,
)
from harness.stages.compile import COMPILE_SECONDS, compile_kernel, load_kernel
from harness.stages.measure import Measured, measure
from harness.stages.progress import Progress, Silent
from harness.stages.sanitize import Sanitized, sanitize, unsafe, why_it_hung
from harness.stages.verify import Failure, verify
from harness.submission import read
from harness.workers.companion import Companion
from harness.workers.gpu_lock import GpuBusy, alone_on
from harness.workers.isolation import Role
from harness.workers.remote import RemoteBench, RemoteCompiler, RemoteDevice, Worker
from problem.cases import CASES_VERSION, OTHER_SIZES, Shape

T = TypeVar("T")

COUNTED = Count(shape=Shape(256, 256, 256), max_blocks=2, seconds=5)
"""What to count memory traffic on: enough for several tiles, and seconds even when instrumented."""

MOST_PRINTED = 4096
"""Characters of a kernel's own words that a report keeps."""

SANITIZE_SECONDS = 120.0
"""Limit of one device's sanitizing: all tools, all shapes."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to grade.

    sizes: also score other sizes, for information.
    seconds: time limit of one launch; the ranked size takes the naive kernel 0.4 s on an H100.
    compile_seconds: time limit of the compiler.
    """

    device: Choice = "auto"
    quick: bool = False
    sizes: bool = False
    seed: int | None = None
    author: str | None = None
    host_memory: tuple[HostMemoryKind, ...] = tuple(HostMemoryKind)
    seconds: float = 20.0
    compile_seconds: float = COMPILE_SECONDS


def grade(path: Path, options: Options = Options(), progress: Progress | None = None) -> Report:
    """Grade one kernel file. Raises UsageError when there is nothing to grade or no such device;
    whatever else goes wrong is a verdict in the report."""
    with ExitStack() as gpu, ExitStack() as workers:
        return _Grading(options, progress or Silent(), workers, gpu).run(path)


class _Grading:
    """One grading: its stages in order, and what they have found so far."""

    submission: Submission
    device: RemoteDevice
    info: DeviceInfo
    kernel: Kernel

    def __init__(
        self, options: Options, progress: Progress, workers: ExitStack, gpu: ExitStack
    ) -> None:
        """workers: ended when the grading is. gpu: given back after that."""
        self.options = options
        self.progress = progress
        self.workers = workers
        self.gpu = gpu
        self.seed = secrets.randbits(48) if options.seed is None else options.seed
        self.companion: Companion | None = None
        self.bench: RemoteBench | None = None
        self.blocks_depend = False
        self.compiled: Compiled | None = None
        self.failure: Failure | None = None
        self.verification: Verification | None = None
        self.printed: list[str] = []
        self.sanitizing: tuple[Sanitizing, ...] = ()
        self.measurement: Measurement | None = None
        self.counters: Counters | None = None
        self.isolation: dict[Role, tuple[str, ...]] = {}
        self.times: list[StageTime] = []

    def run(self, path: Path) -> Report:
        """All stages, until one has the last word."""
        created = datetime.now(UTC).replace(microsecond=0)
        self.device = open_device(self.options.device)
        self.workers.callback(self.device.close)
        self.submission, unreadable = read(path, self.options.author)
        outcome = unreadable or self._stages()
        compiled = self.compiled
        return Report(
            environment=Environment(
                judge=__version__,
                cases=CASES_VERSION,
                python=platform.python_version(),
                system=f"{platform.system()} {platform.release()} {platform.machine()}",
                nvrtc=compiled.nvrtc if compiled else None,
                isolation=tuple(
                    f"{role}: {rule}" for role, rules in self.isolation.items() for rule in rules
                ),
            ),
            created=created,
            seed=self.seed,
            quick=self.options.quick,
            submission=self.submission,
            device=getattr(self, "info", None),
            outcome=outcome,
            diagnostics=compiled.warnings if compiled else (),
            kernel=compiled.kernel.facts if compiled else None,
            verification=self.verification,
            sanitizing=self.sanitizing,
            measurement=self.measurement,
            counters=self.counters,
            printed="".join(self.printed)[:MOST_PRINTED],
            stages=tuple(self.times),
        )

    def _stages(self) -> Outcome:
        stages = {
            Stage.READ: self._open,
            Stage.COMPILE: self._compile,
            Stage.VERIFY: self._verify,
            Stage.SANITIZE: self._sanitize,
        }
        try:
            for stage, work in stages.items():
                outcome = self._timed(stage, work)
                if outcome is not None:
                    return outcome
            if self.info.kind is DeviceKind.CPU:
                message = "scores come from a GPU; this device gives every verdict but no score"
                return Accepted(score=Unscored(reason="device", message=message))
            return self._timed(Stage.MEASURE, self._measure)
        except GpuBusy as error:
            return JudgeError(stage=Stage.READ, message=str(error))
        except Exception as error:
            return JudgeError(
                stage=self.times[-1].stage,
                message=f"the judge failed: {type(error).__name__}: {error}",
                details=traceback.format_exc(),
            )

    def _timed(self, stage: Stage, work: Callable[[], T]) -> T:
        started = time.monotonic()
        try:
            return work()
        finally:
            self.times.append(StageTime(stage=stage, seconds=time.monotonic() - started))

    def _open(self) -> Outcome | None:
        """Start the workers and ask what the device is."""
        self.compiler = RemoteCompiler()
        self.workers.callback(self.compiler.worker.close)
        self.compiler.worker.start()
        info = self.device.info()
        self._note_isolation(self.device.worker)
        if isinstance(info, Fault):
            return JudgeError(stage=Stage.READ, message=info.message, details=info.details)
        self.info = info
        if info.kind is DeviceKind.CUDA:
            self.gpu.enter_context(alone_on(info.uuid or info.name, self.progress))
            self.device.expect_first_launch()
            self.companion = Companion()
            self.workers.callback(self.companion.close)
            self.companion.start()
            self.bench = RemoteBench(self.device)
            self.workers.callback(self.bench.close)
        return None

    def _compile(self) -> Outcome | None:
        self.progress.begin(Stage.COMPILE, None)
        compiled = compile_kernel(
            self.compiler,
            self.submission.source,
            self.info.arch,
            self.options.compile_seconds,
        )
        self._note_isolation(self.compiler.worker)
        if not isinstance(compiled, Compiled):
            return compiled
        self.compiled, self.kernel = compiled, compiled.kernel
        # Translating a large kernel takes seconds: a quick grading does it only to say what failed.
        if self.companion is not None and not self.options.quick:
            self.companion.load(self.kernel)
        ready = load_kernel(self.device, self.kernel, self.options.seconds)
        if not isinstance(ready, Ready):
            return ready
        self.blocks_depend = ready.blocks_depend_on_one_another
        return None

    def _verify(self) -> Outcome | None:
        verified = verify(
            self.device,
            self.kernel.launch,
            self.seed,
            quick=self.options.quick,
            sampled=self.info.kind is DeviceKind.CPU,
            blocks_depend=self.blocks_depend,
            seconds=self.options.seconds,
            printed=self.printed,
            progress=self.progress,
        )
        if isinstance(verified, Verification):
            self.verification = verified
            return None
        self.failure = verified
        if self.companion is not None:
            if self.options.quick:
                self.companion.load(self.kernel)
            if isinstance(verified.outcome, TimeLimit):
                hung = why_it_hung(self.companion.sanitize, verified.case.shape)
                return hung or verified.outcome
        return None if _worth_sanitizing(verified.outcome) else verified.outcome

    def _sanitize(self) -> Outcome | None:
        """Unsafe beats wrong: it is usually why a kernel is wrong."""
        failure = self.failure
        if self.bench is not None and failure is None:
            self.bench.start()  # ready by the time that the sanitizer is
        companion = self.companion if failure or not self.options.quick else None
        sanitized = sanitize(
            self.device,
            companion.sanitize if companion else None,
            self.kernel.launch,
            quick=self.options.quick,
            failed_at=failure.case.shape if failure else None,
            seconds=SANITIZE_SECONDS,
            progress=self.progress,
        )
        if companion is not None:
            self._note_isolation(companion.device.worker)
        if isinstance(sanitized, Sanitized):
            self.sanitizing = sanitized.programs
            wrong = failure.outcome if failure else None
            seen = wrong.counterexample if isinstance(wrong, WrongAnswer) else None
            danger = unsafe(sanitized.findings, seen)
            if danger is not None:
                return danger
        if failure is not None:
            return failure.outcome
        if not isinstance(sanitized, Sanitized):
            return sanitized
        self._count()
        return None

    def _count(self) -> None:
        """What the memory system would do, where the CPU device can tell in time."""
        if self.options.quick:
            return
        counting = self.companion or self.device
        counted = counting.count(COUNTED)
        if isinstance(counted, Counters):
            self.counters = counted

    def _measure(self) -> Outcome:
        assert self.bench is not None
        measured = measure(
            self.bench,
            self.info,
            self.kernel,
            compile_seconds=sum(t.seconds for t in self.times if t.stage is Stage.COMPILE),
            host_memory=() if self.options.quick else self.options.host_memory,
            quick=self.options.quick,
            sizes=OTHER_SIZES if self.options.sizes else (),
            seed=self.seed,
            seconds=self.options.seconds,
            progress=self.progress,
        )
        self._note_isolation(self.bench.referee.worker)
        if not isinstance(measured, Measured):
            return measured
        self.measurement = measured.measurement
        return Accepted(score=measured.score)

    def _note_isolation(self, worker: Worker) -> None:
        self.isolation[worker.role] = worker.isolation


def _worth_sanitizing(outcome: Outcome) -> bool:
    """Whether the sanitizer may say more of a failure than verification did."""
    return isinstance(outcome, WrongAnswer) or (
        isinstance(outcome, MemoryFault)
        and all(finding.at.line is None for finding in outcome.findings)
    )
