"""Provides the memory of the runtime's checks, and reads the findings that they recorded."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.ptxcpu.analysis.inline import InlinedKernel, Memory
from harness.ptxcpu.arguments import Buffer, Bytes, sparse_zeros, window_of_buffer, zeros
from harness.ptxcpu.execution.build import Loaded
from harness.ptxcpu.execution.launch import Instruments
from harness.ptxcpu.ptx.syntax import Instruction
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.runtime.layout import Byte, Checks, History, RawFinding, Watch, Window

MAX_FLAGGED_BYTES = 64 << 20  # bytes of module memory whose gaps are watched
MAX_WATCHED_BYTES = 128 << 20
"""The bytes of a buffer, and of module memory, that are checked for races. A cell is twelve times
as large as the memory that it describes, but the system provides pages only when they are
touched."""


def instruments(
    loaded: Loaded, buffers: Sequence[Buffer], clusters: int, *, keeps_clocks: bool = False
) -> Instruments:
    """Return empty memory for the checks of a launch of so many clusters.

    keeps_clocks: the kernel orders accesses to global memory by more than barriers.
    """
    kernel, threads = loaded.kernel, loaded.kernel.cluster_blocks * loaded.threads
    recorded = {
        "findings": zeros(ctypes.sizeof(RawFinding) * layout.MAX_FINDINGS),
        "places": zeros(4 * layout.FINDING_PLACES),
        "syncs": zeros(layout.SYNC_BYTES * (layout.SYNC_ADDRESSES + 1)),
        "snapshots": zeros(4 * layout.MAX_SNAPSHOTS * threads),
        "snapshot_bounds": zeros(8 * layout.MAX_SNAPSHOTS),
        "sets": zeros(layout.MAX_SETS * layout.MAX_SNAPSHOTS // 8),
        "runs": zeros(layout.RUN_BYTES * (2 * clusters + 2 + layout.MAX_SWITCHES)),
    }
    history = History(capacity=layout.MAX_FINDINGS, **_addresses(recorded))
    width, memory = cell_width(kernel), _memory_of_launch(loaded, buffers)

    def checks(slot: int) -> tuple[Checks, dict[str, Bytes]]:
        of_cluster = _memory_of_cluster(loaded)
        places = _addresses(memory.places | of_cluster)
        history_at = ctypes.addressof(history)
        return Checks(history=history_at, slot=slot, **_sizes(kernel, loaded), **places), of_cluster

    def more(slot: int) -> tuple[int, object]:
        made = checks(slot)
        return ctypes.addressof(made[0]), made

    first = checks(0)
    watch, words = _watch(kernel, width, first[0])
    watch.keeps_clocks = keeps_clocks
    return Instruments(
        checks=ctypes.addressof(first[0]),
        watch=ctypes.addressof(watch),
        keep=[history, first, watch, words, memory],
        arrays=recorded,
        more_checks=more,
    )


def _addresses(memory: Mapping[str, Bytes]) -> dict[str, int]:
    return {name: array.ctypes.data for name, array in memory.items()}


def _sizes(kernel: InlinedKernel, loaded: Loaded) -> dict[str, int]:
    """Return the numbers in Checks that say how large its memories are."""
    threads = kernel.cluster_blocks * loaded.threads
    numbers = threads + 1 + (threads if reads_by_proxy(kernel) else 0)
    # With a few cells to spare, so that the same cell of several warps lies in different sets of
    # the processor's cache.
    narrow = layout.WIDE_CELL // cell_width(kernel)
    block_cells = -(-kernel.shared.size // layout.WIDE_CELL) * (1 + narrow) + 8
    return {
        "warps": kernel.cluster_blocks * -(-loaded.threads // layout.LANES),
        "cell_width": cell_width(kernel),
        "cells_checked": 1,
        "block_cells": block_cells,
        "global_cell_width": _narrowest(kernel, _NOT_GLOBAL),
        "clock_words": -(-numbers // layout.CLOCK_STEP) * layout.CLOCK_STEP,
    }


def _memory_of_cluster(loaded: Loaded) -> dict[str, Bytes]:
    """Return the memory for what is known of one cluster."""
    kernel, blocks = loaded.kernel, loaded.kernel.cluster_blocks
    sizes, threads = _sizes(kernel, loaded), blocks * loaded.threads
    warps, cells = sizes["warps"], blocks * sizes["block_cells"]
    clock = 4 * sizes["clock_words"]
    memory = {
        "cells": zeros(layout.CELL_BYTES * cells),
        "rare": zeros(layout.RARE_CELL_BYTES * cells),
        "reads": zeros(layout.EVENT_BYTES * warps * cells),
        "second_reads": zeros(layout.EVENT_BYTES * warps * cells),
        "awaited": zeros(4 * warps * cells),
        "awaited_cells": zeros(4 * warps),
        "shared_ready": zeros(blocks * kernel.shared.size + 64),
        "local_ready": zeros(kernel.local_bytes * threads),
        "clock": zeros(threads * clock),
        "own": zeros(4 * threads),
        "common": zeros(blocks * clock),
        "has_common": zeros(threads),
        "floor": zeros(blocks * clock),
        "arrival": zeros(layout.NAMED_BARRIERS * blocks * clock),
        "joined": zeros(clock),
        "shared_row": zeros(clock),
        "here": zeros(loaded.threads),
        "fenced": zeros(3 * threads * clock),
        "fenced_far": zeros(4 * threads),
        "fenced_set": zeros(4 * threads),
        "pending": zeros(3 * threads * clock),
        "pending_from": zeros(4 * threads),
        "near": zeros(2 * layout.NEAR_CLOCKS * clock),
    }
    if blocks > 1:
        memory |= {
            "seen": zeros(blocks * clock),
            "visits": zeros(layout.EVENT_BYTES * blocks * threads),
            **{name: zeros(clock) for name in _OF_THE_CLUSTER_BARRIER},
        }
    return memory


_BY_WINDOW = ("buffer_ready", "global_bytes", "global_cells", "global_lines")
"""The members of Checks that have a word for each window."""


@dataclass(frozen=True)
class _LaunchMemory:
    """The memory for what is known of all blocks. places: each by its name in Checks."""

    places: dict[str, Bytes]
    keep: list[object]


def _memory_of_launch(loaded: Loaded, buffers: Sequence[Buffer]) -> _LaunchMemory:
    kernel, width = loaded.kernel, _narrowest(loaded.kernel, _NOT_GLOBAL)
    places = {
        "shared_fresh": _flags(kernel.shared, Byte.UNWRITTEN),
        "local_fresh": _flags(kernel.local, Byte.UNWRITTEN),
        **{name: zeros(8 * layout.WINDOWS) for name in _BY_WINDOW},
    }
    if kernel.module.size <= MAX_FLAGGED_BYTES:
        places["module_ready"] = loaded.module_flags
    keep: list[object] = []
    watched = [(Window.MODULE.value, kernel.module.size)]
    for index, buffer in enumerate(buffers):
        if not buffer.initialised:
            keep.append(flags := sparse_zeros(buffer.data.nbytes + 64))
            places["buffer_ready"].view(np.int64)[window_of_buffer(index)] = flags.ctypes.data
        if buffer.writable:
            watched.append((window_of_buffer(index), buffer.data.nbytes))
    for window, whole in watched:
        size = min(whole, MAX_WATCHED_BYTES)
        lines = size // layout.GLOBAL_LINE + 1
        memory_of = zeros if window == Window.MODULE else sparse_zeros
        for name, count in (
            ("global_cells", layout.GLOBAL_CELL_BYTES * layout.GLOBAL_LINE // width),
            ("global_lines", layout.GLOBAL_LINE_BYTES),
        ):
            keep.append(each := memory_of(lines * count))
            places[name].view(np.int64)[window] = each.ctypes.data
        places["global_bytes"].view(np.int64)[window] = size
    return _LaunchMemory(places, keep)


def _watch(kernel: InlinedKernel, width: int, checks: Checks) -> tuple[Watch, dict[str, Bytes]]:
    """Return empty memory for the checks of the vector path."""
    outside = np.frombuffer(kernel.shared.flags(0, 1), np.uint8)
    cells = len(outside) // width
    memory = {name: zeros(4 * cells + 64) for name in ("writes", "reads", "fresh")}
    memory["fresh"].view(np.int32)[:cells][outside[: cells * width : width] != 0] = NO_VARIABLE
    places = {name: array.ctypes.data for name, array in memory.items()}
    place = ctypes.addressof(checks)
    return Watch(cells=cells, cell_width=width, checks=place, **places), memory


NO_VARIABLE = (1 << 31) - 1
"""The word of a cell that belongs to no variable."""


_OF_THE_CLUSTER_BARRIER = (
    *("cluster_arrival", "cluster_known", "arrived", "finished"),
    *("init_fenced", "init_arrived", "init_known"),
)


def _flags(memory: Memory, inside: Byte) -> Bytes:
    flags = zeros(memory.size + 64)
    flags[: memory.size] = np.frombuffer(memory.flags(inside, Byte.OUTSIDE), np.uint8)
    return flags


def noted(used: Instruments) -> list[RawFinding]:
    """Return the findings that the checks recorded, in the order in which they were found."""
    history = History.from_address(Checks.from_address(used.checks).history)
    return list((RawFinding * history.found).from_buffer(used.arrays["findings"]))


_BULK_READS = ("cp.async.bulk.global.shared::cta", "cp.async.bulk.shared::cluster.shared::cta")


@functools.lru_cache(maxsize=8)
def reads_by_proxy(kernel: InlinedKernel) -> bool:
    """Return whether the kernel reads shared memory by the asynchronous proxy, which needs proxy
    fences."""
    names = (*_BULK_READS, "wgmma.mma_async")
    return any(isinstance(x, Instruction) and x.opcode.startswith(names) for x in kernel.body)


_NOT_SHARED = frozenset({"global", "local", "param", "const"})
_NOT_GLOBAL = frozenset({"shared", "shared::cta", "shared::cluster", "local", "param", "const"})


def cell_width(kernel: InlinedKernel) -> int:
    """Return how many bytes of shared memory a cell describes."""
    return _narrowest(kernel, _NOT_SHARED)


@functools.lru_cache(maxsize=8)
def _narrowest(kernel: InlinedKernel, elsewhere: frozenset[str]) -> int:
    """Return the width of the narrowest access to a memory, at most 4 bytes.

    Two threads that write neighbouring bytes do not race. elsewhere: state spaces of other
    memories.
    """
    widths = [4]
    for item in kernel.body:
        if isinstance(item, Instruction) and item.opcode.startswith(("ld", "st", "atom", "red")):
            parts = item.opcode.split(".")
            if not elsewhere & set(parts) and parts[-1][1:] in ("8", "16", "16x2"):
                widths.append(1 if parts[-1][1:] == "8" else 2)
            if parts[0] == "stmatrix":
                widths.append(2)
    return min(widths)
