"""Checks a unit's accesses for races and uninitialised reads.

Each cell of shared memory has two words: one for the last write and one for the last read. A word
contains the number of the interval between barriers and the thread, or MANY. An access is ordered
unless the other word has the same interval and another thread. A cell that is read must have been
written since the block began. Other orders than that of barriers of the whole block are not known
for shared memory.

Accesses to global memory that the kernel writes are reported to the checks of the thread path
(`runtime/watch.cu`). These keep a clock for each thread. Where neighbouring lanes access
neighbouring bytes, one record describes up to 64 bytes. A kernel may order such accesses by more
than barriers (`keeps_clocks`). Then its fences and atomics are reported as well.

A copy (`cp.async`) writes its bytes at once. Until a thread waits for it, its cells have a word
with which no access is ordered. So have the cells of a bulk copy until a thread waits for its
mbarrier, and those of an mbarrier itself. The order of threads that mbarriers make is not known
here: a kernel that needs it without a barrier of the block is watched on the thread path.

The result only says whether a block may have an error. If so, threads run the launch again, and
their checks find the error. Kernels with atomics or strong accesses in shared memory are refused.

Source: C. Flanagan and S. Freund, "FastTrack: Efficient and Precise Dynamic Race Detection", PLDI
2009 (one epoch for each cell is enough where accesses are totally ordered).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.codegen.llvm_ir import IrValue, constant
from harness.ptxcpu.codegen.operands import MemoryAccess
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.effects import COMPUTED, is_ordered
from harness.ptxcpu.ptx.syntax import Address, Instruction, Integer
from harness.ptxcpu.runtime.layout import MANY_THREADS, WATCH_OFFSET, Window
from harness.ptxcpu.runtime.layout import Access as Kind
from harness.ptxcpu.vector.access import Access, is_ordered_in_global_memory
from harness.ptxcpu.vector.builder import LaneVector
from harness.ptxcpu.vector.shapes import Shape
from harness.ptxcpu.vector.translator import VectorTranslator

_MOST_CELLS = 8
"""The number of cells that are checked by one vector instruction."""

_MOST_RUNS = 16
"""The most rows of neighbouring cells of an access that is checked without a call."""

_WORD = 4

_COPIES = ("ca", "cg", "commit_group", "wait_group", "wait_all")
"""The words after `cp.async` in the instructions that are watched."""

_BULK_COPY = re.compile(
    r"cp\.async\.bulk\.shared::\w+\.global\.mbarrier::complete_tx::bytes(\.L2::cache_hint)?"
)


def refusal(kernel: InlinedKernel) -> str:
    """Return why a kernel's blocks cannot be watched on the vector path; empty if they can."""
    for item in kernel.body:
        if isinstance(item, Instruction):
            root, *modifiers = item.opcode.split(".")
            is_watched = "test_wait" not in modifiers
            if root in ("atom", "red"):
                is_watched = "global" in modifiers
            if root == "cp":
                is_watched = modifiers[1] in _COPIES or bool(_BULK_COPY.fullmatch(item.opcode))
            if not is_watched:
                return f"the instruction {item.opcode!r}"
    return ""


def keeps_clocks(kernel: InlinedKernel, exchanged: Collection[int]) -> bool:
    """Return whether a kernel may order accesses to global memory by more than barriers of the
    block: it has atomics or strong accesses, or blocks depend on one another through memory."""
    items = (item for item in kernel.body if isinstance(item, Instruction))
    return bool(exchanged) or any(
        item.opcode.startswith(("atom.", "red."))
        or (item.opcode.startswith(("ld.", "st.")) and is_ordered(item))
        for item in items
    )


@dataclass(frozen=True)
class _Run:
    """Neighbouring cells that one instruction of a group of lanes accesses.

    first: the first cell, relative to that of the group's leader.
    lanes: the lane that accesses each cell; None if several lanes access the same cell.
    """

    first: int
    lanes: tuple[int, ...] | None
    size: int


class WatchedTranslator(VectorTranslator):
    """A VectorTranslator whose units check their accesses."""

    def __init__(
        self,
        kernel: InlinedKernel,
        table: InstructionTable,
        block: tuple[int, int, int],
        lanes: int,
        cell_width: int,
    ) -> None:
        reason = refusal(kernel)
        if reason:
            raise CannotTranslate(f"{reason} in watched vector code")
        super().__init__(kernel, table, block, lanes)
        self._cell_width = cell_width
        self._doubts: dict[int, IrValue] = {}
        """Vector variables by size in words; a negative word means an access that was not
        ordered."""
        self._watched_ahead: set[int] = set()
        """The loads that were checked together with an earlier one."""
        self._addresses: IrValue | None = None
        self._inputs = {*kernel.buffer_windows.values()} - kernel.writable_windows
        self._keeps_clocks = keeps_clocks(kernel, self._exchanged)
        opcodes = (item.opcode for item in kernel.body if isinstance(item, Instruction))
        if self._keeps_clocks and any(opcode.startswith("mbarrier") for opcode in opcodes):
            raise CannotTranslate("mbarriers next to strong accesses in watched vector code")
        windows = {*kernel.buffer_windows.values(), Window.MODULE}
        for access in self._accesses.values():
            if access.space != "shared":
                self._must_point_into(windows, access.space, access.address)

    def _must_point_into(self, windows: Collection[int], space: str, address: Address) -> None:
        if self._window_of(space, address) not in windows:
            raise CannotTranslate("a pointer of unknown origin in watched vector code")

    # -- accesses

    def _runs_apart(self, item: Instruction) -> bool:
        return is_ordered_in_global_memory(item)

    def _access(self, access: Access) -> None:
        if access.space != "shared":
            if self._window_of(access.space, access.address) not in self._inputs:
                item = self.kernel.body[access.index]
                is_read_only = isinstance(item, Instruction) and "nc" in item.opcode.split(".")
                read = Kind.READ_ONLY if is_read_only else Kind.READ
                kind = Kind.WRITE if access.is_store else read
                self._tell_global(access.address, MemoryAccess(access.index, access.bytes, kind))
            super()._access(access)
            return
        shape, runs = self._shape_of(access), None
        if not shape.is_varying and self.mask_bits is None:
            if access.index in self._watched_ahead:
                self._watched_ahead.remove(access.index)
                super()._access(access)
                return
            together = self._reads_ahead(access)
            runs = self._runs(together, shape)
            if runs is None:
                together, runs = [access], self._runs([access], shape)
            self._watched_ahead.update(each.index for each in together[1:] if runs)
        if runs is None:
            address = access.address
            where = [
                (self._all_addresses(Address(address.base, address.offset + first)), last - first)
                for first, last in access.used
            ]
            super()._access(access)
            for addresses, size in where:
                self._tell("rt_watch_shared", addresses, size, int(access.is_store))
            return
        leaders = [leader for leader, _ in self._leaders(access.address, shape)]
        super()._access(access)
        for leader, part in zip(leaders, runs, strict=True):
            for run in part:
                self._watch_run(leader, run, access.is_store)

    def _reads_ahead(self, access: Access) -> list[Access]:
        """Return this load and the later ones with the same base address, up to the next
        instruction that may write to shared memory or wait. No other thread can act between them.
        Return only the access if it is a store, or if it has a guard."""
        item = self.kernel.body[access.index]
        if access.is_store or (isinstance(item, Instruction) and item.guard is not None):
            return [access]
        found = []
        for other in self._with_same_base(access):
            between = self.kernel.body[access.index : other.index]
            roots = {x.opcode.split(".")[0] for x in between if isinstance(x, Instruction)}
            if other.is_store or roots - COMPUTED - {"ld"}:
                break
            found.append(other)
        return found

    def _runs(self, together: Sequence[Access], shape: Shape) -> list[list[_Run]] | None:
        """Return the cells that each group of lanes accesses; None if they are too scattered."""
        size, width = self.lanes // shape.groups, self._cell_width
        found = []
        for group in range(shape.groups):
            users: dict[int, set[int]] = {}
            for access, lane in product(together, range(group * size, (group + 1) * size)):
                start = access.address.offset + shape.offsets[lane]
                for first, last in access.used:
                    for cell in range((start + first) // width, -(-(start + last) // width)):
                        users.setdefault(cell, set()).add(lane)
            if together[0].is_store and any(len(lanes) > 1 for lanes in users.values()):
                return None
            found.append(_runs_of(users))
        most = _MOST_RUNS * shape.groups * len(together)
        return found if sum(map(len, found)) <= most else None

    def _watch_run(self, leader: IrValue, run: _Run, is_store: bool) -> None:
        whole = f"<{run.size} x i32>"
        at = self.op("mul", leader, _WORD // self._cell_width)
        at = self.op("add", at, run.first * _WORD)
        writes, reads = (self.offset(self._watched(x, "ptr"), at) for x in ("writes", "reads"))
        now = self._splatted("now", run.size)
        own = self._own(run)
        written = self.raw(whole, f"load {whole}, {writes}, align 4")
        since = self.raw(whole, f"sub {self._splatted('last', run.size)}, {written.text}")
        if own is None:
            self._doubt(run.size, since)
            self._doubt_unwritten(run.size, written)
            many = self.raw(whole, f"or {now}, splat (i32 {MANY_THREADS})")
            self.emit(f"store {many}, {reads}, align 4")
            return
        self._doubt(run.size, self._unless_own(since, written, own))
        read = self.raw(whole, f"load {whole}, {reads}, align 4")
        if is_store:
            since = self.raw(whole, f"sub {self._splatted('last', run.size)}, {read.text}")
            self._doubt(run.size, self._unless_own(since, read, own))
            self.emit(f"store {own}, {writes}, align 4")
            return
        self._doubt_unwritten(run.size, written)
        bits = f"<{run.size} x i1>"
        earlier = self.raw(bits, f"icmp slt {read}, {now.text}")
        same = self.raw(bits, f"icmp eq {read}, {own.text}")
        alone = self.raw(bits, f"or {earlier}, {same.text}")
        many = self.raw(whole, f"or {now}, splat (i32 {MANY_THREADS})")
        word = self.raw(whole, f"select {alone}, {own}, {many}")
        self.emit(f"store {word}, {reads}, align 4")

    def _unless_own(self, since: IrValue, word: IrValue, own: IrValue) -> IrValue:
        """Return zero for each word that is the lane's own."""
        size = since.type[1:].split(" ")[0]
        same = self.raw(f"<{size} x i1>", f"icmp eq {word}, {own.text}")
        return self.raw(since.type, f"select {same}, {since.type} zeroinitializer, {since}")

    def _doubt_unwritten(self, size: int, written: IrValue) -> None:
        first = self._splatted("first", size)
        self._doubt(size, self.raw(written.type, f"sub {written}, {first.text}"))

    def _doubt(self, size: int, words: IrValue) -> None:
        if size not in self._doubts:
            self._doubts[size] = self.variable(words.type)
        before = self.load(words.type, self._doubts[size])
        self.store(self.raw(words.type, f"or {before}, {words.text}"), self._doubts[size])

    def _own(self, run: _Run) -> IrValue | None:
        """Return the words of the lanes that access these cells, if each is accessed by one
        lane."""
        if run.lanes is None:
            return None
        lanes = ", ".join(f"i32 {lane}" for lane in run.lanes)
        whole = f"<{run.size} x i32>"
        base = self._splatted("own", run.size)
        return self._once(
            f"watch own {run.lanes}", lambda: self.raw(whole, f"add {base}, <{lanes}>")
        )

    def _splatted(self, name: str, size: int) -> IrValue:
        def scalar() -> IrValue:
            if name == "last":
                return self.op("sub", self._watched("now", "i32"), 1)
            if name == "own":
                return self.op("add", self._watched("now", "i32"), IrValue("%first32", "i32"))
            return self._watched(name, "i32")

        return self._once(f"watch {name} {size}", lambda: self._splat(scalar(), size))

    def _watched(self, name: str, type_: str) -> IrValue:
        """Return a field of the Watch, which does not change until the next barrier."""
        watch = self.field("watch", "ptr")
        return self._once(
            f"watch {name}", lambda: self.load(type_, self.offset(watch, WATCH_OFFSET[name]))
        )

    # -- reports to the runtime

    def pointer(self, space: str, address: Address, access: MemoryAccess) -> IrValue:
        """The runtime checks accesses of one lane. An access that is executed once for several
        lanes is reported for all of them."""
        if self._one_lane is not None or not self._keeps_clocks:
            return super().pointer(space, address, access)
        self._tell_global(address, access)
        where = self.address_value(address)
        pointer = self.ask("ptr", "rt_locate", where, access.n, int(access.kind))
        self.leave_unless(self.compare("ne", pointer, IrValue("null", "ptr")))
        return pointer

    def _tell_global(self, address: Address, access: MemoryAccess) -> None:
        lane = self._lane
        where = self._all_addresses(address)
        self._tell("rt_watch_global", where, access.index, access.n, int(access.kind))
        self._lane = lane

    def fence(self, name: str, *arguments: int) -> None:
        if self._keeps_clocks and name == "rt_fence":
            self._tell_lanes("rt_watch_fence", *arguments)

    def _tell(self, name: str, addresses: LaneVector, *numbers: int) -> None:
        if self._addresses is None:
            self._addresses = self.variable(f"<{self.lanes} x i64>")
        self.store(addresses, self._addresses)
        self._tell_lanes(name, self._addresses, *numbers)

    def _tell_lanes(self, name: str, *arguments: IrValue | int) -> None:
        """Call the runtime with these arguments and the lanes that execute the instruction."""
        every = constant("i64", (1 << self.lanes) - 1)
        mask = every if self.mask_bits is None else self.resize(self.mask_bits, "i64")
        self._lane = None
        self.tell(name, mask, *arguments)

    def _copy_async(self, index: int, item: Instruction) -> None:
        """The cells of the copied bytes are in flight until they are waited for."""
        super()._copy_async(index, item)
        what = item.opcode.split(".")[2]
        if what not in ("ca", "cg", "bulk"):
            return
        to, from_, size = item.operands[:3]
        assert isinstance(to, Address)
        assert isinstance(from_, Address)
        self._must_point_into(self._inputs, "global", from_)
        if what == "bulk":  # the runtime knows where it writes
            return
        assert isinstance(size, Integer)
        self._tell("rt_watch_copy", self._all_addresses(to), size.value)

    def before_meeting(self) -> None:
        """Report to the runtime whether an access of this interval was not ordered."""
        for size, variable in self._doubts.items():
            whole = f"<{size} x i32>"
            words = self.load(whole, variable)
            name = f"llvm.vector.reduce.or.v{size}i32"
            self.declarations.add(f"declare i32 @{name}({whole})")
            word = self.raw("i32", f"call i32 @{name}({words})")
            place = self.offset(self.field("watch", "ptr"), WATCH_OFFSET["doubt"])
            self.store(self.op("or", self.load("i32", place), word), place)
            self.store(IrValue("zeroinitializer", whole), variable)


def _runs_of(users: dict[int, set[int]]) -> list[_Run]:
    """Return rows of neighbouring cells that have one user each, or several."""
    runs: list[_Run] = []
    cells = sorted(users)
    at = 0
    while at < len(cells):
        alone = len(users[cells[at]]) == 1
        size = 1
        while size < _MOST_CELLS and _is_run(users, cells, at, 2 * size, alone):
            size *= 2
        lanes = tuple(min(users[cell]) for cell in cells[at : at + size]) if alone else None
        runs.append(_Run(cells[at], lanes, size))
        at += size
    return runs


def _is_run(
    users: dict[int, set[int]], cells: Sequence[int], at: int, size: int, alone: bool
) -> bool:
    if at + size > len(cells) or cells[at + size - 1] != cells[at] + size - 1:
        return False
    return all((len(users[cell]) == 1) == alone for cell in cells[at : at + size])
