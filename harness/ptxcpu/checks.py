"""Provides the memory of the runtime's checks, and reads what they wrote down."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from harness.ptxcpu.analysis.inline import InlinedKernel, Memory
from harness.ptxcpu.arguments import Buffer, Bytes, window_of_buffer, zeros
from harness.ptxcpu.execution.launch import Instruments, Loaded
from harness.ptxcpu.messages import RawFinding
from harness.ptxcpu.ptx.syntax import Instruction
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.runtime.layout import Byte, Checks, FindingKind

MAX_FLAGGED_BYTES = 64 << 20  # bytes of module memory whose gaps are watched


def instruments(loaded: Loaded, buffers: Sequence[Buffer]) -> Instruments:
    """Return empty memory for the checks of one launch."""
    kernel, blocks = loaded.kernel, loaded.kernel.cluster_blocks
    threads, warps = blocks * loaded.threads, blocks * -(-loaded.threads // layout.LANES)
    grain = _grain(kernel)
    cells = blocks * (kernel.shared.size // grain + 8)
    memory = {
        "findings": zeros(8 * len(layout.FINDING) * layout.MAX_FINDINGS),
        "cells": zeros(layout.CELL_BYTES * cells),
        "reads": zeros(2 * layout.EVENT_BYTES * warps * cells),
        "awaited": zeros(4 * warps * cells),
        "awaited_grains": zeros(4 * warps),
        "shared_ready": zeros(blocks * kernel.shared.size + 64),
        "local_ready": zeros(kernel.local_bytes * threads),
        "buffer_ready": zeros(8 * layout.WINDOWS),
        "shared_fresh": _flags(kernel.shared, Byte.UNWRITTEN),
        "local_fresh": _flags(kernel.local, Byte.UNWRITTEN),
        "clock": zeros(4 * threads * threads),
        "arrival": zeros(4 * layout.NAMED_BARRIERS * blocks * threads),
        "joined": zeros(4 * threads),
        "released_clock": zeros(4 * layout.RELEASED_ADDRESSES * blocks * threads),
        "released_address": zeros(8 * layout.RELEASED_ADDRESSES * blocks),
    }
    if blocks > 1:
        memory |= {
            "fenced": zeros(4 * threads * threads),
            "seen": zeros(4 * blocks * threads),
            "visits": zeros(layout.EVENT_BYTES * blocks * threads),
            **{name: zeros(4 * threads) for name in _OF_THE_CLUSTER_BARRIER},
        }
    if kernel.module.size <= MAX_FLAGGED_BYTES:  # zero at first, as CUDA has it
        memory["module_ready"] = _flags(kernel.module, Byte.WRITTEN)
    ready = memory["buffer_ready"].view(np.int64)
    keep: list[object] = []
    for index, buffer in enumerate(buffers):
        if not buffer.initialised:
            keep.append(flags := zeros(buffer.data.nbytes + 64))
            ready[window_of_buffer(index)] = flags.ctypes.data
    checks = Checks(
        capacity=layout.MAX_FINDINGS,
        warps=warps,
        grain=grain,
        **{name: array.ctypes.data for name, array in memory.items()},
    )
    return Instruments(checks=ctypes.addressof(checks), keep=[checks, *keep], arrays=memory)


_OF_THE_CLUSTER_BARRIER = (
    *("cluster_arrival", "cluster_known", "arrived", "finished"),
    *("init_fenced", "init_arrived", "init_known"),
)


def _flags(memory: Memory, inside: Byte) -> Bytes:
    flags = zeros(memory.size + 64)
    flags[: memory.size] = np.frombuffer(memory.flags(inside, Byte.OUTSIDE), np.uint8)
    return flags


def noted(used: Instruments) -> list[RawFinding]:
    """What the checks wrote down, in the order in which it was found."""
    checks = Checks.from_address(used.checks)
    rows = used.arrays["findings"].view(np.int64).reshape(-1, len(layout.FINDING))
    found = []
    for row in rows[: checks.found].tolist():
        values = dict(zip(layout.FINDING, row, strict=True))
        found.append(
            RawFinding(
                kind=FindingKind(values["kind"]),
                index=values["pc"],
                other_index=values["other_pc"],
                thread=values["thread"],
                other_thread=values["other_thread"],
                block=values["block"],
                other_block=values["other_block"],
                address=values["address"] % (1 << 64),
                bytes=values["bytes"],
                access=values["access"],
                other_access=values["other_access"],
                count=values["count"],
            )
        )
    return found


def _grain(kernel: InlinedKernel) -> int:
    """The narrowest access to memory that may be shared, at most 4 bytes: two threads that write
    neighbouring bytes do not race."""
    widths = [4]
    for item in kernel.body:
        if isinstance(item, Instruction) and item.opcode.startswith(("ld", "st", "atom", "red")):
            parts = item.opcode.split(".")
            elsewhere = {"global", "local", "param", "const"} & set(parts)
            if not elsewhere and parts[-1] in ("b8", "u8", "s8", "b16", "u16", "s16"):
                widths.append(int(parts[-1][1:]) // 8)
            if parts[0] == "stmatrix":
                widths.append(2)
    return min(widths)
