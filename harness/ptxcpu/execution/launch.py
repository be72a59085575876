"""Runs a translated kernel's clusters on the cores of the host, and returns how it ended."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
import numpy.typing as npt

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.arguments import (
    Argument,
    Bytes,
    buffers_of,
    packed,
    sparse_zeros,
    window_of_buffer,
    zeros,
)
from harness.ptxcpu.execution import build
from harness.ptxcpu.execution.build import Loaded
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.execution.printf import Printer
from harness.ptxcpu.grid import Clusters, available_cores
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.runtime.layout import Context, Window


@dataclass(frozen=True)
class Arguments:
    """The arguments of a launch.

    given: the argument of each parameter.
    module: the kernel's own __device__ variables, kept from launch to launch.
    initial: makes a copy of them, if they have their initial values; otherwise a copy is made now,
        which is slow for large variables.
    number: of the launch in this process, as %gridid has it.
    """

    given: Sequence[Argument]
    module: Bytes
    initial: Callable[[], Bytes] | None = None
    number: int = field(default_factory=itertools.count(1).__next__)

    def undo(self, windows: Collection[int]) -> Callable[[], None]:
        """Return a function that restores the memory of these windows to its present state."""
        kept: list[tuple[Bytes, Callable[[], Bytes]]] = []
        if Window.MODULE in windows:
            kept.append((self.module, self.initial or _copied(self.module)))
        for index, buffer in enumerate(buffers_of(self.given)):
            if window_of_buffer(index) in windows:
                memory = buffer.data.reshape(-1).view(np.uint8)
                kept.append((memory, _copied(memory)))

        def restore() -> None:
            for memory, before in kept:
                memory[:] = before()

        return restore


def _copied(memory: Bytes) -> Callable[[], Bytes]:
    copy = memory.copy()
    return lambda: copy


@dataclass(frozen=True)
class Outcome:
    seconds: float
    """How long the launch took; seconds of the processor, if other processes use it too."""
    stopped: Context | None
    """The block with the first fault, in the order in which clusters start."""
    changed: tuple[int, ...]
    """Read-only buffers to which the kernel wrote other values, by index. They are as before."""
    vector_blocks: int = 0
    """Blocks that ran on the vector path to their end."""


@dataclass
class Instruments:
    """The memory of the checks or counters. All blocks share it, so one worker runs them all."""

    checks: int = 0
    counts: int = 0
    watch: int = 0
    keep: list[object] = field(default_factory=list)
    arrays: dict[str, Bytes] = field(default_factory=dict)
    more_checks: Callable[[int], tuple[int, object]] | None = None
    """Makes the checks of another cluster that runs at the same time, from the number of its slot.
    Returns their address, and what must be kept."""

    def is_doubtful(self) -> bool:
        """Return whether a block that was watched on the vector path may have an error."""
        return bool(self.watch) and layout.Watch.from_address(self.watch).doubt < 0

    def doubtful_block(self) -> int:
        """Return the number of the doubtful block, or -1 if no block is doubtful."""
        return layout.Watch.from_address(self.watch).block if self.is_doubtful() else -1


def launch(
    cache: Cache,
    loaded: Loaded,
    grid: tuple[int, int, int],
    arguments: Arguments,
    seconds: float,
    blocks: Sequence[int] | None,
    printer: Printer,
    instruments: Instruments,
    *,
    exchanged: Collection[int],
    resident: int,
    make_units: Callable[[], Loaded | None] | None,
    vector_above: float,
    vector_below: float,
) -> Outcome:
    """Run the clusters of these blocks (counted x fastest; None for all) and wait for the end.

    Clusters start in a fixed order, so that the first fault is the same in every run. The order is
    ascending for kernels whose blocks may wait for earlier ones. For others it is that of a
    chessboard, white fields first. So a block that writes into its neighbours' tiles overwrites
    finished ones.

    exchanged: the windows through which blocks depend on one another. If there are none, blocks may
    run in any order and repeatedly.
    resident: the most clusters that may have begun and not ended. If blocks depend on one another,
    later ones begin while earlier ones only poll.
    make_units: makes the same kernel for the vector path, or None if that cannot run it. It is
    called if threads would need more than `vector_above` seconds, estimated from the first cluster
    of each worker (without an estimate if that is 0). The vector path then runs the other clusters,
    and threads run the blocks that it gives up. If blocks depend on one another, threads run all
    blocks, from the beginning, when the vector path gives one up.
    vector_below: stop early if the vector path gives up most blocks, or one of those that depend on
    one another, or needs more seconds than this, estimated from the first TRIAL_SECONDS. (There is
    no estimate if blocks depend on one another: later ones may have nothing to do.)
    """
    clusters = Clusters(grid, loaded.kernel.cluster)
    chosen = np.arange(clusters.count)
    if blocks is not None:
        chosen = np.unique(np.array([clusters.of(block) for block in blocks], np.int64))
    if not exchanged:
        chosen = _chessboard(clusters, chosen)
    slots = resident if exchanged else 1
    running = _Launch(cache, grid, arguments, instruments, printer, len(chosen), slots)
    with running.limited(seconds) as limit:
        rest, vector_blocks = chosen, 0
        if make_units:
            undo = arguments.undo(exchanged)
            trial = min(running.workers, len(chosen)) if vector_above > 0 else 0
            rest = chosen[trial:]
            is_over = running.on_threads(loaded, chosen, trial)
            estimated = limit.elapsed() * len(rest) / running.workers
            if running.has_ended():
                rest = rest[:0]
            elif not is_over:
                rest = chosen
            elif len(rest) and estimated >= vector_above:
                with limit.paused():
                    units = make_units()
                if units:
                    longest = inf if exchanged else vector_below
                    left = running.on_vectors(units, rest, bool(exchanged), longest)
                    vector_blocks = len(rest) - len(left)
                    if len(left) > (0 if exchanged else vector_blocks) and vector_below < inf:
                        is_slow = running.has_stopped_vectors()
                        left, vector_blocks = left[: 0 if is_slow else EXPLAINED_BLOCKS], 0
                    elif exchanged and len(left):
                        undo()
                        left, vector_blocks = chosen, 0
                    rest = left[:0] if running.instruments.is_doubtful() else left
                    if running.has_ended():
                        running.resume(limit)
        running.on_threads(loaded, rest)
        elapsed = min(limit.elapsed(), limit.used())
    return Outcome(elapsed, running.first_fault(chosen), running.changed(), vector_blocks)


class _Launch:
    """A launch in progress: the workers that run its blocks, and how to stop them."""

    def __init__(
        self,
        cache: Cache,
        grid: tuple[int, int, int],
        arguments: Arguments,
        instruments: Instruments,
        printer: Printer,
        count: int,
        slots: int,
    ) -> None:
        """count: the clusters of the launch; slots: the most that may run at the same time."""
        self.instruments = instruments
        cores = 1 if instruments.checks or instruments.counts else available_cores()
        self.workers = max(1, min(cores, count))
        self._slots = -(-slots // self.workers)
        self._cache = cache
        self._grid, self._arguments, self._printer = grid, arguments, printer
        self._team: list[_Worker] = []
        self._units_team: list[_Worker] = []
        self._stop, self._stop_units = ctypes.c_uint8(0), ctypes.c_uint8(0)
        self._following = ctypes.c_uint64(0)

    @contextlib.contextmanager
    def limited(self, seconds: float) -> Iterator[_TimeLimit]:
        """Stop all workers when they have used so many seconds."""
        limit = _TimeLimit(seconds, self._end, lambda: [*self._team, *self._units_team])
        try:
            yield limit
        finally:
            limit.close()

    def _end(self) -> None:
        self._stop.value = self._stop_units.value = 1

    def resume(self, limit: _TimeLimit) -> None:
        """Let threads run after the end of the time, until they reach the loop that took it."""
        self._stop.value = 0
        limit.allow(LOCATING_SECONDS)

    def on_threads(
        self, loaded: Loaded, chosen: npt.NDArray[np.int64], count: int | None = None
    ) -> bool:
        """Run clusters in this order until one has a fault.

        count: run only so many. Return whether they ended without waiting for later ones. If they
        did not, the next call with the same clusters continues them.
        """
        number = len(chosen) if count is None else count
        if not number:
            return True
        if not self._team:
            self._team = [self._worker(loaded, self._stop) for _ in range(self.workers)]
        kinds = [ctypes.c_void_p, *[ctypes.c_int64] * 4, *[ctypes.c_void_p] * 2, ctypes.c_int64]
        run = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(build.runtime_address(self._cache, "rt_run"))
        is_trial = number < len(chosen)
        polls = TRIAL_POLLS if is_trial else POLLS
        given = ctypes.addressof(self._following), chosen.ctypes.data, number
        waiting: list[_Worker] = []

        def work(worker: _Worker) -> None:
            while run(*worker.slot_table(), polls, worker.can_grow, is_trial, *given):
                if is_trial:
                    waiting.append(worker)
                    return
                worker.grow()

        _together(work, self._team)
        self._following.value = number if waiting else 0
        return not waiting

    def on_vectors(
        self, units: Loaded, chosen: npt.NDArray[np.int64], depend: bool, longest: float
    ) -> npt.NDArray[np.int64]:
        """Run blocks on the vector path. Returns those that threads must run, in the same order;
        not all of them, if blocks depend on one another.

        longest: stop if all blocks would need more seconds, estimated from the first TRIAL_SECONDS.
        """
        team = [self._worker(units, self._stop_units) for _ in range(self.workers)]
        self._units_team = team
        order = np.arange(len(chosen)) if depend else _by_tiles(team[0].clusters, chosen)
        ordered, left = chosen[order], np.zeros(len(chosen), np.uint8)
        kinds = [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2]
        run = ctypes.CFUNCTYPE(None, *kinds)(build.runtime_address(self._cache, "rt_run_units"))
        following = ctypes.c_uint64(0)
        given = ctypes.addressof(following), ordered.ctypes.data, len(ordered)
        polling = (ctypes.c_int64 * 2)(0, self.workers)  # struct Team
        how = units.threads // units.lanes, depend, left.ctypes.data, ctypes.addressof(polling)

        def judge_pace() -> None:
            if TRIAL_SECONDS * len(ordered) / max(1, following.value) > longest:
                self._stop_units.value = 1

        trial = threading.Timer(TRIAL_SECONDS, judge_pace)
        trial.daemon = True
        trial.start()
        _together(lambda worker: run(worker.slots[0].address, *given, *how), team)
        trial.cancel()
        remaining: npt.NDArray[np.int64] = chosen[np.sort(order[left != 0])]
        return remaining

    def _worker(self, loaded: Loaded, stop: ctypes.c_uint8) -> _Worker:
        given = self._grid, self._arguments, self.instruments, stop, self._printer
        make = functools.partial(_Slot, loaded, *given)
        return _Worker(make, Clusters(self._grid, loaded.kernel.cluster), self._slots)

    def has_ended(self) -> bool:
        """Return whether the time is over or a thread had a fault."""
        return bool(self._stop.value) or any(worker.stopped for worker in self._team)

    def has_stopped_vectors(self) -> bool:
        return bool(self._stop_units.value)

    def first_fault(self, chosen: npt.NDArray[np.int64]) -> Context | None:
        """Return the block that stopped first, in the order in which clusters start."""
        order = [*chosen]
        faults = [(worker.stopped, worker.clusters) for worker in self._team if worker.stopped]
        stopped = [(order.index(clusters.of(s.block)), s) for s, clusters in faults if s]
        return min(stopped, key=lambda each: each[0])[1] if stopped else None

    def changed(self) -> tuple[int, ...]:
        """Return the read-only buffers to which blocks wrote other values."""
        bits = 0
        for worker in self._team:
            for slot in worker.slots:
                for context in slot.contexts:
                    bits |= context.changed
        buffers = range(len(buffers_of(self._arguments.given)))
        return tuple(i for i in buffers if bits >> window_of_buffer(i) & 1)


class _TimeLimit:
    """Calls a function when a launch has used so many seconds, unless it is cancelled before.

    On a machine that does other work too, these are seconds of the processor for each thread that
    still runs, so that a kernel's verdict does not depend on that work.
    """

    def __init__(
        self, seconds: float, end: Callable[[], None], team: Callable[[], Sequence[_Worker]]
    ) -> None:
        """team: returns the workers of the launch."""
        self._seconds, self._end, self._team = seconds, end, team
        self._start = time.perf_counter()
        self._began = self._last = time.process_time()
        self._is_cancelled = False
        self._wait(seconds)

    def close(self) -> None:
        """Cancel it. The timer would keep the launch, and so the memory of its variables."""
        self._cancel()
        self._end, self._team = lambda: None, list

    def _cancel(self) -> None:
        self._is_cancelled = True
        self._timer.cancel()

    def allow(self, seconds: float) -> None:
        """Call the function so many seconds from now."""
        self._cancel()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time within: a slow translation is no fault of the kernel."""
        self._cancel()
        start, begun = time.perf_counter(), time.process_time()
        yield
        self._start += time.perf_counter() - start
        self._began += time.process_time() - begun
        self._is_cancelled = False
        self._wait(max(self._began + self._seconds - time.process_time(), LEAST_WAIT))

    def elapsed(self) -> float:
        """Return the seconds since the launch began."""
        return time.perf_counter() - self._start

    def used(self) -> float:
        """Return the seconds of the processor that the launch has used."""
        return time.process_time() - self._began

    def _wait(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        if self._is_cancelled:
            return
        team = self._team()
        ended = [worker.used for worker in team if not worker.is_running]
        used = time.process_time()
        running = max(1, len(team) - len(ended))
        left = self._began + self._seconds * running - (used - sum(ended))
        if left > 0 and used > self._last:
            self._last = used
            self._wait(max(left / running, LEAST_WAIT))
        else:
            self._end()


POLLS, TRIAL_POLLS = 64, 1 << 16
"""If the threads of a cluster have only polled for so many rounds, later clusters begin, so that
one may store what it polls for. In the trial with one cluster a worker, others may still compute
it."""

LEAST_WAIT = 0.05
"""The seconds between two looks at the processor's time."""


LOCATING_SECONDS = 1.0
"""If the vector path has used all the time, threads run for so long, to say in which line."""

TRIAL_SECONDS = 5.0
"""After this time the finished blocks give an estimate for the whole launch."""

EXPLAINED_BLOCKS = 16
"""If the vector path gives up most blocks, threads run only this many of them: the others have the
same faults."""

TILE_BLOCKS = 8
"""The side of the square of blocks that run one after the other, so that their inputs stay in the
processor's cache."""


def _by_tiles(clusters: Clusters, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the order in which to run these blocks: one square of neighbours after the other,
    first the white ones of all squares, as `_chessboard` has them."""
    across, down, _ = clusters.sizes
    column, row, layer = chosen % across, chosen // across % down, chosen // across // down
    order: npt.NDArray[np.int64] = np.lexsort(
        (column, row, column // TILE_BLOCKS, row // TILE_BLOCKS, layer, (column + row) % 2)
    )
    return order


def _chessboard(clusters: Clusters, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the blocks, first those whose row and column have an even sum."""
    across, down, _ = clusters.sizes
    black = (chosen % across + chosen // across % down) % 2
    return chosen[np.argsort(black, kind="stable")]


def _together(work: Callable[[_Worker], None], team: Sequence[_Worker]) -> None:
    def run(worker: _Worker) -> None:
        began, worker.is_running = time.thread_time(), True
        work(worker)
        worker.used += time.thread_time() - began
        worker.is_running = False

    threads = [threading.Thread(target=run, args=(worker,)) for worker in team[1:]]
    for thread in threads:
        thread.start()
    run(team[0])
    for thread in threads:
        thread.join()


COPY_BYTES, BULK_BYTES, TRACKER_BYTES, TRACKED_BYTES = 48, 72, 32, 16


class _Worker:
    """One host thread, and the clusters that it may run at the same time."""

    is_running = False
    used = 0.0
    """The seconds of the processor in which it ran."""

    def __init__(self, make: Callable[[int], _Slot], clusters: Clusters, most: int) -> None:
        """make: makes the slot of a number; most: the most slots."""
        self._make, self._most = make, most
        self.clusters = clusters
        self.slots = [make(0)]
        self._table = (ctypes.c_void_p * most)()

    @property
    def can_grow(self) -> bool:
        return len(self.slots) < self._most

    def grow(self) -> None:
        """Double the number of slots, as far as they may be so many."""
        numbers = range(len(self.slots), min(2 * len(self.slots), self._most))
        self.slots += map(self._make, numbers)

    def slot_table(self) -> tuple[int, int]:
        """Return the address of a table of the slots' addresses, and their number."""
        for number, slot in enumerate(self.slots):
            self._table[number] = slot.address
        return ctypes.addressof(self._table), len(self.slots)

    @property
    def stopped(self) -> Context | None:
        return next((found for slot in self.slots if (found := slot.stopped)), None)


_UNINITIALISED = 0xFF
"""The bytes of shared and local memory before the first block: NaN, since zeros may hide that a
kernel does not initialise them."""

_FILLED = 1 << 20
"""The number of bytes of local memory that are filled so. The local arrays of many blocks can be
larger than the machine's memory, if all of it is touched."""


class _Slot:
    """A cluster's contexts, one for each block, and the memory that they point to."""

    def __init__(
        self,
        loaded: Loaded,
        grid: tuple[int, int, int],
        arguments: Arguments,
        instruments: Instruments,
        stop: ctypes.c_uint8,
        printer: Printer,
        number: int,
    ) -> None:
        """number: of the slot among its worker's."""
        self.contexts = (Context * loaded.kernel.cluster_blocks)()
        self.address = ctypes.addressof(self.contexts)
        self._keep: list[object] = [arguments, instruments, printer, stop]
        checks = instruments.checks
        if number and checks:
            assert instruments.more_checks is not None, "only one cluster can be checked"
            checks, kept = instruments.more_checks(number)
            self._keep.append(kept)
        for rank, context in enumerate(self.contexts):
            for name, value in self._fields(loaded, grid, arguments).items():
                setattr(context, name, value)
            context.rank = rank
            context.launch = arguments.number
            context.shared_address = rank << layout.BLOCK_BITS
            context.cluster = self.address
            context.stop = ctypes.addressof(stop)
            context.print = printer.address
            if loaded.lanes > 1:
                context.watch = instruments.watch
            else:
                context.checks, context.counts = checks, instruments.counts

    def _fields(
        self, loaded: Loaded, grid: tuple[int, int, int], arguments: Arguments
    ) -> dict[str, int]:
        """Return the fields of the context of one block, which has its own memory."""
        kernel, threads = loaded.kernel, loaded.threads
        warps = -(-threads // layout.LANES)
        shared = zeros(kernel.shared.size + 64)
        local = sparse_zeros(kernel.local_bytes * threads)
        shared[:] = local[:_FILLED] = _UNINITIALISED
        memory = {
            "shared": shared,
            "local": local,
            "frames": sparse_zeros(loaded.frame_bytes * (threads // loaded.lanes)),
            "scratch": zeros(128),
            "thread": sparse_zeros(layout.THREAD_BYTES * threads),
            "lane_buffer": sparse_zeros(4 * warps * layout.LANE_BUFFER_WORDS * layout.LANES),
            "group": zeros(4 * warps),
            "arrived": zeros(4 * layout.NAMED_BARRIERS),
            "named": zeros(4 * layout.NAMED_BARRIERS),
            "copies": sparse_zeros(COPY_BYTES * layout.COPIES_IN_FLIGHT * threads),
            "unit_copies": sparse_zeros(layout.UNIT_COPY_BYTES * threads),
            "bulk": sparse_zeros(BULK_BYTES * layout.BULK_IN_FLIGHT),
            "trackers": sparse_zeros(TRACKER_BYTES * layout.TRACKERS),
            "tracked": sparse_zeros(TRACKED_BYTES * layout.TRACKERS * threads),
            "parameters": _parameters(kernel, arguments),
        }
        spans = np.zeros((layout.WINDOWS, 3), np.int64)
        for index, buffer in enumerate(buffers_of(arguments.given)):
            span = buffer.data.ctypes.data, buffer.data.nbytes, buffer.writable
            spans[window_of_buffer(index)] = span
        spans[Window.MODULE] = arguments.module.ctypes.data, kernel.module.size, 1
        spans[Window.SHARED] = shared.ctypes.data, kernel.shared.size, 1
        spans[Window.LOCAL] = local.ctypes.data, kernel.local.size, 1
        self._keep += [memory, spans]
        fields = {name: array.ctypes.data for name, array in memory.items()}
        for name, sizes in (("grid", grid), ("block", loaded.block), ("cluster", kernel.cluster)):
            fields |= {f"{name}_{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
        return fields | {
            "entry": loaded.code.address("thread"),
            "threads": threads,
            "windows": spans.ctypes.data,
            "shared_bytes": kernel.shared.size,
            "local_bytes": kernel.local_bytes,
            "frame_bytes": loaded.frame_bytes,
            "cluster_blocks": kernel.cluster_blocks,
        }

    @property
    def stopped(self) -> Context | None:
        return next((context for context in self.contexts if context.fault), None)


def _parameters(kernel: InlinedKernel, arguments: Arguments) -> Bytes:
    """Return the kernel's parameters, as they lie in memory."""
    places = kernel.parameters.variables.values()
    memory = zeros(max(8, kernel.parameters.size))
    for place, raw in zip(
        places, packed(arguments.given, [place.size for place in places]), strict=True
    ):
        memory[place.offset : place.offset + place.size] = np.frombuffer(raw, np.uint8)
    return memory
