"""Fake parts of a session: a compiler, and a device that multiplies on the host."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from harness.judge.grading import Grading, GradingOptions
from harness.judge.progress import Progress, Silent
from harness.judge.stages.outcomes import Ended
from harness.protocol import device as device_protocol
from harness.protocol import report as protocol
from harness.protocol.compiler import (
    Compile,
    Compiled,
    Disassemble,
    Disassembled,
    Kernel,
    PtxProgram,
    Translate,
)
from harness.protocol.errors import JudgeFailure
from harness.protocol.request import Fault
from harness.protocol.timing import LaunchTime, TimingWorkers
from problem.cases import Matrix, Shape
from problem.launcher import LaunchLine
from problem.problem import MATRIX_MULTIPLICATION, Problem

INFO = protocol.DeviceInfo(
    kind=protocol.DeviceKind.CUDA, name="fake", arch="sm_90a", fp32_peak_tflops=67.0
)

Multiply = Callable[[Matrix, Matrix], Matrix]


def launch_time(
    ms: float, host_ms: float | None = None, throttled: tuple[str, ...] = ()
) -> LaunchTime:
    """A launch at 1980 MHz, of which the host notices the end a little late."""
    return LaunchTime(
        ms=ms,
        host_ms=ms + 0.02 if host_ms is None else host_ms,
        cycles=round(ms * 1.98e6),
        clock_mhz=1980,
        power_w=500,
        throttled=throttled,
    )


def timed_round(kernel_ms: float, baseline_ms: float = 8.0, **facts: Any) -> protocol.Round:
    """A round at 1980 MHz whose launches are right."""
    usual = {"kernel_first": False, "clock_mhz": 1980, "power_w": 500, "check": 0.1}
    return protocol.Round(kernel_ms=kernel_ms, baseline_ms=baseline_ms, **usual | facts)


@dataclass
class FakeSession:
    """A session of parts that are no processes. It notes what happens to it."""

    compiler: Any
    device: Any
    known: protocol.DeviceInfo | JudgeFailure = INFO
    cpu_sanitizer: Any = None
    timing: TimingWorkers | None = None
    has_own_cores: bool = False
    events: list[object] = field(default_factory=list)
    lock: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
    """Replaces each lock; it is given the lock's name."""
    renewed: Callable[[], None] = lambda: None
    side_by_side: Callable[[int], Sequence[TimingWorkers]] = lambda _: ()

    @property
    def arch(self) -> str:
        return INFO.arch

    @property
    def info(self) -> protocol.DeviceInfo:
        if isinstance(self.known, JudgeFailure):
            raise self.known
        return self.known

    @property
    def sanitizer(self) -> Any:
        return self.device

    def isolation(self) -> tuple[str, ...]:
        return ("cpu: no network",)

    def start(self, *, cpu_sanitizer: bool) -> None:
        self.events.append("start with CPU sanitizer" if cpu_sanitizer else "start")

    def renew(self) -> None:
        self.events.append("renew")
        self.renewed()

    def shared_lock(self, progress: Progress) -> AbstractContextManager[None]:
        return self._locked("shared")

    def exclusive_lock(self, progress: Progress) -> AbstractContextManager[None]:
        return self._locked("exclusive")

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with self.lock(name):
            self.events.append(name)
            yield
            self.events.append(f"end of {name}")

    @contextmanager
    def timing_of_each(self, count: int) -> Iterator[Sequence[TimingWorkers]]:
        yield self.side_by_side(count)


@dataclass
class Process:
    """A fake process. answers: by the types of requests; others get what is usual."""

    answers: dict[type, Any] = field(default_factory=dict)
    asked: list[Any] = field(default_factory=list)
    closed: int = 0

    def ask(self, request: Any) -> Any:
        self.asked.append(request)
        given = (each for kind, each in self.answers.items() if isinstance(request, kind))
        return next(given, None) or self.usual(request)

    def usual(self, request: Any) -> Any:
        raise AssertionError(request)

    def close(self) -> None:
        self.closed += 1


def right(A: Matrix, B: Matrix) -> Matrix:
    product: Matrix = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)
    return product


def kernel(launch: LaunchLine = LaunchLine()) -> Kernel:
    resources = dict.fromkeys(protocol.Resources.model_fields, 0) | {"registers": 32}
    facts = protocol.KernelFacts(
        arch="sm_90a",
        launch=launch,
        resources=protocol.Resources(**resources),
        occupancy=protocol.Occupancy(blocks=8, warps=64, max_warps=64, limited_by="threads"),
    )
    return Kernel(entry="kernel", ptx="", cubin=b"", facts=facts)


def disassembled(kernel: Kernel) -> protocol.DisassembledKernel:
    return protocol.DisassembledKernel(
        **dict(kernel.facts),
        badges=(protocol.Badge.CUDA_CORES, protocol.Badge.DEFAULT_LAUNCH),
        instructions={"FFMA": 1},
    )


class Watcher:
    """Progress that is remembered."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.sentences: list[str] = []

    def begin(self, stage: protocol.Stage, total: int | None) -> None:
        self.told.append((stage, total))

    def step(self, text: str) -> None:
        self.told.append(text)

    def found(self, sentences: Iterable[str]) -> None:
        self.sentences += sentences


class FakeCompiler(Process):
    """Compiles everything to the same kernel."""

    def usual(self, request: Any) -> Any:
        if isinstance(request, Translate):
            return PtxProgram(entry="kernel", ptx="", launch=LaunchLine())
        if isinstance(request, Disassemble):
            return Disassembled(kernel=disassembled(request.kernel), warnings=())
        assert isinstance(request, Compile)
        return Compiled(kernel=kernel(), warnings=(), nvrtc="13.0")


@dataclass
class FakeDevice(Process):
    """Answers what every device does. Each answer can be another function of the request."""

    multiply: Multiply = right
    run: Callable[[device_protocol.Run], Fault | dict[str, Any]] = lambda _: {}
    """A Fault, or the other fields of Finished."""
    watched: Multiply = right
    """As `multiply`, under a sanitizer."""
    findings: tuple[protocol.Finding, ...] = ()
    unavailable: tuple[str, ...] = ()
    """Tools that do not work."""
    product: dict[str, Any] = field(default_factory=dict)
    """The other fields of products."""
    sanitized: dict[str, Any] = field(default_factory=dict)
    program: str = "a fake"
    ran: list[device_protocol.Run] = field(default_factory=list)
    watched_shapes: list[Shape] = field(default_factory=list)

    def usual(self, request: Any) -> Any:
        match request:
            case device_protocol.Load():
                return device_protocol.Ready()
            case device_protocol.Run():
                self.ran.append(request)
                told = self.run(request)
                if isinstance(told, Fault):
                    return told
                C = self.multiply(*request.inputs.matrices)
                return device_protocol.Finished(**{"seconds": 0.001, "output": C} | told)
            case device_protocol.Sanitize():
                return self._sanitize(request)
            case device_protocol.Count():
                return Fault(cause="trap", message="a fake counts nothing")
        raise AssertionError(request)

    def _sanitize(self, request: device_protocol.Sanitize) -> device_protocol.Sanitized:
        self.watched_shapes += [launch.shape for launch in request.launches]
        statuses = {
            tool: "unavailable"
            if tool in self.unavailable
            else "found"
            if any(finding.tool is tool for finding in self.findings)
            else "clean"
            for tool in request.tools
        }
        told: dict[str, Any] = {
            "program": self.program,
            "runs": tuple(
                protocol.ToolRun(tool=tool, status=status, seconds=0, message="out of order")  # type: ignore[arg-type]
                for tool, status in statuses.items()
            ),
            "findings": self.findings,
            "products": tuple(
                device_protocol.Product(
                    **{"launch": n, "tool": None, "output": self.watched(*launch.matrices)}
                    | self.product
                )
                for n, launch in enumerate(request.launches)
                if launch.blocks is None
            ),
        }
        return device_protocol.Sanitized(**told | self.sanitized)


RACE = protocol.Finding(
    tool=protocol.Tool.RACECHECK,
    hazard=protocol.Hazard.RACE,
    message="a race",
    at=protocol.Place(line=3),
)
SUBMISSION = protocol.Submission(name="mine", author="ada", sha256="0" * 64, source="a kernel")


def report(outcome: protocol.Outcome, **fields: Any) -> protocol.Report:
    """Return a report of a grading that found nothing but its outcome."""
    values: dict[str, Any] = {
        "environment": protocol.Environment(judge="0", cases=1, python="3", system="test"),
        "created": datetime(2026, 1, 1, tzinfo=UTC),
        "seed": 12,
        "quick": False,
        "submission": SUBMISSION,
        "device": None,
        "outcome": outcome,
    }
    return protocol.Report(**values | fields)


def grading(
    made: FakeSession,
    *,
    seed: int = 7,
    blocks_depend: bool = False,
    launch: LaunchLine = LaunchLine(),
    progress: Progress | None = None,
    problem: Problem = MATRIX_MULTIPLICATION,
    **options: Any,
) -> Grading:
    """Return a grading whose kernel has been compiled, disassembled and loaded."""
    chosen = GradingOptions(seed=seed, **options)
    found = Grading(SUBMISSION, made, chosen, progress or Silent(), problem)
    compiled = kernel(launch)
    found.compiled = Compiled(kernel=compiled, warnings=(), nvrtc="13.0")
    found.disassembled = Disassembled(kernel=disassembled(compiled), warnings=())
    found.ready = device_protocol.Ready(blocks_depend=blocks_depend)
    return found


def outcome_of(part: Callable[..., object], *arguments: Any) -> protocol.Outcome | None:
    """Return the outcome with which a part of a grading ends it, if any."""
    try:
        part(*arguments)
    except Ended as ended:
        return ended.outcome
    return None


def on_gpu(device: Any, cpu_sanitizer: Any = None, **parts: Any) -> FakeSession:
    """Return a session on a device whose times mean something."""
    timing = parts.pop("timing", TimingWorkers(device, device, checker=device))
    cpu = cpu_sanitizer or FakeDevice()
    return FakeSession(FakeCompiler(), device, cpu_sanitizer=cpu, timing=timing, **parts)


def on_cpu(device: Any, **parts: Any) -> FakeSession:
    """Return a session on a device without times."""
    return FakeSession(FakeCompiler(), device, **parts)
