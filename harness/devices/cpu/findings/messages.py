"""Puts faults and findings into the words and types of the report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness.protocol.report import Array, Finding, Hazard, Place, Tool
from harness.protocol.request import Fault
from harness.ptxcpu.analysis.inline import InlinedKernel, Placed
from harness.ptxcpu.runtime.layout import (
    BLOCK_BITS,
    MIDDLE,
    WINDOW_BITS,
    WINDOWS,
    Access,
    Cause,
    FindingKind,
    Window,
)
from problem.cases import Shape
from problem.launcher import Clusters

_ARRAYS = {
    Window.A: Array.A,
    Window.B: Array.B,
    Window.C: Array.C,
    Window.MODULE: Array.MODULE,
    Window.LOCAL: Array.LOCAL,
    Window.SHARED: Array.SHARED,
}

_OUT_OF_REACH = ", which .shared::cta does not reach"
_IS_OVER = ", all threads of which had returned"
_UNBOUNDED_VISITS = {
    FindingKind.BLOCK_NOT_BEGUN: "may not have begun: nothing here waited for it",
    FindingKind.BLOCK_MAY_BE_OVER: "may have returned before: nothing there waits for this",
}


@dataclass(frozen=True)
class Spot:
    """Where an address lies."""

    array: Array | None
    text: str
    row: int | None = None
    column: int | None = None
    outside: int | None = None
    """Bytes between the access and the nearest end of the array; None if it is inside."""


@dataclass(frozen=True)
class RawFinding:
    """A row of the runtime's findings."""

    kind: FindingKind
    index: int
    other_index: int
    thread: int
    other_thread: int
    block: int
    other_block: int
    address: int
    bytes: int
    access: int
    other_access: int
    count: int


@dataclass(frozen=True)
class Explainer:
    """Knows the kernel and the launch that something happened in."""

    kernel: InlinedKernel
    shape: Shape
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    # -- places

    def _rank(self, block: int) -> int:
        """Of a block in its cluster."""
        clusters = Clusters(self.grid, self.kernel.cluster)
        return clusters.blocks(clusters.of(block)).index(block)

    def place(self, index: int, thread: int, block: int) -> Place:
        item = self.kernel.instruction(index)
        line = item.line if item and item.line > 0 else None
        return Place(
            line=line, thread=_position(thread, self.block), block=_position(block, self.grid)
        )

    def spot(self, address: int, size: int, block: int) -> Spot:
        """block: the one that reaches for the address."""
        window = address >> WINDOW_BITS
        if not 0 < window < WINDOWS or window not in list(Window):
            return Spot(None, f"address {address:#x}, which belongs to no array")
        offset = (address & (1 << WINDOW_BITS) - 1) - MIDDLE
        if window in (Window.A, Window.B, Window.C):
            return self._matrix_spot(Window(window), offset, size)
        memory = {
            Window.SHARED: self.kernel.shared,
            Window.LOCAL: self.kernel.local,
            Window.MODULE: self.kernel.module,
        }[Window(window)]
        array, of_block = _ARRAYS[Window(window)], ""
        if window == Window.SHARED and offset >= 0:
            rank, offset = divmod(offset, 1 << BLOCK_BITS)
            if rank >= self.kernel.cluster_blocks > 1:
                return Spot(None, f"address {address:#x}, which belongs to no block of the cluster")
            if rank != self._rank(block):
                of_block = f" in block {rank} of the cluster"
        nearest = memory.nearest(offset)
        if nearest is None:
            return Spot(
                array,
                f"{array} at byte {offset}{of_block}: the kernel has none",
                outside=abs(offset),
            )
        name = _plain_name(nearest)
        within = offset - nearest.offset
        outside = _outside(within, size, nearest.size)
        text = f"{array} at byte {within} of {name} ({nearest.size} bytes){of_block}"
        return Spot(array, text, outside=outside)

    def _matrix_spot(self, window: Window, offset: int, size: int) -> Spot:
        s = self.shape
        rows, columns = {
            Window.A: (s.M, s.N),
            Window.B: (s.N, s.K),
            Window.C: (s.M, s.K),
        }[window]
        row, column = divmod(offset // 4, columns)
        text = f"{window.name}[{row}][{column}] of {window.name} ({rows}×{columns})"
        return Spot(_ARRAYS[window], text, row, column, _outside(offset, size, rows * columns * 4))

    # -- faults

    def memory_finding(
        self, index: int, thread: int, block: int, address: int, size: int, access: int, count: int
    ) -> Finding:
        spot = self.spot(address, size, block)
        at = self.place(index, thread, block)
        verb = _verb(access)
        if spot.array is not None and spot.outside is None and address % _power_of_two(size):
            hazard = Hazard.MISALIGNED
            what = f"{_line(at)} {verb}s {size} bytes of {spot.text}, at an address that is not a "
            what += f"multiple of {_power_of_two(size)}"
        else:
            hazard = Hazard.OUT_OF_BOUNDS
            what = f"{_line(at)} {verb}s {size} bytes of {spot.text}{_distance(spot, address)}"
            if spot.array is Array.SHARED and spot.outside is None:  # and so in another block
                what += _OUT_OF_REACH if access & Access.OWN else _IS_OVER
        return Finding(
            tool=Tool.MEMCHECK,
            hazard=hazard,
            message=what,
            at=at,
            access=_access(access),
            size=size or None,
            array=spot.array,
            row=spot.row,
            column=spot.column,
            bytes_outside=spot.outside,
            shape=self.shape,
            occurrences=count,
        )

    def fault(
        self,
        cause: Cause,
        index: int,
        thread: int,
        block: int,
        address: int,
        size: int,
        access: int,
        count: int,
        seconds: float,
        printed: str,
    ) -> Fault:
        at = self.place(index, thread, block)
        item = self.kernel.instruction(index)
        instruction = item.text if item else ""
        if cause is Cause.MEMORY:
            finding = self.memory_finding(index, thread, block, address, size, access, 1)
            message = finding.message
            return Fault(cause="memory", message=message, finding=finding, at=at, printed=printed)
        if cause is Cause.DEADLOCK:
            finding = self.deadlock(index, thread, block, count)
            return Fault(
                cause="deadlock",
                message=finding.message,
                finding=finding,
                at=at,
                printed=printed,
            )
        if cause is Cause.TIME_LIMIT:
            message = f"the kernel did not end within {seconds:g} s; {_line(at)} was running"
            return Fault(cause="time-limit", message=message, at=at, printed=printed)
        if cause is Cause.ASYNC_OVERFLOW:
            message = f"{_line(at)}: more bulk copies in flight than the CPU device keeps"
            return Fault(cause="judge", message=message, at=at, printed=printed)
        if cause is Cause.BAD_OPERAND:
            message = f"{_line(at)} gives `{instruction}` an operand that it does not allow"
            return Fault(cause="trap", message=message, at=at, printed=printed)
        if cause is Cause.CLUSTER_ORDER:
            waits = "wait" in instruction
            what = "waits" if waits else "arrives a second time"
            missing = "arrived" if waits else "waited"
            message = f"{_line(at)} {what} at the cluster's barrier without having {missing}"
            return Fault(cause="trap", message=message, at=at, printed=printed)
        message = f"{_line(at)} stopped the kernel: `{instruction}`"
        return Fault(cause="trap", message=message, at=at, printed=printed)

    def deadlock(self, index: int, thread: int, block: int, count: int) -> Finding:
        at = self.place(index, thread, block)
        return Finding(
            tool=Tool.SYNCCHECK,
            hazard=Hazard.DEADLOCK,
            message=f"{count} threads wait for each other without end, the first at {_line(at)}",
            at=at,
            shape=self.shape,
        )

    # -- findings of the checks

    def finding(self, noted: RawFinding) -> Finding:
        n = noted
        if n.kind is FindingKind.BAD_ACCESS:
            return self.memory_finding(
                n.index, n.thread, n.block, n.address, n.bytes, n.access, n.count
            )
        at = self.place(n.index, n.thread, n.block)
        other = (
            self.place(n.other_index, n.other_thread, n.other_block) if n.other_index >= 0 else None
        )
        if n.kind is FindingKind.UNINITIALISED:
            return self._with_address(
                n,
                Tool.INITCHECK,
                Hazard.UNINITIALISED,
                f"{_line(at)} reads {n.bytes} uninitialised bytes of {{spot}}",
            )
        if n.kind is FindingKind.RACE and n.other_access == Access.ASYNC:
            assert other is not None
            return self._with_address(
                n,
                Tool.RACECHECK,
                Hazard.RACE,
                f"{_line(at)} ({_thread(at)}) {_verb(n.access)}s what the product of "
                f"{_line(other)} ({_thread(other)}) may still read, for it was not waited for: "
                "{spot}",
            )
        if n.kind is FindingKind.RACE:
            assert other is not None
            return self._with_address(
                n,
                Tool.RACECHECK,
                Hazard.RACE,
                f"{_line(at)} ({_thread(at)}) {_verb(n.access)}s what {_line(other)} "
                f"({_thread(other)}) {_verb(n.other_access)}s, with no barrier between them: "
                "{spot}",
            )
        if n.kind is FindingKind.IN_FLIGHT:
            assert other is not None
            return self._with_address(
                n,
                Tool.RACECHECK,
                Hazard.RACE,
                f"{_line(at)} ({_thread(at)}) {_verb(n.access)}s what the copy of {_line(other)} "
                f"({_thread(other)}) has not delivered, for it was not waited for: {{spot}}",
            )
        if n.kind in _UNBOUNDED_VISITS:
            rank = (n.address & (1 << WINDOW_BITS - 1) - 1) >> BLOCK_BITS
            return Finding(
                tool=Tool.RACECHECK,
                hazard=Hazard.RACE,
                message=f"{_line(at)} ({_thread(at)}) {_verb(n.access)}s shared memory of block "
                f"{rank} of the cluster, which {_UNBOUNDED_VISITS[n.kind]}",
                at=at,
                access=_access(n.access),
                size=n.bytes or None,
                array=Array.SHARED,
                shape=self.shape,
                occurrences=n.count,
            )
        if n.kind is FindingKind.LEFT_BEFORE_BARRIER:
            message = (
                f"{_line(at)}: {n.address} threads of the block had returned before this barrier"
            )
        elif n.kind is FindingKind.DIVERGENT_BARRIER:
            assert other is not None
            message = (
                f"{_line(at)} ({_thread(at)}) is a barrier that the whole warp must reach, "
                f"while {_thread(other)} is at {_line(other)}"
            )
        elif n.kind is FindingKind.MISSING_WARPS:
            message = (
                f"{_line(at)} ({_thread(at)}) is a product of four warps, and another warp of the "
                "four has not issued as many"
            )
        else:
            message = (
                f"{_line(at)} ({_thread(at)}) names lanes {n.address % (1 << 32):#010x}, "
                "but some of them have returned, or its own is not among them"
            )
        return Finding(
            tool=Tool.SYNCCHECK,
            hazard=Hazard.DIVERGENT_BARRIER,
            message=message,
            at=at,
            other=other,
            shape=self.shape,
            occurrences=n.count,
        )

    def _with_address(self, n: RawFinding, tool: Tool, hazard: Hazard, message: str) -> Finding:
        spot = self.spot(n.address, n.bytes, n.block)
        other = (
            self.place(n.other_index, n.other_thread, n.other_block) if n.other_index >= 0 else None
        )
        return Finding(
            tool=tool,
            hazard=hazard,
            message=message.format(spot=spot.text),
            at=self.place(n.index, n.thread, n.block),
            other=other,
            access=_access(n.access),
            size=n.bytes or None,
            array=spot.array,
            row=spot.row,
            column=spot.column,
            shape=self.shape,
            occurrences=n.count,
        )


def _position(index: int, size: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _ = size
    return index % x, index // x % y, index // x // y


def _outside(offset: int, size: int, length: int) -> int | None:
    if offset >= 0 and offset + size <= length:
        return None
    return max(-offset - size, offset - length, 0)


def _distance(spot: Spot, address: int) -> str:
    if spot.outside is None:
        return ""
    offset = (address & (1 << WINDOW_BITS) - 1) - MIDDLE
    end = "before its beginning" if offset < 0 else "past its end"
    return f", {spot.outside} bytes {end}" if spot.outside else f", right {end}"


def _power_of_two(size: int) -> int:
    """The alignment of an access: its size, or 16 for a bulk copy."""
    return size if size and not size & (size - 1) and size <= 16 else 16


def _line(at: Place) -> str:
    return f"line {at.line}" if at.line else "an unknown line"


def _thread(at: Place) -> str:
    return f"thread {at.thread}"


def _verb(access: int) -> Literal["read", "write"]:
    return "write" if access & Access.WRITE else "read"


def _access(access: int) -> Literal["read", "write", "atomic"]:
    return "atomic" if access & Access.ATOMIC else _verb(access)


def _plain_name(variable: Placed) -> str:
    """`As` of `_ZZ28matrix_multiplication_kernelE2As`, as the source has it."""
    found = re.search(r"E(\d+)(\w+)$", variable.name)
    if found and variable.name.startswith("_ZZ"):
        return found[2][: int(found[1])]
    return "the local arrays" if variable.name.startswith("__local_depot") else variable.name
