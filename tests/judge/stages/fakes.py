"""Parts of a session that are no processes: a device that multiplies as it is told, on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.judge.workers.session import Session
from harness.protocol.compiler import (
    Compile,
    Compiled,
    Disassemble,
    Disassembled,
    Kernel,
    PtxProgram,
    Translate,
)
from harness.protocol.device import (
    BeginSanitizing,
    Count,
    Finished,
    Load,
    LoadAhead,
    Product,
    Ready,
    Run,
    Sanitize,
    Sanitized,
    Uncounted,
)
from harness.protocol.report import (
    Badge,
    DeviceInfo,
    DeviceKind,
    DisassembledKernel,
    Finding,
    KernelFacts,
    Occupancy,
    Resources,
    Stage,
    ToolRun,
)
from harness.protocol.request import Done, Fault
from problem.cases import Matrix, Shape
from problem.launcher import LaunchLine

INFO = DeviceInfo(kind=DeviceKind.CUDA, name="fake", arch="sm_90a", fp32_peak_tflops=67.0)

Multiply = Callable[[Matrix, Matrix], Matrix]


def session(compiler: Any, device: Any, info: DeviceInfo = INFO, **parts: Any) -> Session:
    """Of parts that are no processes."""
    return Session(info.arch, lambda: info, compiler, device, **parts)


def right(A: Matrix, B: Matrix) -> Matrix:
    product: Matrix = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)
    return product


def kernel(launch: LaunchLine = LaunchLine()) -> Kernel:
    resources = Resources(
        registers=32,
        stack_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
        static_shared_bytes=0,
        dynamic_shared_bytes=0,
    )
    facts = KernelFacts(
        code_sha256="0" * 64,
        arch="sm_90a",
        launch=launch,
        resources=resources,
        occupancy=Occupancy(blocks=8, warps=64, max_warps=64, limited_by="threads"),
    )
    return Kernel(entry="kernel", ptx="", cubin=b"", facts=facts)


def disassembled(kernel: Kernel) -> DisassembledKernel:
    return DisassembledKernel(
        **dict(kernel.facts),
        badges=(Badge.CUDA_CORES, Badge.DEFAULT_LAUNCH),
        instructions={"FFMA": 1},
    )


class Watcher:
    """Progress that is remembered."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, stage: Stage, total: int | None) -> None:
        self.told.append((stage, total))

    def step(self, text: str) -> None:
        self.told.append(text)

    def found(self, sentences: Iterable[str]) -> None:
        self.told += sentences


class FakeCompiler:
    """Compiles everything to the same kernel."""

    def ask(self, request: Any) -> Any:
        if isinstance(request, Translate):
            return PtxProgram(entry="kernel", ptx="", launch=LaunchLine())
        if isinstance(request, Disassemble):
            return Disassembled(kernel=disassembled(request.kernel), warnings=())
        assert isinstance(request, Compile)
        return Compiled(kernel=kernel(), warnings=(), nvrtc="13.0")


@dataclass
class FakeDevice:
    """Answers what every device does. Each answer can be another function of the request."""

    multiply: Multiply = right
    run: Callable[[Run], Fault | dict[str, Any]] = lambda _: {}
    """A Fault, or what a Finished says besides C."""
    watched: Multiply = right
    """As `multiply`, under a sanitizer."""
    findings: tuple[Finding, ...] = ()
    unavailable: tuple[str, ...] = ()
    """Tools that do not work."""
    product: dict[str, Any] = field(default_factory=dict)
    """What products say besides C."""
    sanitized: dict[str, Any] = field(default_factory=dict)
    program: str = "a fake"
    ran: list[Run] = field(default_factory=list)
    watched_shapes: list[Shape] = field(default_factory=list)

    def ask(self, request: Any) -> Any:
        match request:
            case Load() | LoadAhead():
                return Ready()
            case BeginSanitizing():
                return Done()
            case Run():
                self.ran.append(request)
                told = self.run(request)
                if isinstance(told, Fault):
                    return told
                C = self.multiply(request.A, request.B)
                return Finished(**{"seconds": 0.001, "C": C} | told)
            case Sanitize():
                return self._sanitize(request)
            case Count():
                return Uncounted()
        raise AssertionError(request)

    def _sanitize(self, request: Sanitize) -> Sanitized:
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
                ToolRun(tool=tool, status=status, seconds=0, message="out of order")  # type: ignore[arg-type]
                for tool, status in statuses.items()
            ),
            "findings": self.findings,
            "products": tuple(
                Product(
                    **{"launch": n, "tool": None, "C": self.watched(launch.A, launch.B)}
                    | self.product
                )
                for n, launch in enumerate(request.launches)
                if launch.blocks is None
            ),
        }
        return Sanitized(**told | self.sanitized)


@dataclass
class FakeSanitizer:
    """A BackgroundSanitizer that is done at once."""

    device: FakeDevice = field(default_factory=FakeDevice)
    loaded: list[Kernel] = field(default_factory=list)
    resets: int = 0

    def load(self, kernel: Kernel) -> None:
        self.loaded.append(kernel)

    def sanitize(self, request: Sanitize) -> Future[Any]:
        assert self.loaded
        return self._done(self.device.ask(request))

    def count(self, request: Count) -> Future[Any]:
        return self._done(self.device.ask(request))

    def reset(self) -> None:
        self.resets += 1

    @staticmethod
    def _done(answer: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(answer)
        return future
