"""The CPU device: runs a kernel's PTX on the processor, with every access checked."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial, singledispatchmethod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from harness.devices.cpu.findings import checks as sanitize
from harness.devices.cpu.findings import counters
from harness.devices.cpu.findings.messages import Explainer
from harness.devices.findings import merged
from harness.devices.guards import poisoned
from harness.protocol.compiler import DEFAULT_ARCH, PtxProgram
from harness.protocol.device import (
    Count,
    Counted,
    Describe,
    Finished,
    LaunchInputs,
    Load,
    LoadAhead,
    Product,
    Ready,
    Refusal,
    Run,
    Sanitize,
    Sanitized,
    Stopped,
)
from harness.protocol.files import cache_directory
from harness.protocol.report import (
    DeviceInfo,
    DeviceKind,
    Finding,
    Hazard,
    Place,
    Tool,
    ToolRun,
    Value,
)
from harness.protocol.request import Fault, Request
from harness.ptxcpu.analysis.block_dependence import blocks_depend_on_one_another
from harness.ptxcpu.analysis.inline import InlinedKernel, inline, module_memory
from harness.ptxcpu.codegen.thread import Mode
from harness.ptxcpu.execution import build
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.execution.launch import (
    Arguments,
    Bytes,
    Instruments,
    Loaded,
    Outcome,
    launch,
    load,
    zeros,
)
from harness.ptxcpu.execution.printf import Printer
from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.syntax import Program
from harness.ptxcpu.runtime.layout import Cause, Window
from problem.cases import Matrix, Shape
from problem.launcher import BLOCK, Clusters, LaunchLine
from problem.threads import available_cores

CACHE_VARIABLE = "MATMUL_ARENA_CACHE"
MAX_SHARED_BYTES = 227 << 10  # bytes a block: what an H100 allows
MAX_GRID = (2**31 - 1, 65535, 65535)

PROGRAM = "the CPU device"

SAMPLE_SECONDS = 5.0
"""To watch some blocks of a large launch, as far as they come: one of the ranked size takes less,
but where a block does the work of a hundred."""


@dataclass
class Module:
    """A loaded kernel: its PTX, its variables, and machine code for each way to run it."""

    text: str
    entry: str
    line: LaunchLine
    program: Program
    memory: Bytes
    """The kernel's __device__ variables: they live as long as the module, as on a GPU."""
    depends: bool
    kernel: InlinedKernel
    """As a launch without instruments takes it."""
    block: tuple[int, int, int] = BLOCK
    plain: Mode = Mode.RUN
    """How a launch without instruments is made."""
    loaded: dict[Mode, Loaded] = field(default_factory=dict)

    def grid(self, shape: Shape) -> tuple[int, int, int]:
        return self.line.grid(shape.M, shape.K)


@dataclass(frozen=True)
class _Launch:
    """One launch and how it ended."""

    C: Matrix
    outcome: Outcome
    explainer: Explainer
    printed: str
    instruments: Instruments


_Instruments = Callable[[Loaded, Shape], Instruments]
"""Makes those of one launch."""


def _checks(loaded: Loaded, shape: Shape) -> Instruments:
    return sanitize.instruments(loaded, 4 * shape.M * shape.K)


class CpuDevice:
    """A harness.protocol.device.Device. Everything that could fail to load is loaded by
    the constructor, before the worker gives up its right to read files."""

    def __init__(self, cache: Path | None = None) -> None:
        where = cache or Path(os.environ.get(CACHE_VARIABLE) or cache_directory())
        self._cache = Cache(where)
        build.run_address(self._cache)
        self._module: Module | None = None
        self._ahead: tuple[LoadAhead, Ready | Refusal] | None = None
        """What was made ready and not yet asked for."""

    @singledispatchmethod
    def answer(self, request: Request[Any]) -> Value:
        raise TypeError(f"the CPU device does not answer {type(request).__name__}")

    @answer.register
    def describe(self, request: Describe) -> DeviceInfo:
        return DeviceInfo(
            kind=DeviceKind.CPU,
            name=f"{_processor()}, {available_cores()} cores",
            arch=DEFAULT_ARCH,
        )

    # -- loading

    @answer.register
    def load_ahead(self, request: LoadAhead) -> Ready | Refusal:
        """Translate a kernel, while others make machine code of it."""
        ready = self._translate(request)
        self._ahead = (request, ready)
        return ready

    def _translate(self, request: LoadAhead) -> Ready | Refusal:
        program = request.program
        plain = Mode.WATCH if request.mostly_watched else Mode.RUN
        return self.load_ptx(program.ptx, program.entry, program.launch, plain=plain)

    @answer.register
    def load(self, request: Load) -> Ready | Refusal:
        """Translate a kernel. A refusal names the line and the instruction."""
        kernel = request.kernel
        program = PtxProgram(entry=kernel.entry, ptx=kernel.ptx, launch=kernel.launch)
        wanted = LoadAhead(program=program, mostly_watched=request.mostly_watched)
        ahead, self._ahead = self._ahead, None
        return ahead[1] if ahead and ahead[0] == wanted else self._translate(wanted)

    def load_ptx(
        self,
        text: str,
        entry: str,
        line: LaunchLine | None = None,
        block: tuple[int, int, int] = BLOCK,
        plain: Mode = Mode.RUN,
    ) -> Ready | Refusal:
        """As `load`, for any PTX and any shape of block. plain: how launches without instruments
        are made, which is made ready; the other mode is when it is first asked for, and takes
        seconds for a large kernel."""
        self._module = None
        line = line or LaunchLine()
        try:
            program = parse(text)
            placed, initial = module_memory(program)
            memory = zeros(placed.size + 16)
            for offset, image in initial.items():
                memory[offset : offset + len(image)] = np.frombuffer(image, np.uint8)
            kernel = inline(program, entry, line.shared_memory, gaps=plain is Mode.WATCH)
            depends = blocks_depend_on_one_another(kernel)
            line = replace(line, cluster=kernel.cluster)
            module = Module(text, entry, line, program, memory, depends, kernel, block, plain)
            self._load(module, plain)
        except PtxError as refusal:
            where = f"line {refusal.line}: " if refusal.line > 0 else ""
            return Refusal(
                message=f"{where}the CPU device cannot run this kernel: {refusal.reason}",
                instruction=refusal.instruction or None,
                at=Place(line=refusal.line) if refusal.line > 0 else None,
            )
        self._module = module
        return Ready(blocks_depend_on_one_another=depends)

    def _load(self, module: Module, mode: Mode) -> Loaded:
        if mode not in module.loaded:
            kernel = module.kernel
            if mode is not module.plain:
                gaps = mode is Mode.WATCH
                kernel = inline(module.program, module.entry, module.line.shared_memory, gaps)
            loaded = load(self._cache, module.text, kernel, module.block, mode)
            module.loaded[mode] = loaded
        return module.loaded[mode]

    # -- running

    @answer.register
    def run(self, request: Run) -> Finished | Fault:
        """One launch. C is NaN before it, and stays so outside the blocks asked for."""
        module = self._loaded_module()
        if request.blocks is not None and module.depends:
            return Fault(
                cause="judge",
                message="this kernel's blocks depend on one another, so a sample of them "
                "cannot be run alone",
            )
        done = self._launch(
            None, request.shape, request.A, request.B, request.seconds, request.blocks
        )
        if isinstance(done, Fault):
            return done
        if done.outcome.stopped:
            return self._fault(done, request.seconds)
        return Finished(
            seconds=done.outcome.seconds,
            C=done.C,
            changed_inputs=_changed(done.outcome),
            printed=done.printed,
        )

    def _loaded_module(self) -> Module:
        if self._module is None:
            raise RuntimeError("no kernel is loaded")
        return self._module

    def _launch(
        self,
        tool: _Instruments | None,
        shape: Shape,
        A: Matrix,
        B: Matrix,
        seconds: float,
        blocks: tuple[int, ...] | None = None,
    ) -> _Launch | Fault:
        module = self._loaded_module()
        grid = module.grid(shape)
        refused = _refused(module, grid)
        if refused:
            return Fault(cause="launch-refused", message=refused)
        try:
            loaded = self._load(module, Mode.WATCH if tool else module.plain)
        except PtxError as refusal:
            return Fault(cause="judge", message=f"the CPU device: {refusal.reason}")
        C = poisoned(shape.M, shape.K)
        arrays = (np.ascontiguousarray(A, np.float32), np.ascontiguousarray(B, np.float32), C)
        instruments = tool(loaded, shape) if tool else Instruments()
        printer = Printer()
        outcome = launch(
            self._cache,
            loaded,
            grid,
            Arguments(arrays, (shape.M, shape.N, shape.K), module.memory),
            seconds,
            blocks,
            printer,
            instruments,
            ascending=module.depends,
        )
        explainer = Explainer(loaded.kernel, shape, grid, module.block)
        return _Launch(C, outcome, explainer, printer.text, instruments)

    @staticmethod
    def _fault(done: _Launch, seconds: float) -> Fault:
        s = done.outcome.stopped
        assert s is not None
        return done.explainer.fault(
            s.fault,
            s.index,
            s.thread,
            s.block,
            s.address,
            s.bytes,
            s.access,
            s.count,
            seconds,
            done.printed,
        )

    # -- sanitizing

    @answer.register
    def sanitize(self, request: Sanitize) -> Sanitized | Fault:
        """One instrumented launch a shape serves all four tools."""
        start = time.monotonic()
        found: list[Finding] = []
        products: list[Product] = []
        ended: tuple[Stopped, ...] = ()
        for number, given in enumerate(request.launches):
            left = max(request.seconds - (time.monotonic() - start), 0.1)
            if given.blocks is not None:
                found += self._watched_in_part(given, min(left, SAMPLE_SECONDS))
                continue
            done = self._launch(_checks, given.shape, given.A, given.B, left)
            if isinstance(done, Fault):
                return done
            found += [done.explainer.finding(n) for n in sanitize.noted(done.instruments)]
            stopped = done.outcome.stopped
            if stopped and stopped.fault is Cause.DEADLOCK:
                s = stopped
                found.append(done.explainer.deadlock(s.index, s.thread, s.block, s.count))
            elif stopped and not found:
                fault = self._fault(done, request.seconds)
                ended = (Stopped(launch=number, fault=fault),)
            else:
                changed = _changed(done.outcome)
                products.append(Product(launch=number, tool=None, C=done.C, changed_inputs=changed))
            if found or ended:
                break  # the same mistakes on other shapes say nothing new
        wanted = tuple(f for f in merged(found) if f.tool in request.tools)
        seconds = (time.monotonic() - start) / max(1, len(request.tools))
        return Sanitized(
            program=PROGRAM,
            runs=tuple(_tool_run(tool, wanted, seconds) for tool in request.tools),
            findings=wanted,
            products=tuple(products),
            stopped=ended,
        )

    def _watched_in_part(self, given: LaunchInputs, seconds: float) -> list[Finding]:
        """What some blocks of a launch do, as far as they come. Where they depend on one another,
        the first alone begins, and leaves nothing behind for the next launch; what it reads may be
        what another has not written."""
        module, blocks = self._loaded_module(), given.blocks
        memory = module.memory
        if module.depends:
            blocks = tuple(Clusters(module.grid(given.shape), module.line.cluster).blocks(0))
            module.memory = memory.copy()
        done = self._launch(_checks, given.shape, given.A, given.B, seconds, blocks)
        module.memory = memory
        if isinstance(done, Fault):
            return []
        found = [done.explainer.finding(n) for n in sanitize.noted(done.instruments)]
        return [f for f in found if not module.depends or f.hazard is not Hazard.UNINITIALISED]

    # -- counting

    @answer.register
    def count(self, request: Count) -> Counted | Fault:
        """Sectors, wavefronts and the rest over the first, the middle and the last blocks."""
        module = self._loaded_module()
        given = request.inputs
        grid, cluster = module.grid(given.shape), module.line.cluster
        blocks = counters.choose_blocks(grid, cluster, request.max_blocks, module.depends)
        tool = partial(counters.instruments, code=request.code)
        done = self._launch(tool, given.shape, given.A, given.B, request.seconds, blocks)
        if isinstance(done, Fault):
            return done
        if done.outcome.stopped:
            return self._fault(done, request.seconds)
        kernel = done.explainer.kernel
        counted = counters.read(done.instruments, kernel, given.shape, grid, len(blocks))
        return Counted(counters=counted.model_copy(update={"blocks_depend": module.depends}))


def _refused(module: Module, grid: tuple[int, int, int]) -> str:
    """Why a GPU would not accept the launch; empty if it would."""
    shared, threads = module.kernel.shared_bytes, math.prod(module.block)
    if shared > MAX_SHARED_BYTES:
        return f"a block needs {shared} bytes of shared memory; an H100 has {MAX_SHARED_BYTES}"
    if threads > 1024:
        return f"a block has {threads} threads; a GPU allows 1024"
    if any(size > most for size, most in zip(grid, MAX_GRID, strict=True)):
        return f"a grid of {grid} blocks is larger than a GPU allows"
    return ""


def _tool_run(tool: Tool, found: tuple[Finding, ...], seconds: float) -> ToolRun:
    here = any(f.tool is tool for f in found)
    return ToolRun(tool=tool, status="found" if here else "clean", seconds=seconds)


def _changed(outcome: Outcome) -> tuple[Literal["A", "B"], ...]:
    """Inputs that the kernel wrote other values to."""
    names: tuple[tuple[Literal["A", "B"], Window], ...] = (("A", Window.A), ("B", Window.B))
    return tuple(name for name, window in names if window in outcome.changed)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
