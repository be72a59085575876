"""The CPU device: answers the judge's requests by means of `harness.ptxcpu`."""

import math
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

import numpy as np

from harness.devices.cpu import reporting
from harness.devices.guards import merged, poisoned
from harness.protocol.compiler import DEFAULT_ARCH
from harness.protocol.device import (
    BranchesDiffer,
    Count,
    Describe,
    Finished,
    LaunchInputs,
    Load,
    MergeLoads,
    Product,
    Ready,
    Run,
    Sanitize,
    Sanitized,
    Stopped,
)
from harness.protocol.files import cache_directory
from harness.protocol.report import (
    Counters,
    DeviceInfo,
    DeviceKind,
    Finding,
    Hazard,
    Place,
    Stage,
    ToolRun,
    Unsupported,
    Value,
    WatchedBlocks,
)
from harness.protocol.request import Fault, Request
from harness.ptxcpu import results
from harness.ptxcpu.arguments import Argument, Buffer, ParameterKind
from harness.ptxcpu.execution import build
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.grid import Size
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.runtime.layout import Cause
from problem.inputs import Matrix
from problem.launcher import BLOCK, LaunchLine
from problem.signature import SIGNATURE, Arguments, Signature
from problem.threads import available_cores

CACHE_VARIABLE = "MATMUL_ARENA_CACHE"
MAX_SHARED_BYTES = 227 << 10  # bytes per block: what an H100 allows
MAX_GRID = (2**31 - 1, 65535, 65535)

PROGRAM = "the CPU device"

SMALL_PTX = 150_000
"""A kernel with fewer characters of PTX is always translated without watching, too: this takes less
time than its launches would take longer."""

WATCHING_SECONDS = 5.0
"""The time limit for checking some blocks of a large launch. Most kernels need less at the ranked
size."""


class CpuDevice:
    """The device.

    The constructor loads all libraries, before the worker gives up its right to read files.
    """

    def __init__(self, cache: Path | None = None) -> None:
        where = cache or Path(os.environ.get(CACHE_VARIABLE) or cache_directory())
        self._cache = Cache(where)
        build.runtime_address(self._cache, "rt_run")
        self._kernel: Kernel | None = None
        self._line = LaunchLine()

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
    def load(self, request: Load) -> Ready | Unsupported:
        """Translate a kernel. A refusal names the line and the instruction."""
        kernel = request.kernel
        return self.load_ptx(
            kernel.ptx,
            kernel.entry,
            kernel.launch,
            watched=request.mostly_watched and len(kernel.ptx) > SMALL_PTX,
            signature=kernel.signature,
        )

    def load_ptx(
        self,
        text: str,
        entry: str,
        line: LaunchLine | None = None,
        block: Size = BLOCK,
        watched: bool = False,
        signature: Signature = SIGNATURE,
    ) -> Ready | Unsupported:
        """Translate any PTX for any shape of block; `watched` is as for Kernel."""
        self._kernel, self._line = None, line or LaunchLine()
        try:
            kernel = Kernel(
                text,
                entry,
                block,
                parameter_kinds(signature),
                self._line.shared_memory,
                watched=watched,
                cache=self._cache,
            )
        except PtxError as refusal:
            where = f"line {refusal.line}: " if refusal.line > 0 else ""
            return Unsupported(
                stage=Stage.COMPILE,
                message=f"{where}the CPU device cannot run this kernel: {refusal.reason}",
                instruction=refusal.instruction or None,
                at=Place(line=refusal.line) if refusal.line > 0 else None,
            )
        self._kernel, self._line = kernel, replace(self._line, cluster=kernel.cluster)
        return Ready(
            blocks_depend=kernel.blocks_depend,
            multiplies_matrices=kernel.multiplies_matrices,
            has_mergeable_loads=kernel.has_mergeable_loads,
        )

    def _loaded(self) -> Kernel:
        """Return the kernel for one launch, in which its variables have their initial values."""
        if self._kernel is None:
            raise RuntimeError("no kernel is loaded")
        self._kernel.reset_variables()
        return self._kernel

    def _grid(self, arguments: Arguments) -> Size:
        return self._line.grid(arguments.output.rows, arguments.output.columns)

    # -- running

    @answer.register
    def run(self, request: Run) -> Finished | Fault:
        """Run one launch. The output is NaN before it, and stays so outside the blocks asked
        for."""
        kernel, given = self._loaded(), request.inputs
        if given.blocks is not None and kernel.blocks_depend:
            return Fault(
                cause="judge",
                message="this kernel's blocks depend on one another, so a sample of them "
                "cannot be run alone",
            )
        grid = self._grid(given.arguments)
        if refused := _refused(kernel, grid):
            return refused
        output, arguments = _arguments(given)
        result = kernel.run(grid, arguments, seconds=request.seconds, blocks=given.blocks)
        if result.fault:
            return reporting.fault(result.fault, given.shape, result.printed)
        return Finished(
            seconds=result.seconds,
            output=output,
            changed_inputs=reporting.changed_inputs(result, given),
            printed=result.printed,
        )

    # -- sanitizing

    @answer.register
    def sanitize(self, request: Sanitize) -> Sanitized | Fault:
        """Run one launch a shape under the checks of all four tools."""
        start = time.monotonic()
        found: list[Finding] = []
        products: list[Product] = []
        ended: tuple[Stopped, ...] = ()
        sampled: WatchedBlocks | None = None
        for number, given in enumerate(request.launches):
            left = max(request.seconds - (time.monotonic() - start), 0.1)
            if given.blocks is not None:
                seen, sampled = self._check_sample(given, min(left, request.sample_seconds))
                found += seen
                continue
            kernel, grid = self._loaded(), self._grid(given.arguments)
            if refused := _refused(kernel, grid):
                return refused
            output, arguments = _arguments(given)
            try:
                result = kernel.check(grid, arguments, seconds=left)
            except PtxError as refusal:
                return Fault(cause="judge", message=f"the CPU device: {refusal.reason}")
            is_finite = bool(np.isfinite(output).all())
            findings = _errors(result.findings, is_finite=is_finite)
            found += [reporting.finding(each, given.shape) for each in findings]
            if result.fault:
                fault = reporting.fault(result.fault, given.shape, result.printed)
                ended = (Stopped(launch=number, fault=fault),)
            elif not any(each.hazard is Hazard.DEADLOCK for each in found):
                changed = reporting.changed_inputs(result, given)
                products.append(
                    Product(launch=number, tool=None, output=output, changed_inputs=changed)
                )
            if found or ended:
                break  # the same mistakes on other shapes say nothing new
        if request.many_blocks is not None and not found and not ended:
            left = max(request.seconds - (time.monotonic() - start), 0.1)
            found += self._check_many(request.many_blocks, left)
        wanted = tuple(f for f in merged(found) if f.tool in request.tools)
        found_by = {f.tool for f in wanted}
        seconds = (time.monotonic() - start) / max(1, len(request.tools))
        return Sanitized(
            program=PROGRAM,
            runs=tuple(
                ToolRun(tool=tool, status="found" if tool in found_by else "clean", seconds=seconds)
                for tool in request.tools
            ),
            findings=wanted,
            products=tuple(products),
            stopped=ended,
            sampled=sampled,
        )

    def _check_many(self, given: LaunchInputs, seconds: float) -> list[Finding]:
        """Check a launch of many blocks if they depend on one another. A launch that takes too
        long is no mistake."""
        kernel, grid = self._loaded(), self._grid(given.arguments)
        if not kernel.blocks_depend or _refused(kernel, grid):
            return []
        _, arguments = _arguments(given)
        try:
            result = kernel.check(grid, arguments, seconds=seconds)
        except PtxError:
            return []
        return [reporting.finding(each, given.shape) for each in _errors(result.findings)]

    def _check_sample(
        self, given: LaunchInputs, seconds: float
    ) -> tuple[list[Finding], WatchedBlocks | None]:
        """Check some blocks of a launch. If they are clean, search all blocks for a bad access, as
        far as the vector path can run them in time. Return the findings, and the numbers of blocks
        that were run."""
        kernel, start = self._loaded(), time.monotonic()
        grid = self._grid(given.arguments)
        if _refused(kernel, grid):
            return [], None
        _, arguments = _arguments(given)
        try:
            assert given.blocks is not None
            result = kernel.check_many(
                grid, arguments, given.blocks, seconds=min(seconds, WATCHING_SECONDS)
            )
        except PtxError:
            return [], None
        blocks, bounded = math.prod(grid), 0
        watched = 0 if result.fault else result.blocks
        found = _errors(result.findings)
        is_over = result.fault is None or result.fault.cause is Cause.TIME_LIMIT
        if not found and is_over:
            left = max(seconds - (time.monotonic() - start), 0.1)
            swept = kernel.sweep(grid, arguments, seconds=left)
            if swept and swept.fault and swept.fault.finding:
                found.append(swept.fault.finding)
            elif swept and not swept.fault:
                bounded = blocks
        ran = WatchedBlocks(blocks=blocks, watched=watched, bounded=bounded)
        return [reporting.finding(each, given.shape) for each in found], ran

    # -- counting

    @answer.register
    def count(self, request: Count) -> Counters | BranchesDiffer | Fault:
        """Count sectors, wavefronts and other events in blocks that are spread over the grid."""
        kernel, given, like = self._loaded(), request.inputs, request.like
        grid = self._grid(given.arguments)
        if like is not None:
            meant = self._grid(like), like.numbers
            line = kernel.first_difference((grid, given.arguments.numbers), meant)
            if line is not None:
                return BranchesDiffer(line=line)
        if refused := _refused(kernel, grid):
            return refused
        # Memory that the counted blocks do not touch costs nothing.
        output = np.zeros((given.arguments.output.rows, given.arguments.output.columns), np.float32)
        arguments = _filled(given, output)
        try:
            result = kernel.count(
                grid, arguments, seconds=request.seconds, max_blocks=request.max_blocks
            )
        except PtxError as refusal:
            return Fault(cause="judge", message=f"the CPU device: {refusal.reason}")
        if result.fault:
            return reporting.fault(result.fault, given.shape, result.printed)
        assert result.counters is not None
        depends = kernel.blocks_depend
        return reporting.counters(result.counters, given.shape, depends)

    @answer.register
    def merge_loads(self, request: MergeLoads) -> Counters:
        """Return the last counters, as they are with the loads of the machine code."""
        kernel = self._loaded()
        code = {line.line: tuple(line.opcodes) for line in request.code}
        return reporting.counters(kernel.counted(code), request.shape, kernel.blocks_depend)


def parameter_kinds(signature: Signature) -> tuple[ParameterKind, ...]:
    """Return the kind of argument of each parameter of a kernel."""
    return (
        *(ParameterKind.READ_ONLY for _ in signature.inputs),
        ParameterKind.WRITABLE,
        *(ParameterKind.NUMBER for _ in signature.numbers),
    )


def _errors(
    findings: Sequence[results.Finding], *, is_finite: bool = True
) -> list[results.Finding]:
    """Return the findings that are errors, and early returns, which may explain them.

    A wide read of which only some words were not initialised is an error only if NaN reaches the
    output. is_finite: it does not.
    """
    found = [each for each in findings if not (each.partly and is_finite)]
    return found if any(each.hazard is not results.Hazard.EARLY_RETURN for each in found) else []


def _arguments(given: LaunchInputs) -> tuple[Matrix, tuple[Argument, ...]]:
    """Return a poisoned output, and the arguments of the launch."""
    output = poisoned(given.arguments.output.rows, given.arguments.output.columns)
    return output, _filled(given, output)


def _filled(given: LaunchInputs, output: Matrix) -> tuple[Argument, ...]:
    """Return the arguments of a launch. Elements of matrices that are too small are repeated."""
    arguments = given.arguments
    inputs: list[Buffer] = []
    for buffer, data in zip(arguments.inputs, given.matrices, strict=True):
        shape = buffer.rows, buffer.columns
        whole = data if data.shape == shape else np.resize(data, shape)
        inputs.append(Buffer(np.ascontiguousarray(whole, np.float32), name=buffer.name))
    written = Buffer(output, writable=True, initialised=False, name=arguments.output.name)
    return (*inputs, written, *arguments.numbers)


def _refused(kernel: Kernel, grid: Size) -> Fault | None:
    """Return why a GPU would not accept the launch; None if it would."""
    shared, message = kernel.shared_bytes, ""
    if shared > MAX_SHARED_BYTES:
        message = f"a block needs {shared} bytes of shared memory; an H100 has {MAX_SHARED_BYTES}"
    elif any(size > most for size, most in zip(grid, MAX_GRID, strict=True)):
        message = f"a grid of {grid} blocks is larger than a GPU allows"
    return Fault(cause="launch-refused", message=message) if message else None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
