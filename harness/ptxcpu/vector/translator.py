"""Makes one coroutine per unit of a kernel: `lanes` neighbouring threads that run together.

An instruction is emitted once for each group of lanes of its result, as scalar code for the
group's leader (see `shapes.py`); where the result is varying, once as vector code.

Cases that this code does not handle are left to the thread path. If such a case is found while
translating, CannotTranslate is raised. If it occurs at run time, the unit ends in State.LEFT, and
threads run the whole block again. Such cases are branches on which lanes diverge, an access outside
its array, an overflow that the analysis assumed not to happen, and the time limit. So the thread
path always finds and describes a fault. Running a block again gives the same result if it reads
nothing that blocks write. Otherwise the whole launch is run again (`execution/launch.py`).

Lanes that diverge at a branch run under masks until they reconverge: each basic block for the lanes
that reach it, a loop until no lane is left in it (Pharr and Mark, see `shapes.py`). Instructions
whose effects take place for one lane after the other (atomics, mbarriers, bulk copies) are lowered
as for a thread, in a loop over the lanes of the mask.

Sources: see `shapes.py`. Running from barrier to barrier is due to P. Jääskeläinen et al., "pocl: A
Performance-Portable OpenCL Implementation", IJPP 2015, who split the kernel at barriers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.ptxcpu.analysis.block_dependence import exchanged_windows
from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.analysis.ranges import decided
from harness.ptxcpu.codegen.liveness import liveness
from harness.ptxcpu.codegen.llvm_ir import FALSE, IrValue, all_ones, constant, llvm_type
from harness.ptxcpu.codegen.operands import B32, B64, CARRY, PREDICATE, MemoryAccess
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Mode, Translator
from harness.ptxcpu.errors import CannotTranslate, InternalError
from harness.ptxcpu.ptx.effects import COMPUTED, written_by
from harness.ptxcpu.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Label,
    Not,
    Operand,
    Register,
    Sink,
)
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.runtime.layout import Cause, State, Window
from harness.ptxcpu.vector.access import (
    ELEMENT,
    Access,
    LaneMemory,
    decode,
    is_ordered_in_global_memory,
)
from harness.ptxcpu.vector.bounds import without_data
from harness.ptxcpu.vector.builder import LaneVector, is_vector
from harness.ptxcpu.vector.masks import MaskedRegion
from harness.ptxcpu.vector.shapes import (
    ONE_BY_ONE,
    Shape,
    ShapeAnalysis,
    special_lanes,
    uniform,
)
from harness.ptxcpu.vector.tile import tiled
from harness.ptxcpu.vector.unroll import unrolled

_ROW = 4
"""The number of elements that are permuted at once."""

_SPACES = ("global", "shared", "const", "")

_KNOWN = {
    *(*COMPUTED, *ONE_BY_ONE, "ld", "st", "cp", "bra", "bar", "barrier"),
    *("ret", "exit", "trap", "brkpt", "nanosleep"),
}
"""The instructions that have vector code; a form of them may still have none."""


def refusal(kernel: InlinedKernel, block: tuple[int, int, int], lanes: int) -> str:
    """Return why a kernel cannot run on the vector path; empty if it can."""
    x, y, z = block
    if x * y * z % lanes:
        return "the block is not made of whole units"
    if kernel.cluster_blocks > 1:
        return "clusters"
    if kernel.local.size:
        return "local memory"
    for item in kernel.body:
        if isinstance(item, Label):
            continue
        root, *modifiers = item.opcode.split(".")
        if root not in _KNOWN:
            return f"the instruction {item.opcode!r}"
        if root in ("atom", "red") and ("cas" in modifiers or TYPES[modifiers[-1]].is_float):
            return "atomics whose result depends on the order of threads"
    return ""


def lanes_for(kernel: InlinedKernel, block: tuple[int, int, int]) -> int:
    """Return how many threads a unit should have.

    A thread with few sums leaves vector registers free for more threads. A thread with many sums
    has long code, which takes longer to translate for more threads.
    """
    count: dict[str, int] = {}
    for item in kernel.body:
        if isinstance(item, Instruction) and item.opcode.startswith(("fma", "mov.f", "add.f")):
            for name in written_by(item):
                count[name] = count.get(name, 0) + 1
    sums = sum(times > 1 for times in count.values())
    wanted = 64 if sums <= 2 else 32 if sums <= 16 else 16
    x, y, z = block
    while wanted > 8 and x * y * z % wanted:
        wanted //= 2
    return wanted


class VectorTranslator(LaneMemory, Translator):
    """A unit as a coroutine `ptr @thread(context, unit)`, called like that of Translator."""

    def __init__(
        self,
        kernel: InlinedKernel,
        table: InstructionTable,
        block: tuple[int, int, int],
        lanes: int,
        only_bounds: bool = False,
    ) -> None:
        """only_bounds: compute only what addresses and branches depend on."""
        reason = refusal(kernel, block, lanes)
        if reason:
            raise CannotTranslate(f"{reason} in vector code")
        kernel = tiled(unrolled(decided(kernel, block)))
        self._unread_copies: frozenset[int] = frozenset()
        instructions = len(kernel.body)
        if only_bounds:
            kernel, self._unread_copies = without_data(kernel)
        self.computes_data = len(kernel.body) > instructions // 2
        """Whether most of the kernel's work is left, although only its bounds are checked."""
        super().__init__(kernel, table, block, Mode.RUN)
        self.lanes = lanes
        self.shapes = ShapeAnalysis(kernel, block, lanes)
        self._exchanged = exchanged_windows(kernel)
        self._slots: dict[str, list[str]] = {}
        self._lane: int | None = 0
        """The lane whose values are read and written; None for all of them."""
        self._delayed: list[tuple[Operand, IrValue, bool, int | None]] | None = None
        self.mask_bits: IrValue | None = None
        """The lanes that execute the current instruction; None for all of them."""
        self._one_lane: IrValue | None = None
        """The number, as i32, of the one lane that executes it, if its lane is known only at run
        time."""
        self.loops_entered = 0
        """The number of loops around this instruction that lanes leave at different times."""
        self._allocated: list[tuple[str, str]] = []
        """Names and types of this translation's own variables."""
        self._vectors: dict[str, LaneVector] = {}
        self._loaded_ahead: dict[tuple[str, int], IrValue] = {}
        """The values of loads of this basic block, by base and offset."""
        self._written = [
            written_by(item) if isinstance(item, Instruction) else () for item in kernel.body
        ]
        self._accesses = {
            i: self._decoded(table, item, i)
            for i, item in enumerate(kernel.body)
            if isinstance(item, Instruction)
            and item.opcode.startswith(("ld.", "st."))
            and ".param" not in item.opcode
            and not self._runs_apart(item)
        }

    def _runs_apart(self, item: Instruction) -> bool:
        """Return whether a load or store runs for one lane after the other."""
        return bool(self._exchanged) and is_ordered_in_global_memory(item)

    @staticmethod
    def _decoded(table: InstructionTable, item: Instruction, index: int) -> Access:
        access = decode(table, item, index)
        if access.space not in _SPACES:
            raise CannotTranslate(f"a .{access.space} access in vector code")
        return access

    # -- the function around the body

    attributes = '"stackrealign"'
    faulty = "leave"

    def locate_thread(self) -> None:
        self.emit(f"%first = mul i64 %t, {self.lanes}")
        self.emit("%first32 = trunc i64 %first to i32")
        threads = self.field("thread", "ptr")
        self.emit(f"%me = getelementptr [{layout.THREAD_BYTES} x i8], {threads}, i64 %t")

    def end(self) -> None:
        for label, state in (("exit", State.EXITED), ("leave", State.LEFT)):
            self.place(label)
            if state is State.EXITED:
                self.before_meeting()
            self.store(constant("i32", state), self.cell("state"))
            self.jump("last")
        self.place("last")

    def body(self) -> None:
        start = len(self.lines)
        self.statements()
        statements = self.lines[start:]
        del self.lines[start:]
        unwritten = liveness(statements).unwritten
        allocations = [f"  {CARRY} = alloca i1"]
        for name, slots in self._slots.items():
            type_ = self._slot_type(name)
            for slot in slots:
                allocations.append(f"  {slot} = alloca {type_}")
                if slot in unwritten:
                    self.store(all_ones(type_), IrValue(slot, "ptr"))
        for name, type_ in self._allocated:
            allocations.append(f"  {name} = alloca {type_}")
            self.store(IrValue("zeroinitializer", type_), IrValue(name, "ptr"))
        self.lines[self._declared_at : self._declared_at] = allocations
        self.lines += statements

    def variable(self, type_: str) -> IrValue:
        """Return the address of a new variable, which is zero when the unit begins."""
        name = f"%own{len(self._allocated)}"
        self._allocated.append((name, type_))
        return IrValue(name, "ptr")

    # -- registers

    def _slots_of(self, name: str) -> list[str]:
        if name not in self._slots:
            shape = self.shapes.shape(name)
            count = 1 if shape.is_varying else shape.groups
            self._slots[name] = [f"%r{len(self._slots)}.{i}" for i in range(count)]
        return self._slots[name]

    def _slot_type(self, name: str) -> str:
        held = self.kernel.registers[name]
        if not self.shapes.shape(name).is_varying:
            return llvm_type(held)
        return f"i{self.lanes}" if held is PREDICATE else f"<{self.lanes} x {llvm_type(held)}>"

    def _value_of(self, register: Register) -> IrValue:
        name = register.name
        if self._one_lane is not None:
            if self.shapes.shape(name).is_uniform:
                return self._slot(name, 0)
            return self._element_at(self._vector_of(name), self._one_lane)
        if self._lane is None:
            if name not in self._vectors:
                self._vectors[name] = self._vector_of(name)
            return self._vectors[name]
        shape = self.shapes.shape(name)
        if shape.is_varying:
            return self.element(self._vector_of(name), self._lane)
        value = self._slot(name, self._lane * shape.groups // self.lanes)
        offset = shape.offsets[self._lane]
        return self.op("add", value, offset) if offset else value

    def _slot(self, name: str, group: int) -> IrValue:
        slot = self._slots_of(name)[group]
        if slot not in self._held:
            type_ = llvm_type(self.kernel.registers[name])
            self._held[slot] = self.load(type_, IrValue(slot, "ptr"))
        return self._held[slot]

    def _vector_of(self, name: str) -> LaneVector:
        shape, type_ = self.shapes.shape(name), llvm_type(self.kernel.registers[name])
        if shape.is_varying:
            (slot,) = self._slots_of(name)
            if type_ == "i1":
                return self.lanes_of_bits(self._bits(name))
            return self.lane_value(type_, f"load <{self.lanes} x {type_}>, ptr {slot}")
        return self._spread([self._slot(name, i) for i in range(shape.groups)], shape)

    def _bits(self, name: str) -> IrValue:
        """Return a varying predicate of all lanes as a mask."""
        (slot,) = self._slots_of(name)
        if slot not in self._held:
            self._held[slot] = self.load(f"i{self.lanes}", IrValue(slot, "ptr"))
        return self._held[slot]

    @property
    def _mask(self) -> LaneVector | None:
        return None if self.mask_bits is None else self.lanes_of_bits(self.mask_bits)

    def bits_of_guard(self, guard: Register | Not) -> IrValue:
        """Return the mask of the lanes whose guard is true."""
        register = guard.register if isinstance(guard, Not) else guard
        if self.shapes.shape(register.name).is_varying:
            bits = self._bits(register.name)
        else:
            self._lane = None
            bits = self.held_bits(self.vector(self.read(register, PREDICATE)))
        return self.invert(bits) if isinstance(guard, Not) else bits

    def _spread(self, leaders: Sequence[IrValue], shape: Shape) -> LaneVector:
        """Return all lanes of a value with these leaders."""
        type_ = leaders[0].type
        if len(leaders) == 1:
            vector = self.vector(leaders[0])
        elif type_ == "i1":
            vector = self._spread_predicate(leaders)
        else:
            size = self.lanes // len(leaders)
            groups = [lane // size for lane in range(self.lanes)]
            raw = self.shuffle(self._packed(leaders), None, groups)
            vector = LaneVector.of(raw.text, type_, self.lanes)
        if any(shape.offsets):
            sum_ = self.op("add", vector, self.constants(type_, shape.offsets))
            assert isinstance(sum_, LaneVector)
            return sum_
        return vector

    def _spread_predicate(self, leaders: Sequence[IrValue]) -> LaneVector:
        """Return the same for predicates, by arithmetic on a mask, which is faster than a
        permutation."""
        size = self.lanes // len(leaders)
        whole = f"i{self.lanes}"
        bits = constant(whole, 0)
        for group, leader in enumerate(leaders):
            mask = ((1 << size) - 1) << group * size
            bits = self.op("or", bits, self.select(leader, constant(whole, mask), 0))
        return self.lanes_of_bits(bits)

    def write(self, operand: Operand, value: IrValue, signed: bool = False) -> None:
        if self._delayed is not None:
            self._delayed.append((operand, value, signed, self._lane))
            return
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise CannotTranslate("a result that is not a register")
        name, held = operand.name, self.kernel.registers[operand.name]
        if (held is PREDICATE) != (value.type == "i1"):
            raise CannotTranslate("a predicate and a number are mixed")
        kept = self.reinterpret(value, llvm_type(held), signed)
        if self._one_lane is not None:
            self._write_one_lane(name, kept, self._one_lane)
            return
        shape = self.shapes.shape(name)
        mask = self._mask
        keeps = bool(self.loops_entered) or name not in self.shapes.defined_once
        if mask is not None and shape.is_varying and keeps:
            kept = self.select(mask, self.vector(kept), self._vector_of(name))
        slots = self._slots_of(name)
        self._vectors.pop(name, None)
        self._forget_addresses(name)
        if shape.is_varying:
            if self._lane is not None:
                raise InternalError(f"%{name} is varying, and one lane of it is written")
            whole = self.vector(kept)
            self._vectors[name] = whole
            if held is PREDICATE:
                self._held[slots[0]] = self.held_bits(whole)
                self.store(self._held[slots[0]], IrValue(slots[0], "ptr"))
            else:
                self.emit(f"store {whole}, ptr {slots[0]}")
            return
        lanes = range(0, self.lanes, self.lanes // shape.groups)
        for group, lane in enumerate(lanes):
            if self._lane not in (None, lane):
                continue
            one = self.element(kept, lane) if isinstance(kept, LaneVector) else kept
            self.store(one, IrValue(slots[group], "ptr"))
            self._held[slots[group]] = one

    def _element_at(self, vector: LaneVector, lane: IrValue) -> IrValue:
        return self.raw(vector.type, f"extractelement {vector}, {lane}")

    def _write_one_lane(self, name: str, value: IrValue, lane: IrValue) -> None:
        """Change one lane of a varying register."""
        (slot,) = self._slots_of(name)
        self._vectors.pop(name, None)
        self._forget_addresses(name)
        if value.type == "i1":
            bits, whole = self._bits(name), f"i{self.lanes}"
            place = self.op("shl", constant(whole, 1), self.resize(lane, whole))
            rest = self.op("and", bits, self.invert(place))
            self._held[slot] = self.op("or", rest, self.select(value, place, 0))
            self.store(self._held[slot], IrValue(slot, "ptr"))
        else:
            where = self.raw("ptr", f"getelementptr {value.type}, ptr {slot}, {lane}")
            self.store(value, where)

    def set_carry(self, value: IrValue) -> None:
        if is_vector(value) or self._lane:
            raise CannotTranslate("a carry in vector code")
        super().set_carry(value)

    def place(self, label: str) -> None:
        super().place(label)
        self._vectors = {}
        self._loaded_ahead = {}

    # -- special registers

    def special(self, name: str) -> IrValue:
        lanes = special_lanes(name, self.block, self.lanes)
        if self._one_lane is not None:
            return self._at_lane(name, self._one_lane)
        if self._lane is None:
            if lanes.shape.is_uniform:
                return self._at_lane(name, 0)
            if lanes.shape.is_varying:
                raise CannotTranslate(f"the special register %{name} in vector code")
            return self._spread([self._at_lane(name, 0)], lanes.shape)
        return self._at_lane(name, self._lane)

    def _at_lane(self, name: str, lane: int | IrValue) -> IrValue:
        """Return a special register of one lane."""
        base, _, axis = name.partition(".")
        thread = self.op("add", IrValue("%first32", "i32"), lane)
        if base == "tid":
            x, y, z = self.block
            before, size = {"x": (1, x), "y": (x, y), "z": (x * y, z)}[axis]
            return self.op("urem", self.op("udiv", thread, before), size)
        if name == "laneid":
            return self.op("and", thread, 31)
        if name == "warpid":
            return self.op("lshr", thread, 5)
        if name.startswith("lanemask_"):
            raise CannotTranslate(f"the special register %{name} in vector code")
        return super().special(name)

    # -- control

    def statement(self, index: int, item: Instruction) -> None:
        root = item.opcode.split(".")[0]
        if root == "bra":
            self._bra(index, item)
            return
        if item.guard is not None:
            do, skip = self.new_label(), self.new_label()

            def run_apart(guard: Register | Not = item.guard) -> None:
                self.run_masked(index, replace(item, guard=None), self.bits_of_guard(guard))
                self.jump(skip)

            may_part = root in COMPUTED or root in ("cp", "ld", "st") or root in ONE_BY_ONE
            self._part(item.guard, do, skip, run_apart if may_part else None)
            self.continue_at(do)
            self._instruction(index, item, root)
            self.jump(skip)
            self.place(skip)
        else:
            self._instruction(index, item, root)

    def run_masked(self, index: int, item: Instruction, lanes: IrValue) -> None:
        """Run an instruction for these lanes only."""
        self.mask_bits = lanes
        if item.guard is not None:
            self.mask_bits = self.op("and", lanes, self.bits_of_guard(item.guard))
        self._instruction(index, item, item.opcode.split(".")[0])
        self.mask_bits = None

    def _instruction(self, index: int, item: Instruction, root: str) -> None:
        if root in ("ret", "exit"):
            self.leave()
        elif root in ("bar", "barrier"):
            self._barrier(index, item)
        elif index in self._accesses:
            self._access(self._accesses[index])
        elif root in ("trap", "brkpt"):
            self.leave_unless(FALSE)
        elif root == "cp":
            self._copy_async(index, item)
        elif root == "nanosleep":
            self.suspend(index, State.YIELD)
        elif root in ONE_BY_ONE or (root in ("ld", "st") and ".param" not in item.opcode):
            self._one_by_one(index, item)
        elif root in COMPUTED or item.opcode.startswith("ld.param"):
            self._compute(index, item)
        else:
            raise CannotTranslate(f"the instruction {item.opcode!r} in vector code")

    def _bra(self, index: int, item: Instruction) -> None:
        (target,) = item.operands
        if self.is_backward(index, target):
            self.poll(index)
        label = self.branch_label(target)
        if item.guard is None:
            self.jump(label)
            self.place(self.new_label())
        else:
            after, guard = self.new_label(), item.guard
            region = self.shapes.regions.get(index)

            def run_apart() -> None:
                assert region is not None
                MaskedRegion(self, self.shapes.graph, region).run(index, guard)
                join = self.kernel.body[self.shapes.graph.blocks[region.join].first]
                assert isinstance(join, Label)
                self.jump(self._labels[join.name])

            self._part(guard, label, after, run_apart if region else None)
            self.continue_at(after)

    def _part(
        self,
        guard: Register | Not,
        then: str,
        other: str,
        run_apart: Callable[[], None] | None,
    ) -> None:
        """Branch by a guard on which all lanes agree. If they do not, call `run_apart`, or leave
        the vector path."""
        register = guard.register if isinstance(guard, Not) else guard
        if isinstance(guard, Not):
            then, other = other, then
        shape = self.shapes.shape(register.name)
        if shape.groups == 1:
            self._lane = 0
            self.branch(self.read(register, PREDICATE), then, other)
            return
        if shape.is_varying:
            lanes = self._bits(register.name)
            every, some = self.compare("eq", lanes, -1), self.compare("ne", lanes, 0)
        else:
            leaders = [self._slot(register.name, i) for i in range(shape.groups)]
            every = some = leaders[0]
            for leader in leaders[1:]:
                every, some = self.op("and", every, leader), self.op("or", some, leader)
        if run_apart is None:
            self.leave_unless(self.op("or", every, self.invert(some)))
            self.branch(every, then, other)
            return
        mixed, apart = self.new_label(), self.new_label()
        self.branch(every, then, mixed)
        self.continue_at(mixed)
        self.branch(some, apart, other)
        self.continue_at(apart)
        kept = dict(self._held), dict(self._vectors)
        run_apart()
        self._held, self._vectors = kept

    def _barrier(self, index: int, item: Instruction) -> None:
        words = item.opcode.split(".")
        whole = len(item.operands) == 1 and item.operands[0] == Integer(0)
        if not whole or set(words) - {"bar", "barrier", "cta", "sync", "aligned"}:
            raise CannotTranslate("a barrier of a part of the block in vector code")
        self.before_meeting()
        self.suspend(index, State.BARRIER)

    def before_meeting(self) -> None:
        """Called before a barrier, and at the end of a unit."""

    # -- one lane after the other

    def _one_by_one(self, index: int, item: Instruction) -> None:
        """Run an instruction for each lane of the mask, in ascending order; only once if all lanes
        of a group get the same result."""
        names = written_by(item)
        if names and not any(self.shapes.shape(name).is_varying for name in names):
            self._compute(index, item)
            return
        type_ = f"i{self.lanes}"
        rest = self.variable(type_)
        mask = self.mask_bits
        self.store(constant(type_, -1) if mask is None else mask, rest)
        again, one, done = self.new_label(), self.new_label(), self.new_label()
        self.jump(again)
        self.place(again)
        lanes = self.load(type_, rest)
        self.branch(self.compare("eq", lanes, 0), done, one)
        self.continue_at(one)
        self.store(self.op("and", lanes, self.op("sub", lanes, 1)), rest)
        self._one_lane = self.resize(self.intrinsic("cttz", lanes, FALSE), "i32")
        self.mask_bits = None
        self._lowerings.lower(self, item, index)
        self._one_lane, self.mask_bits = None, mask
        self.jump(again)
        self.place(done)

    def thread_index(self) -> IrValue:
        lane = self._one_lane
        if lane is None:
            lane = constant("i32", self._lane or 0)
        return self.op("add", IrValue("%first", "i64"), self.resize(lane, "i64"))

    def pointer(self, space: str, address: Address, access: MemoryAccess) -> IrValue:
        """Return the host address of one lane's bytes, which the runtime looks up."""
        if space == "shared":
            access = replace(access, kind=access.kind | layout.Access.OWN)
        pointer = self._told("rt_checked_access", space, self.address_value(address), access)
        self.leave_unless(self.compare("ne", pointer, IrValue("null", "ptr")))
        return pointer

    def stop_unless(self, ok: IrValue, fault: Cause, index: int) -> None:
        self.leave_unless(ok)

    # -- computing

    def _compute(self, index: int, item: Instruction) -> None:
        names = written_by(item)
        shapes = [self.shapes.shape(name) for name in names]
        groups = max((shape.groups for shape in shapes), default=1)
        delayed: list[tuple[Operand, IrValue, bool, int | None]] = []
        self._delayed = delayed
        if any(shape.is_varying for shape in shapes):
            self._lane = None
            self._lowerings.lower(self, item, index)
        else:
            self._check_widening(item, groups)
            for lane in range(0, self.lanes, self.lanes // groups):
                self._lane = lane
                self._lowerings.lower(self, item, index)
        self._delayed = None
        for operand, value, signed, self._lane in delayed:
            self.write(operand, value, signed)

    def _check_widening(self, item: Instruction, groups: int) -> None:
        """Leave the vector path if a sum of leader and offset overflows. The analysis assumes that
        extending a leader and then adding the offset gives the same as the opposite order."""
        for operand, lanes, signed in self.shapes.widened(item):
            shape = lanes.shape.split(groups)
            size = self.lanes // groups
            for first in range(0, self.lanes, size):
                offsets = shape.offsets[first : first + size]
                if not any(offsets):
                    continue
                self._lane = first
                leader = self.resize(self.read(operand, B64), "i32")
                low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
                kind = "s" if signed else "u"
                self.leave_unless(self.compare(f"{kind}le", leader, high - max(offsets)))
                if min(offsets) < 0:
                    self.leave_unless(self.compare(f"{kind}ge", leader, low - min(offsets)))

    # -- memory

    def _access(self, access: Access) -> None:
        shape = self._shape_of(access)
        is_masked = self.mask_bits is not None and (access.is_store or not shape.is_uniform)
        if shape.is_varying or is_masked:
            self._access_anywhere(access)
            return
        if any(offset % access.bytes for offset in shape.offsets):
            self.leave_unless(FALSE)
            return
        if not access.has_data:
            self._leaders_on_host(access, shape)
            return
        hosts = [
            self.offset(host, access.address.offset)
            for host in self._leaders_on_host(access, shape)
        ]
        size = self.lanes // shape.groups
        parts = [shape.offsets[first : first + size] for first in range(0, self.lanes, size)]
        if access.is_store:
            self._store(access, hosts, parts)
        elif shape.is_constant_in_groups:
            loaded = [self.load_elements(x, 0, access.type, len(access.items)) for x in hosts]
            for item, leaders in zip(access.items, zip(*loaded, strict=True), strict=True):
                self._write_leaders(item, leaders, access.type.is_signed)
        else:
            loaded_lanes = self._loaded_lanes(access, hosts, parts)
            for item, raw in zip(access.items, loaded_lanes, strict=True):
                self._write_vector(access, item, raw)

    def _shape_of(self, access: Access) -> Shape:
        lanes = self.shapes.of(access.address.base)
        return lanes.shape if lanes else uniform(self.lanes)

    def _loaded_lanes(
        self, access: Access, hosts: Sequence[IrValue], parts: Sequence[tuple[int, ...]]
    ) -> list[IrValue]:
        """Return a raw vector for each register that a load writes.

        If lanes read rows that are not contiguous, one element after the other, four of these loads
        become one, which permutes four elements of each row.
        """
        place = str(access.address.base), access.address.offset
        if place in self._loaded_ahead:
            return [self._loaded_ahead.pop(place)]
        row = self._row(access) if parts[0][1] - parts[0][0] >= _ROW * ELEMENT else ()
        first = min(row, default=access.address.offset)
        vectors = [
            self.load_lanes(
                self.offset(host, first - access.address.offset),
                part,
                access.type,
                len(row) or len(access.items),
            )
            for host, part in zip(hosts, parts, strict=True)
        ]
        loaded = [self.joined(pieces) for pieces in zip(*vectors, strict=True)]
        if not row:
            return loaded
        base = place[0]
        self._loaded_ahead |= {(base, at): raw for at, raw in zip(row, loaded, strict=True)}
        return [self._loaded_ahead.pop(place)]

    def _row(self, access: Access) -> tuple[int, ...]:
        """Return the offsets of four contiguous loads with the same base register, from this one
        on, without a store between them; none if there are no such loads."""
        if len(access.items) != 1 or access.type.bytes != ELEMENT:
            return ()
        offsets = set()
        base = access.address.base
        for index in range(access.index, len(self.kernel.body)):
            item = self.kernel.body[index]
            if isinstance(item, Label) or item.guard is not None:
                break
            other = self._accesses.get(index)
            if other.is_store if other else item.opcode.split(".")[0] not in COMPUTED:
                break
            kind = other and (other.address.base, other.space, other.type, len(other.items))
            if other and kind == (base, access.space, access.type, 1):
                offsets.add(other.address.offset)
            if isinstance(base, Register) and base.name in written_by(item):
                break
        step = range(0, _ROW * ELEMENT, ELEMENT)
        rows = (tuple(access.address.offset - back + at for at in step) for back in step)
        return next((row for row in rows if offsets.issuperset(row)), ())

    def _of_one_lane(self, value: LaneVector) -> IrValue:
        """Return the value of the first lane that executes the current instruction."""
        if self.mask_bits is None:
            return self.element(value, 0)
        first = self.op("and", self.intrinsic("cttz", self.mask_bits, FALSE), self.lanes - 1)
        return self.raw(value.type, f"extractelement {value}, {first}")

    def _write_vector(self, access: Access, item: Operand, raw: IrValue) -> None:
        self._lane = None
        vector = LaneVector.of(raw.text, llvm_type(access.type), self.lanes)
        self.write(item, vector, access.type.is_signed)

    def _write_leaders(self, item: Operand, leaders: Sequence[IrValue], signed: bool) -> None:
        """Write a value that is the same in all lanes of each group."""
        groups = len(leaders)
        if isinstance(item, Register) and self.shapes.shape(item.name).is_varying:
            self._lane = None
            self.write(item, self._spread(leaders, uniform(self.lanes).split(groups)), signed)
            return
        for lane in range(self.lanes):
            self._lane = lane
            if isinstance(item, Register) and self.shapes.shape(item.name).leader(lane) == lane:
                self.write(item, leaders[lane * groups // self.lanes], signed)

    def _store(
        self, access: Access, hosts: Sequence[IrValue], parts: Sequence[tuple[int, ...]]
    ) -> None:
        size = self.lanes // len(hosts)
        for group, (host, offsets) in enumerate(zip(hosts, parts, strict=True)):
            last = (group + 1) * size - 1
            if not any(offsets):  # all lanes of the group store to one place: the last one wins
                for i, item in enumerate(access.items):
                    one = self._read_at(item, access, last)
                    at = self.offset(host, i * access.type.bytes)
                    self.store(one, at, f", align {access.type.bytes}")
                continue
            values = []
            for item in access.items:
                raw = self._raw(item, access)
                if len(hosts) > 1:
                    raw = self.shuffle(raw, raw, range(last - size + 1, last + 1))
                values.append(raw)
            self.store_lanes(host, offsets, access.type, values)

    def _raw(self, item: Operand, access: Access) -> IrValue:
        """Return all lanes of an operand as a raw vector."""
        self._lane = None
        value = self.vector(self.read(item, access.type))
        return IrValue(value.text, f"<{self.lanes} x {value.type}>")

    def _read_at(self, item: Operand, access: Access, lane: int) -> IrValue:
        if isinstance(item, Register) and self.shapes.shape(item.name).is_varying:
            self._lane = None
            value = self.read(item, access.type)
            assert isinstance(value, LaneVector)
            return self.element(value, lane)
        self._lane = lane
        return self.read(item, access.type)

    def _leaders_on_host(self, access: Access, shape: Shape) -> list[IrValue]:
        """Return the host address of each group's leader, after a check of the access."""
        return [
            self._checked(leader, part, access)
            for leader, part in self._leaders(access.address, shape)
        ]

    def _leaders(self, address: Address, shape: Shape) -> Iterator[tuple[IrValue, tuple[int, ...]]]:
        """Yield the base address of each group's leader, and the distances of its lanes."""
        size = self.lanes // shape.groups
        for first in range(0, self.lanes, size):
            self._lane = first
            yield self.read(address.base, B64), shape.offsets[first : first + size]

    def _forget_addresses(self, name: str) -> None:
        base = str(Register(name))
        self._loaded_ahead = {at: raw for at, raw in self._loaded_ahead.items() if at[0] != base}

    def _with_same_base(self, access: Access) -> list[Access]:
        """Return the accesses from this one to the next label or branch with the same base
        address."""
        found = []
        base = access.address.base
        for index in range(access.index, len(self.kernel.body)):
            item = self.kernel.body[index]
            if isinstance(item, Label) or item.opcode.startswith(("bra", "brx", "ret", "exit")):
                break
            other = self._accesses.get(index)
            same = other and other.address.base == base and other.space == access.space
            if other and same and (item.guard is None or other is access):
                found.append(other)
            if isinstance(base, Register) and base.name in self._written[index]:
                break
        return found

    def _checked(self, leader: IrValue, offsets: Sequence[int], access: Access) -> IrValue:
        """Return the host address of `leader`. Leaves the vector path unless the accesses of all
        lanes are aligned and inside one array that they may access."""
        low, high = min(offsets), max(offsets) + access.bytes
        first = self.op("add", leader, access.address.offset)
        if access.bytes > 1:
            self.leave_unless(self.compare("eq", self.op("and", first, access.bytes - 1), 0))
        start = self.op("add", first, low)
        if access.space == "shared":
            size = self.kernel.shared.size
            if size < high - low:
                self.leave_unless(constant("i1", 0))
            self.leave_unless(self.compare("ule", start, max(0, size - (high - low))))
            return self.offset(self.field("shared", "ptr"), leader)
        host, bytes_, base = self._span(leader, access)
        room = self._once(f"{bytes_} beyond {high - low}", lambda: self._room(bytes_, high - low))
        self.leave_unless(self.compare("ule", self.op("sub", start, base), room))
        return self.offset(host, self.op("sub", leader, base))

    def _once(self, name: str, made: Callable[[], IrValue]) -> IrValue:
        """Return a value that is computed once for a basic block and those entered only from its
        end."""
        if name not in self._held:
            self._held[name] = made()
        return self._held[name]

    def field(self, name: str, type_: str) -> IrValue:
        return self._once(f"field {name}", lambda: super(VectorTranslator, self).field(name, type_))

    def _room(self, bytes_: IrValue, size: int) -> IrValue:
        """Return the last offset in an array at which an access of this many bytes may begin."""
        room = self.op("sub", bytes_, size)
        self.leave_unless(self.compare("sge", room, 0))
        return room

    def _span(self, address: IrValue, access: Access) -> tuple[IrValue, IrValue, IrValue]:
        """Return the host address, the size and the device address of the array to which `address`
        points. Leaves the vector path if there is no array that this access may use."""
        known = self._window_of(access.space, access.address)
        if known is not None:  # an address elsewhere is too far from the base to be inside
            window = constant("i64", known)
            page = constant("i64", layout.FIRST_WINDOW + known)
        else:
            page = self.op("lshr", address, layout.WINDOW_BITS)
            window = self.op("sub", page, layout.FIRST_WINDOW)
            self.leave_unless(self.compare("ult", window, layout.WINDOWS))
            self.leave_unless(self.compare("ne", window, int(Window.LOCAL)))
        spans = self.field("windows", "ptr")
        span = self._once(
            f"span {window}",
            lambda: self.offset(spans, self.op("mul", window, layout.SPAN_BYTES)),
        )
        if (access.is_store or known is None) and f"store {window}" not in self._held:
            writable = self.load("i64", self.offset(span, 16), ", !invariant.load !0")
            ok = self.compare("ne", writable, 0)
            if (
                not access.is_store
            ):  # what blocks write must not be read, unless all may be run again
                ok = self.invert(ok)
                for readable in (int(Window.SHARED), *sorted(self._exchanged)):
                    ok = self.op("or", ok, self.compare("eq", window, readable))
            self.leave_unless(ok)
            if access.is_store:
                self._held[f"store {window}"] = ok
        host = self._once(f"host {span}", lambda: self.load("ptr", span, ", !invariant.load !0"))
        bytes_ = self._once(
            f"bytes {span}",
            lambda: self.load("i64", self.offset(span, 8), ", !invariant.load !0"),
        )
        base = self.op("or", self.op("shl", page, layout.WINDOW_BITS), layout.MIDDLE)
        return host, bytes_, base

    def _access_anywhere(self, access: Access) -> None:
        """Emit an access whose lanes have unrelated addresses."""
        if not access.has_data:
            self._pointers(access)
        elif access.is_store:
            pointers = self._pointers(access)
            self.scatter(pointers, access.type, [self._raw(x, access) for x in access.items])
        else:
            loaded = self.gather(self._pointers(access), access.type, len(access.items))
            for item, raw in zip(access.items, loaded, strict=True):
                self._write_vector(access, item, raw)

    def _all_addresses(self, address: Address) -> LaneVector:
        """Return the device address that each lane accesses."""
        self._lane = None
        value = self.vector(self.read(address.base, B64))
        if address.offset:
            value = self.vector(self.op("add", value, address.offset))
        return value

    def _pointers(self, access: Access) -> IrValue:
        """Return the host address of each lane's bytes, after checking all of them."""
        value = self._all_addresses(access.address)
        if access.space == "shared":
            host, offset = self.field("shared", "ptr"), value
            units = constant("i64", self.kernel.shared.size // access.bytes)
        else:
            host, bytes_, base = self._span(self._of_one_lane(value), access)
            offset = self.vector(self.op("sub", value, base))
            units = self.op("udiv", bytes_, access.bytes)
        turned: IrValue = offset
        if access.bytes > 1:
            shift = constant("i64", access.bytes.bit_length() - 1)
            turned = self.intrinsic("fshr", offset, offset, shift)
        inside = self.bits_of_lanes(self.vector(self.compare("ult", turned, units)))
        if self.mask_bits is not None:
            inside = self.op("or", inside, self.invert(self.mask_bits))
        self.leave_unless(self.compare("eq", inside, -1))
        pointers = self.raw(f"<{self.lanes} x ptr>", f"getelementptr i8, {host}, {offset}")
        mask = self._mask
        if mask is not None:  # the other lanes access scratch memory
            whole = f"<{self.lanes} x ptr>"
            aside = self._splat(self.field("scratch", "ptr"), self.lanes)
            pointers = self.raw(whole, f"select {mask}, {pointers}, {aside}")
        return pointers

    # -- asynchronous copies

    def _copy_async(self, index: int, item: Instruction) -> None:
        """Emit `cp.async`, whose bytes arrive when the unit waits for them, as on the thread
        path."""
        words = item.opcode.split(".")
        match words[1:3]:
            case ["async", "bulk"]:
                self._one_by_one(index, item)
            case ["async", "mbarrier"]:
                self._need_all_lanes()
                self._one_by_one(index, item)
            case ["async", "commit_group"]:
                self._need_all_lanes()
                self.tell("rt_unit_commit", self.lanes)
            case ["async", "wait_group"]:
                (pending,) = item.operands
                if not isinstance(pending, Integer):
                    raise CannotTranslate("a number of groups that is not known")
                self._await_copies(pending.value)
            case ["async", "wait_all"]:
                self._await_copies(-1)
            case ["async", "ca" | "cg"]:
                self._begin_copies(index, item)
            case _:
                raise CannotTranslate(f"the instruction {item.opcode!r} in vector code")

    def _need_all_lanes(self) -> None:
        """Leave the vector path if some lanes do not execute this: they share groups of copies."""
        if self.mask_bits is not None:
            self.leave_unless(FALSE)
        self._lane = None

    def _await_copies(self, pending: int) -> None:
        self._need_all_lanes()
        self.tell("rt_unit_wait", self.lanes, pending)

    def _begin_copies(self, index: int, item: Instruction) -> None:
        to, from_, size, *rest = item.operands
        if "L2::cache_hint" in item.opcode:
            rest = rest[:-1]
        if not (
            isinstance(to, Address)
            and isinstance(from_, Address)
            and isinstance(size, Integer)
            and size.value in (4, 8, 16)
        ):
            raise CannotTranslate("a copy of 4, 8 or 16 bytes is needed")
        items = (Sink(),) * (size.value // 4)
        mask, full = self.mask_bits, constant(f"i{self.lanes}", -1)
        if rest:
            self._lane = None
            filled = self._filled(rest[0], size.value)
            full, none = (self.held_bits(self.vector(x)) for x in filled)
            self.leave_unless(self.compare("eq", self.op("or", full, none), -1))
            self.mask_bits = full if mask is None else self.op("and", mask, full)
        source = Access(index, "global", from_, items, B32, is_store=False)
        sources = self._pointers(source)
        self.mask_bits = mask
        target = Access(index, "shared", to, items, B32, is_store=True)
        targets = self._pointers(target)
        if index in self._unread_copies:
            return
        every = constant(full.type, -1) if mask is None else mask
        lanes, filled_lanes = self.resize(every, "i64"), self.resize(full, "i64")
        self._lane = None
        together = min(self._neighbours(source), self._neighbours(target))
        counts = lanes, filled_lanes, size.value, together
        place = self.ask("ptr", "rt_unit_copy", self.lanes, *counts)
        self.store(targets, place, ", align 8")
        self.store(sources, self.offset(place, 8 * self.lanes), ", align 8")

    def _neighbours(self, access: Access) -> int:
        """Return the size of the groups of lanes that access neighbouring bytes."""
        shape = self._shape_of(access)
        size = self.lanes // shape.groups
        contiguous = tuple(range(0, size * access.bytes, access.bytes))
        return size if shape.offsets == contiguous * shape.groups else 1

    def _filled(self, rest: Operand, size: int) -> tuple[IrValue, IrValue]:
        """Return the masks of the lanes that copy all bytes, and of those that copy none."""
        if isinstance(rest, Register) and self.kernel.registers[rest.name] is PREDICATE:
            none = self.read(rest, PREDICATE)
            return self.invert(none), none
        count = self.read(rest, B32)
        return self.compare("eq", count, size), self.compare("eq", count, 0)
