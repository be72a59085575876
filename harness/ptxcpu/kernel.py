"""The library's interface: `Kernel` runs a kernel of a PTX program on the processor."""

import functools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, prod
from pathlib import Path

import numpy as np

from harness.ptxcpu import checks, counters
from harness.ptxcpu.analysis.block_dependence import exchanged_windows
from harness.ptxcpu.analysis.inline import InlinedKernel, inline, module_memory
from harness.ptxcpu.analysis.ranges import LaunchDecisions
from harness.ptxcpu.arguments import Argument, Bytes, ParameterKind, buffers_of, kind_of, zeros
from harness.ptxcpu.codegen.instructions import INSTRUCTIONS
from harness.ptxcpu.codegen.thread import Mode
from harness.ptxcpu.counters import Code, choose_blocks
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.execution.build import Loaded, build_kernel, build_units
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.execution.launch import Arguments, Instruments, launch
from harness.ptxcpu.execution.printf import Printer
from harness.ptxcpu.grid import Clusters, Size, resident_blocks
from harness.ptxcpu.messages import Explainer
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.syntax import Instruction
from harness.ptxcpu.results import Counters, Hazard, Result
from harness.ptxcpu.runtime.layout import Cause
from harness.ptxcpu.vector.watched import keeps_clocks

SECONDS = 60.0
"""The default time limit of a launch: seconds of the processor, if other processes use it too."""

SWEEP_SECONDS_AN_INSTRUCTION = 0.0004
"""The longest time to translate a kernel for the vector path without its data."""

WATCH_SECONDS_AN_INSTRUCTION = 0.0005
"""The typical time of the same translation for a kernel that is watched."""

MANY_SECONDS = 1.0
"""How long `check_many` checks blocks on the vector path."""

WATCHING_FACTOR = 4
"""The first cluster is checked alone only if checking may take so many times as long as running it
did."""

ALONE_SECONDS = 0.5
"""How long the first cluster may run before it is checked alone. If it needs more, it probably does
the work of others."""

LEAST_SECONDS = 1.0
"""How long threads run a launch that reached its time limit on the vector path: until they find an
error, or reach this limit."""

VECTOR_ABOVE = 2.0
"""If `run` would need more seconds than this on the thread path, it translates the kernel for the
vector path, which takes up to two seconds."""

VECTOR_AFTER = 16
"""After this many launches, `run` uses the vector path at once: a kernel that is verified in many
cases is launched a hundred times."""


class Kernel:
    """A kernel of a PTX program, translated for one shape of block.

    Its `__device__` variables keep their values from launch to launch, as on a GPU, until
    `reset_variables`. The constructor raises PtxError for a program that cannot be read or
    translated.

    kinds: the kind of each parameter's argument.
    watched: generate machine code at once that reports every access to the runtime, and use it in
        `run` as well. Otherwise the first `check` or `count` generates it, which takes seconds for
        a large kernel.
    vector_above: use the vector path if threads would need more seconds than this, or after
        VECTOR_AFTER launches. It gives the same results faster; kernels that it cannot run are run
        by threads, and so are all if this is infinite.
    optimised: optimise large kernels for the vector path, too, which takes several times as long to
        translate. It pays for launches of many seconds.
    """

    def __init__(
        self,
        ptx: str,
        entry: str,
        block: Size,
        kinds: Sequence[ParameterKind],
        dynamic_shared: int = 0,
        *,
        watched: bool = False,
        cache: Cache | None = None,
        vector_above: float = VECTOR_ABOVE,
        optimised: bool = False,
    ) -> None:
        self.block = block
        self._optimised = optimised
        self._text, self._entry, self._dynamic_shared = ptx, entry, dynamic_shared
        self._kinds = tuple(kinds)
        self._cache = cache or default_cache()
        self._program = parse(ptx)
        for function in self._program.functions.values():
            INSTRUCTIONS.put_in_order(function.body)
        self.reset_variables()
        self._mode = Mode.WATCH if watched else Mode.RUN
        self._inlined = self._inline(self._mode)
        self._loaded: dict[Mode, Loaded] = {}
        self._load(self._mode)
        self._exchanged = exchanged_windows(self._inlined)
        self.blocks_depend = bool(self._exchanged)
        self._keeps_clocks = keeps_clocks(self._inlined, self._exchanged)
        self._counted: Callable[[Code], Counters] | None = None
        self._decided: dict[tuple[Size, tuple[int, ...]], dict[int, bool]] = {}
        self._vector_above = vector_above
        self._runs = 0
        self._has_left_blocks = False
        """The vector path has given up most blocks of a launch."""

    @property
    def cluster(self) -> Size:
        """The blocks of a cluster along x, y and z."""
        return self._inlined.cluster

    @property
    def multiplies_matrices(self) -> bool:
        """Return whether the kernel has instructions for the tensor cores."""
        opcodes = (item.opcode for item in self._inlined.body if isinstance(item, Instruction))
        return any(opcode.startswith(("mma.", "wgmma.", "wmma.")) for opcode in opcodes)

    @property
    def has_mergeable_loads(self) -> bool:
        """Return whether ptxas may merge loads; the machine code shows whether it did."""
        runs = counters.runs_of_loads(self._inlined)
        return bool(counters.merged_loads(self._inlined, runs, {}))

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block on a GPU."""
        return self._inlined.shared_bytes

    def first_difference(
        self, one: tuple[Size, Sequence[int]], other: tuple[Size, Sequence[int]]
    ) -> int | None:
        """Return the line of a comparison that two launches decide differently, if there is one.

        one, other: a grid each, and the arguments that are no buffers. Only comparisons are
        considered that depend on nothing else, and that both launches may reach.
        """
        first, second = (self._decisions(*launch) for launch in (one, other))
        found = next((at for at in first if second.get(at, first[at]) != first[at]), None)
        item = None if found is None else self._inlined.instruction(found)
        return item.line if item else None

    @functools.cached_property
    def _launch_decisions(self) -> LaunchDecisions:
        return LaunchDecisions(self._inlined, self.block)

    def _decisions(self, grid: Size, numbers: Sequence[int]) -> dict[int, bool]:
        launch = grid, tuple(numbers)
        if launch not in self._decided:
            self._decided[launch] = self._launch_decisions.of(*launch)
        return self._decided[launch]

    def reset_variables(self) -> None:
        """Set every `__device__` variable to its initial value."""
        self._module, self._is_reset = self._initial_module(), True

    def _initial_module(self) -> Bytes:
        placed, initial = module_memory(self._program)
        memory = zeros(placed.size + 16)
        for offset, image in initial.items():
            memory[offset : offset + len(image)] = np.frombuffer(image, np.uint8)
        return memory

    def run(
        self,
        grid: Size,
        arguments: Sequence[Argument],
        *,
        seconds: float = SECONDS,
        blocks: Sequence[int] | None = None,
    ) -> Result:
        """Run a launch until its end or its first fault.

        blocks: run only these, numbered x fastest.
        """
        make_units = (lambda: self.units) if self._mode is Mode.RUN else None
        loaded = self._load(self._mode)
        self._runs += 1
        at_once = self._runs > VECTOR_AFTER and self._vector_above < inf
        at_once = at_once and not self._has_left_blocks
        above = 0 if at_once else self._vector_above
        result, _ = self._launch(
            loaded, grid, arguments, seconds, blocks, make_units=make_units, vector_above=above
        )
        self._has_left_blocks |= at_once and 2 * result.vector_blocks < result.blocks
        return result

    def check(
        self,
        grid: Size,
        arguments: Sequence[Argument],
        *,
        seconds: float = SECONDS,
        blocks: Sequence[int] | None = None,
    ) -> Result:
        """Run a launch and report every bad or uninitialised access, race and misused barrier.

        Where blocks depend on one another, a choice of blocks becomes the first cluster, whose
        effects on `__device__` variables are undone.
        """
        loaded = self._load(Mode.WATCH)
        module = self._module
        alone = blocks is not None and self.blocks_depend
        if alone:
            blocks = Clusters(grid, self.cluster).blocks(0)
            module = self._initial_module() if self._is_reset else module.copy()
        clusters = Clusters(grid, self.cluster).count if blocks is None else len(blocks)

        is_ready = "watched_units" in vars(self) or not self._vector_above
        above = 0.0 if is_ready else max(self._vector_above, self._watch_seconds)

        def checked(
            blocks: Sequence[int] | None,
            make_units: Callable[[], Loaded | None] | None,
            seconds: float = seconds,
        ) -> tuple[Result, bool, int]:
            """Return the result, whether the thread path must find the error, and the first block
            that may have one."""
            used = checks.instruments(
                loaded, buffers_of(arguments), clusters, keeps_clocks=self._keeps_clocks
            )
            result, explainer = self._launch(
                loaded, grid, arguments, seconds, blocks, used, module, make_units, above
            )
            found = tuple(explainer.finding(raw) for raw in checks.noted(used))
            has_failed = result.fault and result.fault.cause is not Cause.TIME_LIMIT
            unclear = bool(result.vector_blocks and (found or has_failed))
            doubtful = used.doubtful_block()
            return replace(result, findings=found), unclear or doubtful >= 0, doubtful

        # The vector path does not watch whether buffers that are only read were ever written.
        are_written = all(x.initialised or x.writable for x in buffers_of(arguments))
        make_units = (lambda: self.watched_units) if are_written else None
        result, unclear, doubtful = checked(blocks, make_units)
        rest = seconds if result.seconds < seconds else LEAST_SECONDS
        if unclear and blocks is not None and doubtful >= 0:
            result, _, _ = checked([doubtful], None, rest)
            unclear = not (result.findings or result.fault)
        if unclear:
            result, _, _ = checked(blocks, None, rest)
        found = list(result.findings)
        if alone:  # what it reads may be what another block has not written
            found = [f for f in found if f.hazard is not Hazard.UNINITIALISED]
        fault = result.fault
        if fault and fault.cause is Cause.DEADLOCK and fault.finding:
            found.append(fault.finding)
        return replace(result, fault=None if found else fault, findings=tuple(found))

    def check_many(
        self,
        grid: Size,
        arguments: Sequence[Argument],
        blocks: Sequence[int],
        *,
        seconds: float = SECONDS,
    ) -> Result:
        """Check the first two clusters of these blocks. If the vector path can watch the kernel,
        check as many others as it can in about MANY_SECONDS.

        blocks: whole clusters, in the order in which they are checked. Where blocks depend on one
            another, only the first cluster is checked. It is run before without watching, since it
            may do the work of all others.
        """
        if self.blocks_depend and self._is_reset:
            alone = Clusters(grid, self.cluster).blocks(0)
            limit = min(seconds / WATCHING_FACTOR, ALONE_SECONDS)
            ran = self.run(grid, arguments, seconds=limit, blocks=alone)
            self.reset_variables()
            if ran.fault and ran.fault.cause is Cause.TIME_LIMIT:
                return ran
        least, start = 2 * prod(self.cluster), time.monotonic()
        is_fast = not self.blocks_depend and self._watch_seconds + MANY_SECONDS <= seconds
        is_fast = is_fast and self.watched_units is not None
        begun = time.monotonic()
        end = min(begun + MANY_SECONDS, start + seconds)
        done = self.check(grid, arguments, seconds=seconds, blocks=blocks[:least])
        if self.blocks_depend:
            return done
        while is_fast and done.vector_blocks == done.blocks and not (done.findings or done.fault):
            now = time.monotonic()
            possible = int(done.blocks * (end - now) / (now - begun))
            count = min(possible, len(blocks) - done.blocks)
            if count < max(1, done.blocks // 4):
                break
            more = blocks[done.blocks : done.blocks + count]
            part = self.check(grid, arguments, seconds=start + seconds - now, blocks=more)
            if part.fault and part.fault.cause is Cause.TIME_LIMIT:
                break
            vector_blocks = done.vector_blocks + part.vector_blocks
            done = replace(part, blocks=done.blocks + part.blocks, vector_blocks=vector_blocks)
        return done

    def sweep(
        self, grid: Size, arguments: Sequence[Argument], *, seconds: float = SECONDS
    ) -> Result | None:
        """Check all accesses of every block of a launch, on the vector path.

        Only what addresses and branches depend on is computed, so the buffers that the kernel
        writes have no results in them afterwards.

        Returns None if the vector path cannot run the kernel, gives up most blocks (or one, if
        blocks depend on one another), or needs more seconds than this, translation included.
        """
        start = time.monotonic()
        if len(self._inlined.body) * SWEEP_SECONDS_AN_INSTRUCTION > seconds:
            return None
        units = self._units(Mode.RUN, only_bounds=True)
        if units is None:
            return None
        left = max(seconds - (time.monotonic() - start), 0.1)
        limit = left if self.blocks_depend else 2 * left
        result = self._launch(
            self._load(Mode.RUN),
            grid,
            arguments,
            limit,
            None,
            make_units=lambda: units,
            vector_above=0,
            vector_below=left,
        )[0]
        if result.fault:
            return result if result.fault.finding else None
        return result if result.vector_blocks else None

    def count(
        self,
        grid: Size,
        arguments: Sequence[Argument],
        *,
        seconds: float = SECONDS,
        max_blocks: int = 1 << 31,
    ) -> Result:
        """Run this many blocks and count the work of a GPU's memory system.

        Where blocks depend on one another, all are run.
        """
        loaded = self._load(Mode.WATCH)
        blocks: Sequence[int] = range(prod(grid))
        if not self.blocks_depend:
            blocks = choose_blocks(grid, self.cluster, max_blocks)
        counting = counters.Counting.of(loaded, buffers_of(arguments))
        result, _ = self._launch(loaded, grid, arguments, seconds, blocks, counting.instruments)
        self._counted = functools.partial(counters.read, counting, grid, len(blocks))
        return replace(result, counters=None if result.fault else self.counted({}))

    def counted(self, code: Code) -> Counters:
        """Return the counters of the last launch that was counted, with loads merged as in the
        machine code. code: the opcodes of each source line; empty if they are not known."""
        assert self._counted is not None, "nothing was counted"
        return self._counted(code)

    def _inline(self, mode: Mode) -> InlinedKernel:
        gaps = mode is Mode.WATCH
        return inline(self._program, self._entry, self._dynamic_shared, gaps, self._kinds)

    def _load(self, mode: Mode) -> Loaded:
        if mode not in self._loaded:
            kernel = self._inlined if mode is self._mode else self._inline(mode)
            self._loaded[mode] = build_kernel(self._cache, self._text, kernel, self.block, mode)
        return self._loaded[mode]

    @functools.cached_property
    def units(self) -> Loaded | None:
        """Return the kernel for the vector path; None if that cannot run it."""
        return self._units(Mode.RUN)

    @property
    def _watch_seconds(self) -> float:
        """The typical time to translate the kernel for the vector path, watched."""
        return len(self._inlined.body) * WATCH_SECONDS_AN_INSTRUCTION

    @functools.cached_property
    def watched_units(self) -> Loaded | None:
        """The same, watched for races and uninitialised reads."""
        return self._units(Mode.WATCH)

    def _units(self, mode: Mode, *, only_bounds: bool = False) -> Loaded | None:
        if self.multiplies_matrices:
            return None
        kernel = self._inline(mode)
        cell_width = checks.cell_width(kernel) if mode is Mode.WATCH else None
        try:
            options = cell_width, only_bounds, self._optimised
            return build_units(self._cache, self._text, kernel, self.block, *options)
        except CannotTranslate:
            return None

    def _launch(
        self,
        loaded: Loaded,
        grid: Size,
        arguments: Sequence[Argument],
        seconds: float,
        blocks: Sequence[int] | None,
        instruments: Instruments | None = None,
        module: Bytes | None = None,
        make_units: Callable[[], Loaded | None] | None = None,
        vector_above: float | None = None,
        vector_below: float = inf,
    ) -> tuple[Result, Explainer]:
        given = tuple(kind_of(argument) for argument in arguments)
        if given != self._kinds:
            wanted = ", ".join(kind.value for kind in self._kinds)
            raise ValueError(f"the kernel was translated for these arguments: {wanted}")
        names = [
            argument.name or f"argument {number}"
            for number, argument in enumerate(arguments)
            if not isinstance(argument, int | float)
        ]
        explainer = Explainer(loaded.kernel, buffers_of(arguments), names, grid, self.block)
        printer = Printer()
        outcome = launch(
            self._cache,
            loaded,
            grid,
            Arguments(
                arguments,
                self._module if module is None else module,
                self._initial_module if self._is_reset else None,
            ),
            seconds,
            blocks,
            printer,
            instruments or Instruments(),
            exchanged=self._exchanged,
            resident=resident_blocks(prod(self.block), self.shared_bytes) // prod(self.cluster),
            make_units=make_units,
            vector_above=self._vector_above if vector_above is None else vector_above,
            vector_below=vector_below,
        )
        self._is_reset = False
        fault = explainer.fault(outcome.stopped, seconds) if outcome.stopped else None
        result = Result(
            outcome.seconds,
            fault,
            changed=outcome.changed,
            printed=printer.text,
            blocks=prod(grid) if blocks is None else len(blocks),
            vector_blocks=outcome.vector_blocks,
        )
        return result, explainer


@functools.cache
def default_cache() -> Cache:
    """Return the default cache of machine code."""
    home = Path.home() / ".cache" if "HOME" in os.environ else Path(tempfile.gettempdir())
    return Cache(home / "ptxcpu")
