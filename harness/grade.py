"""The whole story of a grading: read → compile → verify → sanitize → measure → report."""

from __future__ import annotations

import platform
import secrets
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import __version__
from harness.devices.available import Choice, open_device
from harness.devices.device import Fault, Ready, Refusal
from harness.isolation import Role
from harness.kernel import DEFAULT_ARCH, Compiled
from harness.remote import RemoteCompiler, RemoteDevice
from harness.report import (
    Accepted,
    DeviceInfo,
    DeviceKind,
    Environment,
    HostMemoryKind,
    JudgeError,
    MemoryFault,
    Outcome,
    Report,
    Stage,
    StageTime,
    Unscored,
    WrongAnswer,
)
from harness.stages.compile import COMPILE_SECONDS, compile_kernel, load_kernel
from harness.stages.measure import Measured, measure
from harness.stages.progress import Progress, Silent
from harness.stages.sanitize import Sanitized, sanitize, unsafe
from harness.stages.verify import Failure, verify
from harness.submission import UsageError, read
from problem.cases import CASES_VERSION, OTHER_SIZES


@dataclass(frozen=True, slots=True)
class Options:
    """How to grade.

    sizes: also score other sizes, for information.
    seconds: time limit of one launch; the ranked size takes the naive kernel 0.2 s on a GPU.
    """

    device: Choice = "auto"
    quick: bool = False
    sizes: bool = False
    seed: int | None = None
    author: str | None = None
    host_memory: tuple[HostMemoryKind, ...] = tuple(HostMemoryKind)
    seconds: float = 20.0


def grade(path: Path, options: Options = Options(), progress: Progress | None = None) -> Report:
    """Grade one kernel file. Raises UsageError when there is nothing to grade or no such device;
    whatever else goes wrong is a verdict in the report."""
    grading = _Grading(path, options, progress or Silent())
    with ExitStack() as stack:
        outcome = grading.run(stack)
        return grading.report(outcome)


@dataclass
class _Grading:
    """One grading on its way: what is known so far."""

    path: Path
    options: Options
    progress: Progress
    found: dict[str, Any] = field(default_factory=dict)
    """Fields of the report, each set once by the stage that found it."""
    times: list[StageTime] = field(default_factory=list)

    def __post_init__(self) -> None:
        given = self.options.seed
        self.seed = secrets.randbits(48) if given is None else given
        self.created = datetime.now(UTC).replace(microsecond=0)
        self.isolation: dict[Role, tuple[str, ...]] = {}
        self.nvrtc: str | None = None

    def report(self, outcome: Outcome) -> Report:
        return Report(
            environment=Environment(
                judge=__version__,
                cases=CASES_VERSION,
                python=platform.python_version(),
                system=f"{platform.system()} {platform.release()} {platform.machine()}",
                nvrtc=self.nvrtc,
                isolation=tuple(
                    f"{role}: {rule}" for role, rules in self.isolation.items() for rule in rules
                ),
            ),
            created=self.created,
            seed=self.seed,
            quick=self.options.quick,
            outcome=outcome,
            stages=tuple(self.times),
            **{"device": None, **self.found},
        )

    def run(self, stack: ExitStack) -> Outcome:
        try:
            return self._run(stack)
        except UsageError:
            raise
        except Exception as error:
            return JudgeError(
                stage=self.times[-1].stage if self.times else Stage.READ,
                message=f"the judge failed: {type(error).__name__}: {error}",
                details=traceback.format_exc(),
            )

    def _run(self, stack: ExitStack) -> Outcome:
        options = self.options
        compiler, device = RemoteCompiler(), open_device(options.device)
        stack.callback(compiler.worker.close)
        stack.callback(device.close)

        with self._stage(Stage.READ):
            self.found["submission"], unreadable = read(self.path, options.author)
            if unreadable is not None:
                return unreadable
            compiler.worker.start()
            device.worker.start()
            info = device.info()
            self.isolation[device.worker.role] = device.worker.isolation
            if isinstance(info, Fault):
                return JudgeError(stage=Stage.READ, message=info.message, details=info.details)
            self.found["device"] = info
            companion = None
            if info.kind is DeviceKind.CUDA:
                device.expect_first_launch()
                companion = RemoteDevice(Role.CPU)
                stack.callback(companion.close)
                companion.worker.start()

        with self._stage(Stage.COMPILE):
            self.progress.begin(Stage.COMPILE, None)
            source, arch = self.found["submission"].source, info.arch or DEFAULT_ARCH
            compiled = compile_kernel(compiler, source, arch)
            self.isolation[Role.COMPILER] = compiler.worker.isolation
            if not isinstance(compiled, Compiled):
                return compiled
            kernel, launch = compiled.kernel, compiled.kernel.launch
            self.found["kernel"] = kernel.facts
            self.found["diagnostics"] = compiled.warnings
            self.nvrtc = compiled.nvrtc
            ready = load_kernel(device, kernel, options.seconds)
            if not isinstance(ready, Ready):
                return ready

        with self._stage(Stage.VERIFY):
            verification = verify(
                device,
                launch,
                self.seed,
                quick=options.quick,
                sampled=info.kind is DeviceKind.CPU,
                blocks_depend=ready.blocks_depend_on_one_another,
                seconds=options.seconds,
                progress=self.progress,
            )
            failure = verification if isinstance(verification, Failure) else None
            if failure is None:
                self.found["verification"] = verification
            elif not _worth_sanitizing(failure.outcome):
                return failure.outcome

        with self._stage(Stage.SANITIZE):
            sanitized = sanitize(
                device,
                self._loaded(companion, compiled),
                launch,
                quick=options.quick,
                failed_at=failure.case.shape if failure else None,
                seconds=COMPILE_SECONDS,
                progress=self.progress,
            )
            if isinstance(sanitized, Sanitized):
                self.found["sanitizing"] = sanitized.programs
                wrong = failure.outcome if failure else None
                seen = wrong.counterexample if isinstance(wrong, WrongAnswer) else None
                danger = unsafe(sanitized.findings, seen)
                if danger is not None:
                    return danger
            if failure is not None:
                return failure.outcome
            if not isinstance(sanitized, Sanitized):
                return sanitized

        if info.kind is DeviceKind.CPU:
            message = "scores come from a GPU; this device gives every verdict but no score"
            return Accepted(score=Unscored(reason="device", message=message))

        with self._stage(Stage.MEASURE):
            measured = measure(
                device,
                info,
                kernel,
                compile_seconds=self._seconds(Stage.COMPILE),
                host_memory=() if options.quick else options.host_memory,
                quick=options.quick,
                sizes=OTHER_SIZES if options.sizes else (),
                seed=self.seed,
                seconds=options.seconds,
                progress=self.progress,
            )
            if not isinstance(measured, Measured):
                return measured
            self.found["measurement"] = measured.measurement
            return Accepted(score=measured.score)

    def _loaded(
        self, companion: RemoteDevice | None, compiled: Compiled
    ) -> RemoteDevice | Refusal | Fault | None:
        """The CPU device beside a GPU, with the kernel: it sees what compute-sanitizer does not."""
        if companion is None:
            return None
        ready = companion.load(compiled.kernel)
        self.isolation[Role.CPU] = companion.worker.isolation
        return ready if isinstance(ready, Refusal | Fault) else companion

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.times.append(StageTime(stage=stage, seconds=time.monotonic() - started))

    def _seconds(self, stage: Stage) -> float:
        return sum(time.seconds for time in self.times if time.stage is stage)


def _worth_sanitizing(outcome: Outcome) -> bool:
    """Whether the sanitizer may say more of a failure than verification did."""
    return isinstance(outcome, WrongAnswer) or (
        isinstance(outcome, MemoryFault)
        and all(finding.at.line is None for finding in outcome.findings)
    )
