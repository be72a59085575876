"""Converts the records of the runtime into findings and faults, with a message for people."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from harness.ptxcpu.analysis.inline import InlinedKernel, Placed
from harness.ptxcpu.arguments import Buffer
from harness.ptxcpu.grid import Clusters, Size, position
from harness.ptxcpu.ptx.syntax import Instruction
from harness.ptxcpu.results import (
    LOCAL_MEMORY,
    MODULE_MEMORY,
    SHARED_MEMORY,
    Fault,
    Finding,
    Hazard,
    Location,
)
from harness.ptxcpu.runtime.layout import (
    BLOCK_BITS,
    LANES,
    Access,
    Cause,
    Context,
    FindingKind,
    RawFinding,
    State,
    Window,
    window_and_offset,
)

_MEMORIES = {
    Window.MODULE: MODULE_MEMORY,
    Window.LOCAL: LOCAL_MEMORY,
    Window.SHARED: SHARED_MEMORY,
}

_OUT_OF_REACH = ", which .shared::cta does not reach"
_FOR_FRAGMENTS = "; pad the leading dimension of 16-bit fragments to a multiple of 8 elements"
_IS_OVER = ", all threads of which had returned"
_RACES = {
    FindingKind.RACE,
    FindingKind.IN_FLIGHT,
    FindingKind.READ_ONLY_PATH,
    FindingKind.NO_PROXY_FENCE,
}
_UNINITIALISED = {
    FindingKind.UNINITIALISED: "uninitialised bytes",
    FindingKind.PARTLY_UNINITIALISED: "bytes, some uninitialised,",
}
_UNBOUNDED_VISITS = {
    FindingKind.BLOCK_NOT_BEGUN: "may not have begun: nothing here waited for it",
    FindingKind.BLOCK_MAY_BE_OVER: "may have returned before: nothing there waits for this",
}


@dataclass(frozen=True)
class _Spot:
    """The memory at an address; the fields are those of a Finding."""

    memory: str | None
    text: str
    index: tuple[int, ...] | None = None
    outside: int | None = None
    """Bytes between the access and the nearest end of the memory; None if it is inside."""


@dataclass(frozen=True)
class Explainer:
    """Explains findings and faults of one launch of a kernel."""

    kernel: InlinedKernel
    buffers: Sequence[Buffer]
    names: Sequence[str]
    """The name of each buffer in messages."""
    grid: Size
    block: Size

    # -- places

    def _rank(self, block: int) -> int:
        """Return the rank of a block in its cluster."""
        clusters = Clusters(self.grid, self.kernel.cluster)
        return clusters.blocks(clusters.of(block)).index(block)

    @cached_property
    def _callers(self) -> dict[int, set[int]]:
        """The lines where a line is called, by line: one for code that is not inlined."""
        found: dict[int, set[int]] = defaultdict(set)
        for item in self.kernel.body:
            if isinstance(item, Instruction):
                found[item.line].add(item.caller)
        return found

    def _location(self, index: int, thread: int, block: int) -> Location:
        item = self.kernel.instruction(index)
        line = item.line if item and item.line > 0 else None
        caller = item.caller if item and len(self._callers[item.line]) > 1 else None
        return Location(
            line, position(thread, self.block), position(block, self.grid), caller or None
        )

    def _other(self, raw: RawFinding) -> Location | None:
        if raw.other_pc < 0:
            return None
        return self._location(raw.other_pc, raw.other_thread, raw.other_block)

    def _spot(self, address: int, size: int, block: int) -> _Spot:
        """Return the memory at an address. block: the block that accesses it."""
        window, offset = window_and_offset(address)
        if window >= Window.BUFFER + len(self.buffers) or window == Window.NONE:
            return _Spot(None, f"address {address:#x}, which belongs to no array")
        if window >= Window.BUFFER:
            return self._buffer_spot(window - Window.BUFFER, offset, size)
        variables = {
            Window.SHARED: self.kernel.shared,
            Window.LOCAL: self.kernel.local,
            Window.MODULE: self.kernel.module,
        }[Window(window)]
        memory, of_block = _MEMORIES[Window(window)], ""
        if window == Window.SHARED and offset >= 0:
            rank, offset = divmod(offset, 1 << BLOCK_BITS)
            if rank >= self.kernel.cluster_blocks > 1:
                return _Spot(
                    None, f"address {address:#x}, which belongs to no block of the cluster"
                )
            if rank != self._rank(block):
                of_block = f" in block {rank} of the cluster"
        nearest = variables.nearest(offset)
        if nearest is None:
            text = f"{memory} at byte {offset}{of_block}: the kernel has none"
            return _Spot(memory, text, outside=abs(offset))
        within = offset - nearest.offset
        text = f"{memory} at byte {within} of {_plain_name(nearest)} ({nearest.size} bytes)"
        return _Spot(memory, text + of_block, outside=_outside(within, size, nearest.size))

    def _buffer_spot(self, number: int, offset: int, size: int) -> _Spot:
        data, name = self.buffers[number].data, self.names[number]
        shape = data.shape or (1,)
        index: list[int] = []
        left = offset // data.itemsize
        for extent in reversed(shape[1:]):
            left, last = divmod(left, extent or 1)
            index.insert(0, last)
        index.insert(0, left)
        subscripts = "".join(f"[{i}]" for i in index)
        text = f"{name}{subscripts} of {name} ({'×'.join(map(str, shape))})"
        return _Spot(name, text, tuple(index), _outside(offset, size, data.nbytes))

    # -- faults

    def fault(self, stopped: Context, seconds: float) -> Fault:
        """Return why a launch with a time limit of this many seconds was stopped in a block."""
        at = self._location(stopped.fault_pc, stopped.fault_thread, stopped.block)
        item = self.kernel.instruction(stopped.fault_pc)
        instruction = item.text if item else ""
        cause, line = Cause(stopped.fault), _line(at)
        found: Finding | None = None
        if cause is Cause.MEMORY:
            found = self.finding(_bad_access(stopped))
        elif cause is Cause.DEADLOCK:
            threads = f"{stopped.fault_count} threads wait for each other without end"
            message = f"{threads}, the first at {line}{self._awaited(stopped)}"
            found = Finding(Hazard.DEADLOCK, message, at)
        elif cause is Cause.BARRIER_COUNT:
            counts = f"for {stopped.fault_bytes} threads, and others for {stopped.fault_address}"
            message = f"at a barrier, {line} waits or arrives {counts}; name the same number"
            found = Finding(Hazard.DEADLOCK, message, at)
        operand = f"gives `{instruction}` an operand that it does not allow"
        if instruction.startswith("cp.async.bulk") and stopped.fault_bytes % 16:
            operand = f"copies {stopped.fault_bytes} bytes; bulk copies take multiples of 16"
        waits = "wait" in instruction
        messages = {
            Cause.TIME_LIMIT: f"the kernel did not end within {seconds:g} s; {line} was running",
            Cause.ASYNC_OVERFLOW: f"{line}: more bulk copies in flight than the CPU device keeps",
            Cause.TRACE_OVERFLOW: f"{line}: more accesses between two waits than the CPU device "
            "can count",
            Cause.BAD_OPERAND: f"{line} {operand}",
            Cause.CLUSTER_ORDER: f"{line} {'waits' if waits else 'arrives a second time'} at the "
            f"cluster's barrier without having {'arrived' if waits else 'waited'}",
            Cause.TRAP: f"the assertion of {line} failed"
            if "__assertfail" in instruction
            else f"{line} stopped the kernel: `{instruction}`",
        }
        return Fault(cause, found.message if found else messages[cause], at, found)

    def _awaited(self, stopped: Context) -> str:
        """Return what the first thread of a deadlock waits for."""
        state, found = stopped.fault_access, stopped.fault_bytes
        if state == State.BARRIER:
            here, needed = found & 0xFFFFFFFF, found >> 32
            return f": barrier {stopped.fault_address} has {here} of {needed} threads"
        if state != State.MBARRIER:
            return ""
        pending, expected = found & 0xFFFFF, found >> 20 & 0xFFFFF
        left = found >> 40 & 0x7FFFFF
        left -= left >> 22 << 23  # it has a sign
        missing = []
        if pending > expected:
            missing.append(f"has had more than its {expected} arrivals")
        elif pending:
            missing.append(f"lacks {pending} of {expected} arrivals")
        if left:
            missing.append(f"lacks {left} bytes" if left > 0 else f"has had {-left} bytes too many")
        spot = self._spot(stopped.fault_address, 8, stopped.block).text
        return (
            f": the phase of parity {int(found < 0)} of an mbarrier {' and '.join(missing)}: {spot}"
        )

    # -- findings

    def finding(self, raw: RawFinding) -> Finding:
        """Return the finding of one row of the runtime's checks."""
        at, other = self._location(raw.pc, raw.thread, raw.block), self._other(raw)
        if raw.kind == FindingKind.BAD_ACCESS:
            return self._access_finding(raw, *self._mistake(raw, at))
        if raw.kind in _UNINITIALISED:
            message = f"{_line(at)} reads {raw.bytes} {_UNINITIALISED[raw.kind]} of {{spot}}"
            return self._access_finding(raw, Hazard.UNINITIALISED, message)
        if raw.kind in _RACES:
            return self._access_finding(raw, Hazard.RACE, _race(raw, at, other))
        if raw.kind == FindingKind.SUM_IN_FLIGHT:
            assert other is not None
            message = (
                f"{_access_of(at)} reads a sum of the product of {_line(other)} before "
                "wgmma.wait_group has waited for it, which PTX leaves undefined"
            )
            return Finding(Hazard.RACE, message, at, other, access="read", occurrences=raw.count)
        if raw.kind in _UNBOUNDED_VISITS:
            _, offset = window_and_offset(raw.address)
            message = (
                f"{_access_of(at)} {_verb(raw.access)}s shared memory of block "
                f"{offset >> BLOCK_BITS} of the cluster, which {_UNBOUNDED_VISITS[raw.kind]}"
            )
            return self._access_finding(raw, Hazard.RACE, message)
        if raw.kind == FindingKind.EARLY_RETURN:
            message = f"{_line(at)}: {raw.address} threads had returned before this barrier"
            return Finding(Hazard.EARLY_RETURN, message, at, occurrences=raw.count)
        message = _barrier_message(raw, at, other)
        return Finding(Hazard.DIVERGENT_BARRIER, message, at, other, occurrences=raw.count)

    def _mistake(self, raw: RawFinding, at: Location) -> tuple[Hazard, str]:
        """Return what is wrong with an access that no memory allows, as a text that contains
        {spot}."""
        spot = self._spot(raw.address, raw.bytes, raw.block)
        item = self.kernel.instruction(raw.pc)
        instruction = item.text if item else ""
        how = ", by a matrix descriptor," if instruction.startswith("wgmma") else ""
        what = f"{_line(at)} {_verb(raw.access)}s{how} {raw.bytes} bytes of {{spot}}"
        alignment = _alignment(raw.bytes, instruction)
        if spot.memory is not None and spot.outside is None and raw.address % alignment:
            what += f", at an address that is not a multiple of {alignment}"
            if instruction.startswith("wmma.load") and alignment == 16:
                what += _FOR_FRAGMENTS
            return Hazard.MISALIGNED, what
        what += _distance(spot, raw.address)
        if spot.memory == SHARED_MEMORY and spot.outside is None:  # and so in another block
            what += _OUT_OF_REACH if raw.access & Access.OWN else _IS_OVER
        return Hazard.OUT_OF_BOUNDS, what

    def _access_finding(self, raw: RawFinding, hazard: Hazard, message: str) -> Finding:
        """Return a finding about memory. message: a text that may contain {spot}."""
        spot = self._spot(raw.address, raw.bytes, raw.block)
        return Finding(
            hazard,
            message.format(spot=spot.text),
            self._location(raw.pc, raw.thread, raw.block),
            self._other(raw),
            access=_access(raw.access),
            size=raw.bytes or None,
            memory=spot.memory,
            index=spot.index,
            bytes_outside=spot.outside if hazard is Hazard.OUT_OF_BOUNDS else None,
            partly=raw.kind == FindingKind.PARTLY_UNINITIALISED,
            occurrences=raw.count,
        )


def _bad_access(stopped: Context) -> RawFinding:
    """Return the row that the checks would record for the access that stopped a launch."""
    return RawFinding(
        kind=FindingKind.BAD_ACCESS,
        pc=stopped.fault_pc,
        other_pc=-1,
        thread=stopped.fault_thread,
        block=stopped.block,
        address=stopped.fault_address,
        bytes=stopped.fault_bytes,
        access=stopped.fault_access,
        count=1,
    )


def _race(raw: RawFinding, at: Location, other: Location | None) -> str:
    assert other is not None
    what = f"{_access_of(at)} {_verb(raw.access)}s what"
    if raw.kind == FindingKind.IN_FLIGHT:
        return (
            f"{what} the copy of {_access_of(other)} has not delivered, because it was not "
            "waited for: {spot}"
        )
    if raw.other_access & (Access.ASYNC | Access.WRITE) == Access.ASYNC:
        return (
            f"{what} the product of {_access_of(other)} may still read, because it was not "
            "waited for: {spot}"
        )
    if raw.kind == FindingKind.NO_PROXY_FENCE:
        return (
            f"{_access_of(at)} reads by the asynchronous proxy what {_access_of(other)} writes, "
            f"with no fence.proxy.async between them (after {_line(other)}, before the barrier): "
            "{spot}"
        )
    if raw.kind == FindingKind.READ_ONLY_PATH:
        path = "the read-only path (ld.global.nc) needs memory that no thread writes"
        return f"{what} {_access_of(other)} {_verb(raw.other_access)}s, and {path}: {{spot}}"
    return f"{what} {_access_of(other)} {_verb(raw.other_access)}s, with {_missing(raw)}: {{spot}}"


def _missing(raw: RawFinding) -> str:
    """Return what is missing that would have ordered the two accesses of a race."""
    strong = Access.ATOMIC | Access.STRONG
    if raw.access & strong and raw.other_access & strong:
        return "scopes that do not include the other's block"
    is_shared = window_and_offset(raw.address)[0] == Window.SHARED
    if raw.block != raw.other_block and not is_shared:
        return "no release and acquire between the two blocks"
    return "no barrier between them"


def _barrier_message(raw: RawFinding, at: Location, other: Location | None) -> str:
    if raw.kind == FindingKind.DIVERGENT_BARRIER:
        assert other is not None
        return (
            f"{_access_of(at)} is a barrier that the whole warp must reach, "
            f"while {_thread(other)} is at {_line(other)}"
        )
    if raw.kind == FindingKind.MISSING_WARPS:
        return (
            f"{_access_of(at)} is a product of four warps, and another warp of the four has not "
            "issued as many"
        )
    assert raw.kind == FindingKind.MISSING_LANES
    lanes = raw.address % (1 << 32)
    is_named = lanes >> raw.thread % LANES & 1
    but = "one of which it needs and which has returned" if is_named else "but not its own"
    return f"{_access_of(at)} names lanes {lanes:#010x}, {but}"


def _outside(offset: int, size: int, length: int) -> int | None:
    if offset >= 0 and offset + size <= length:
        return None
    return max(-offset - size, offset - length, 0)


def _distance(spot: _Spot, address: int) -> str:
    if spot.outside is None:
        return ""
    end = "before its beginning" if window_and_offset(address)[1] < 0 else "past its end"
    return f", {spot.outside} bytes {end}" if spot.outside else f", right {end}"


_COPY_SIZE = re.compile(r"cp\.async\.c[ag]\.[^\]]*\][^\]]*\]\s*,\s*(4|8|16)\b")


def _alignment(size: int, instruction: str) -> int:
    """Return the alignment that an access needs: its size, or 16 for a bulk copy. A `cp.async` may
    read fewer bytes than its size and fill the rest with zeros."""
    if copied := _COPY_SIZE.match(instruction):
        return int(copied[1])
    return size if size and not size & (size - 1) and size <= 16 else 16


def _line(at: Location, *more: str) -> str:
    """Return the line, with what more is known of it in brackets."""
    if at.caller:
        more = f"called at line {at.caller}", *more
    name = f"line {at.line}" if at.line else "an unknown line"
    return f"{name} ({', '.join(more)})" if more else name


def _thread(at: Location) -> str:
    return f"thread {at.thread}"


def _access_of(at: Location) -> str:
    return _line(at, _thread(at))


def _verb(access: int) -> str:
    return "use" if access & Access.MBARRIER else "write" if access & Access.WRITE else "read"


def _access(access: int) -> Literal["read", "write", "atomic"]:
    if access & Access.ATOMIC:
        return "atomic"
    return "write" if access & Access.WRITE else "read"


def _plain_name(variable: Placed) -> str:
    """Return `As` for `_ZZ28matrix_multiplication_kernelE2As`."""
    found = re.search(r"E(\d+)(\w+)$", variable.name)
    if found and variable.name.startswith("_ZZ"):
        return found[2][: int(found[1])]
    return "the local arrays" if variable.name.startswith("__local_depot") else variable.name
