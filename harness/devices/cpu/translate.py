"""Turns a flat kernel into LLVM IR: registers, operands, branches and memory accesses.

`Translator` is what the meanings of instructions speak to. It has two forms: `ThreadTranslator`
makes one coroutine per GPU thread, suspended only where threads meet, with every access checked;
`HostTranslator` (host.py) makes plain functions of the runtime, which is CUDA C++ too.
"""

from __future__ import annotations

from enum import Enum

from harness.devices.cpu import layout
from harness.devices.cpu.errors import CannotTranslate
from harness.devices.cpu.forms import match
from harness.devices.cpu.ir import FALSE, Builder, Value, bits, constant
from harness.devices.cpu.layout import Access, Collective, Fault, State, Window
from harness.devices.cpu.pointers import pointer_windows
from harness.devices.cpu.program import FlatKernel
from harness.devices.cpu.ptx import (
    Address,
    Float,
    Instruction,
    Integer,
    Label,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from harness.devices.cpu.types import TYPES, Type

PREDICATE, B32, B64 = TYPES["pred"], TYPES["b32"], TYPES["b64"]


class Mode(Enum):
    RUN = "run"
    """Every access is checked; the first fault ends the launch."""
    SANITIZE = "sanitize"
    """Every access is reported to the checks of the runtime, which go on after a fault."""
    COUNT = "count"
    """As RUN, and every access and basic block is counted by warps."""


class Translator(Builder):
    """Registers and operands of one function, and the meanings of its instructions."""

    def __init__(self, kernel: FlatKernel) -> None:
        super().__init__()
        self.kernel = kernel
        self._registers = {name: f"%r{i}" for i, name in enumerate(kernel.registers)}
        self._temporaries = {name: f"%p{i}" for i, name in enumerate(kernel.temporaries)}
        labels = [item.name for item in kernel.body if isinstance(item, Label)]
        self._labels = {name: f"L{i}" for i, name in enumerate(labels)}
        if len(self._labels) != len(labels):
            raise CannotTranslate("a label stands twice")
        self._index_of = {x.name: i for i, x in enumerate(kernel.body) if isinstance(x, Label)}

    # -- what the two kinds of function do in their own way

    def special(self, name: str) -> Value:
        raise CannotTranslate(f"the special register %{name}")

    def symbol(self, symbol: Symbol) -> Value:
        """The address of a variable."""
        raise CannotTranslate(f"the symbol {symbol.name}")

    def pointer(self, f_index: int, space: str, address: Address, n: int, access: Access) -> Value:
        """A host pointer to the `n` bytes at a device address, which is checked."""
        raise NotImplementedError

    def parameter(self, address: Address, n: int) -> Value:
        """A host pointer into the kernel's parameters or a call's temporaries."""
        raise NotImplementedError

    def window_base(self, space: str) -> int:
        """What `cvta` adds to an address of a state space."""
        raise NotImplementedError

    def collective(
        self,
        index: int,
        which: Collective,
        words: list[Value],
        results: int = 0,
        mask: Value | int = -1,
        argument: Value | int = 0,
        phase: int = 0,
    ) -> list[Value]:
        raise CannotTranslate("what threads do together, outside a kernel")

    def suspend(self, index: int, state: State, phase: int = 0, **cells: Value | int) -> None:
        raise CannotTranslate("a wait outside a kernel")

    def stop_unless(self, ok: Value, fault: Fault, index: int) -> None:
        raise CannotTranslate("a fault outside a kernel")

    def runtime(self, type_: str, name: str, *arguments: Value | int) -> Value | None:
        """A call of a runtime function for this thread; integers are passed as i64."""
        raise CannotTranslate("a call of the runtime from the runtime")

    def call_function(self, index: int, item: Instruction) -> None:
        raise NotImplementedError

    def cell(self, name: str) -> Value:
        """The address of a field of this thread's record."""
        raise CannotTranslate("a wait outside a kernel")

    def poll(self, index: int) -> None:
        """Before a jump backward: stop if the time is over."""

    def count_branch(self, index: int, taken: Value) -> None:
        """Before a conditional jump: whether the lanes of the warp part here."""

    def count_block(self, index: int) -> None:
        """At the beginning of a basic block: which lanes run it."""

    # -- operands

    def read(self, operand: Operand, type_: Type) -> Value:
        """The value of an operand as `type_`: the low bits, or extended by the type's sign."""
        if isinstance(operand, Register):
            held = self.kernel.registers[operand.name]
            loaded = self.load(held.llvm, Value(self._registers[operand.name], "ptr"))
            if type_ is PREDICATE and held is not PREDICATE:
                raise CannotTranslate(f"{operand.name} is not a predicate")
            return self.reinterpret(loaded, type_.llvm, type_.is_signed)
        if isinstance(operand, Not):
            return self.invert(self.read(operand.register, PREDICATE))
        if isinstance(operand, Special):
            return self.reinterpret(self.special(operand.name), type_.llvm)
        if isinstance(operand, Integer):
            return self._integer(operand, type_)
        if isinstance(operand, Float):
            return self._float(operand, type_)
        if isinstance(operand, Symbol):
            return self.reinterpret(self.symbol(operand), type_.llvm)
        if isinstance(operand, Vector):
            return self.pack(operand, type_)
        raise CannotTranslate("an operand of another kind is needed")

    def _integer(self, operand: Integer, type_: Type) -> Value:
        if type_.is_float:
            if operand.value:
                raise CannotTranslate("an integer where a floating-point number is needed")
            return constant(type_.llvm, 0.0)
        return constant(type_.llvm, operand.value)

    def _float(self, operand: Float, type_: Type) -> Value:
        if type_.is_float:
            if type_.bits == operand.width:
                whole = constant(f"i{operand.width}", operand.bits)
                return self.bitcast(whole, type_.llvm)
            if type_.name == "f32":
                return self.convert("fptrunc", constant("double", operand.value), "float")
            raise CannotTranslate("a floating-point constant of another width")
        return constant(type_.llvm, operand.bits)

    def pack(self, vector: Vector, type_: Type) -> Value:
        """`{lo, hi}` as one integer."""
        whole = f"i{type_.bits}"
        part = type_.bits // max(1, len(vector.items))
        if f"b{part}" not in TYPES or not vector.items:
            raise CannotTranslate("a vector of another length is needed")
        result = constant(whole, 0)
        for i, item in enumerate(vector.items):
            piece = self.resize(self.read(item, TYPES[f"b{part}"]), whole)
            result = self.op("or", result, self.op("shl", piece, i * part))
        return self.bitcast(result, type_.llvm)

    def unpack(self, vector: Vector, value: Value) -> None:
        """One integer into `{lo, hi}`."""
        whole = self.as_integer(value)
        part = bits(whole.type) // max(1, len(vector.items))
        if f"b{part}" not in TYPES or not vector.items:
            raise CannotTranslate("a vector of another length is needed")
        for i, item in enumerate(vector.items):
            self.write(item, self.resize(self.op("lshr", whole, i * part), f"i{part}"))

    def write(self, operand: Operand, value: Value, signed: bool = False) -> None:
        """Store a result; a wider register is filled by the sign or with zeros."""
        if isinstance(operand, Sink):
            return
        if isinstance(operand, Vector):
            self.unpack(operand, value)
            return
        if not isinstance(operand, Register):
            raise CannotTranslate("a result that is not a register")
        held = self.kernel.registers[operand.name]
        if (held is PREDICATE) != (value.type == "i1"):
            raise CannotTranslate("a predicate and a number are mixed")
        kept = self.reinterpret(value, held.llvm, signed)
        self.store(kept, Value(self._registers[operand.name], "ptr"))

    def write_pair(self, operand: Operand, first: Value, second: Value) -> None:
        """`d|p`, of which the second is optional."""
        if isinstance(operand, Pair):
            self.write(operand.first, first)
            self.write(operand.second, second)
        else:
            self.write(operand, first)

    def items(self, operand: Operand) -> tuple[Operand, ...]:
        """The elements of a vector, or one scalar."""
        return operand.items if isinstance(operand, Vector) else (operand,)

    def address(self, operand: Operand) -> Address:
        if not isinstance(operand, Address):
            raise CannotTranslate("an address in brackets is needed")
        return operand

    def address_value(self, address: Address) -> Value:
        """The 64-bit device address."""
        base = self.read(address.base, B64)
        return self.op("add", base, address.offset) if address.offset else base

    def carry(self) -> Value:
        """The carry flag of extended-precision arithmetic."""
        return self.load("i1", Value("%carry", "ptr"))

    def set_carry(self, value: Value) -> None:
        self.store(value, Value("%carry", "ptr"))

    # -- control

    def branch_label(self, operand: Operand) -> str:
        if not isinstance(operand, Symbol) or operand.name not in self._labels:
            raise CannotTranslate("a branch to something that is not a label")
        return self._labels[operand.name]

    def is_backward(self, index: int, operand: Operand) -> bool:
        return isinstance(operand, Symbol) and self._index_of.get(operand.name, index) < index

    def is_in_loop(self, index: int) -> bool:
        """Whether some branch behind `index` leads back before it."""
        return any(start <= index <= end for start, end in self._loops)

    @property
    def _loops(self) -> list[tuple[int, int]]:
        if not hasattr(self, "_found_loops"):
            self._found_loops = [
                (self._index_of[x.name], i)
                for i, item in enumerate(self.kernel.body)
                if isinstance(item, Instruction) and item.opcode.startswith("bra")
                for x in item.operands
                if isinstance(x, Symbol) and self._index_of.get(x.name, i) < i
            ]
        return self._found_loops

    def leave(self) -> None:
        """Jump out of the function; what follows is reached by other ways only."""
        self.jump("exit")
        self.place(self.new_label())

    def declare_registers(self) -> None:
        """Registers start as zero: PTX leaves them undefined, LLVM must not see that."""
        for name, type_ in self.kernel.registers.items():
            self.emit(f"{self._registers[name]} = alloca {type_.llvm}")
        for name, size in self.kernel.temporaries.items():
            self.emit(f"{self._temporaries[name]} = alloca [{max(8, size)} x i8], align 16")
        self.emit("%carry = alloca i1")

    def clear_registers(self) -> None:
        self.set_carry(FALSE)
        for name, type_ in self.kernel.registers.items():
            zero = Value("zeroinitializer", type_.llvm)
            self.store(zero, Value(self._registers[name], "ptr"))

    def body(self) -> None:
        for index, item in enumerate(self.kernel.body):
            if isinstance(item, Label):
                self.label(index, item)
                continue
            try:
                self.statement(index, item)
            except CannotTranslate as refusal:
                raise refusal.at(item.text, item.line) from None

    def label(self, index: int, item: Label) -> None:
        self.jump(self._labels[item.name])
        self.place(self._labels[item.name])

    def statement(self, index: int, item: Instruction) -> None:
        guarded = item.guard is not None and not item.opcode.startswith("bra")
        after = self.new_label()
        if guarded:
            assert item.guard is not None
            do = self.new_label()
            self.branch(self.read(item.guard, PREDICATE), do, after)
            self.place(do)
        if item.opcode.split(".")[0] == "call":
            self.call_function(index, item)
        else:
            form, meaning = match(item, index)
            meaning(self, form)
        if guarded:
            self.jump(after)
            self.place(after)


class ThreadTranslator(Translator):
    """One GPU thread as a coroutine `ptr @thread(context, thread index)`.

    Called with a negative index it returns the bytes of its frame.
    """

    def __init__(self, kernel: FlatKernel, block: tuple[int, int, int], mode: Mode) -> None:
        super().__init__(kernel)
        self.block = block
        self.mode = mode
        self._windows = pointer_windows(kernel)

    # -- the function around the body

    def module(self) -> str:
        """The whole IR module."""
        x, y, _ = self.block
        self.declare_registers()
        for line in f"""%id = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)
            %size.exact = call i64 @llvm.coro.size.i64()
            %size.more = add i64 %size.exact, 63
            %size = and i64 %size.more, -64
            %query = icmp slt i32 %t, 0
            br i1 %query, label %tell, label %begin""".splitlines():
            self.emit(line.strip())
        self.place("tell")
        self.emit("%told = inttoptr i64 %size to ptr")
        self.emit("ret ptr %told")
        self.place("begin")
        frame = self.op(
            "mul", self.convert("zext", Value("%t", "i32"), "i64"), Value("%size", "i64")
        )
        memory = self.offset(self.field("frames", "ptr"), frame)
        self.emit(f"%handle = call ptr @llvm.coro.begin(token %id, {memory})")
        for line in f"""%lane = and i32 %t, 31
            %warp = lshr i32 %t, 5
            %tid.x = urem i32 %t, {x}
            %tid.yz = udiv i32 %t, {x}
            %tid.y = urem i32 %tid.yz, {y}
            %tid.z = udiv i32 %tid.yz, {y}""".splitlines():
            self.emit(line.strip())
        self.clear_registers()
        if self.kernel.body and not isinstance(self.kernel.body[0], Label):
            self.count_block(0)
        self.body()
        self.jump("exit")
        self.place("exit")
        self.store(constant("i32", State.EXITED), self.cell("state"))
        self.jump("end")
        self.place("end")
        self.emit("call void @llvm.coro.end(ptr null, i1 false, token none)")
        self.emit("ret ptr %handle")
        head = "define ptr @thread(ptr noalias %c, i32 %t) presplitcoroutine {"
        return "\n".join([head, *self.lines, "}", *sorted(self.declarations), _CORO])

    def field(self, name: str, type_: str) -> Value:
        """A field of the Context that does not change while a block runs."""
        where = self.offset(Value("%c", "ptr"), layout.CONTEXT_OFFSET[name])
        return self.load(type_, where, ", !invariant.load !0")

    def cell(self, name: str) -> Value:
        """The address of a field of this thread's record."""
        row = self.op("mul", self.thread_index(), layout.THREAD_BYTES)
        at = self.op("add", row, layout.THREAD_OFFSET[name])
        return self.offset(self.field("thread", "ptr"), at)

    def thread_index(self) -> Value:
        return self.convert("zext", Value("%t", "i32"), "i64")

    # -- meeting the other threads

    def suspend(self, index: int, state: State, phase: int = 0, **cells: Value | int) -> None:
        """Wait, in a state that the scheduler knows how to end."""
        for name, given in {"state": int(state), "pc": index * 4 + phase, **cells}.items():
            width = "i64" if layout.THREAD[name] == "long long" else "i32"
            value = given if isinstance(given, Value) else constant(width, given)
            self.store(value, self.cell(name))
        resumed, how = (
            self.new_label(),
            self.value("i8", "call i8 @llvm.coro.suspend(token none, i1 false)"),
        )
        self.emit(f"switch {how}, label %end [i8 0, label %{resumed} i8 1, label %end]")
        self.place(resumed)

    def mail(self, word: int) -> Value:
        """The address of one of this lane's words: [warp][word][lane]."""
        row = self.op("mul", Value("%warp", "i32"), layout.MAIL_WORDS * layout.LANES)
        column = self.op("add", Value("%lane", "i32"), word * layout.LANES)
        at = self.convert("zext", self.op("add", row, column), "i64")
        return self.offset(self.field("mail", "ptr"), at, "i32")

    def collective(
        self,
        index: int,
        which: Collective,
        words: list[Value],
        results: int = 0,
        mask: Value | int = -1,
        argument: Value | int = 0,
        phase: int = 0,
    ) -> list[Value]:
        """Publish words, let the runtime act for all lanes of the mask, read the results."""
        for i, word in enumerate(words):
            self.store(word, self.mail(i))
        self.suspend(
            index,
            State.COLLECTIVE,
            phase,
            mask=mask,
            collective=int(which),
            argument=argument,
        )
        return [self.load("i32", self.mail(i)) for i in range(results)]

    def stop_unless(self, ok: Value, fault: Fault, index: int) -> None:
        self._stop_unless(ok, fault, index, constant("i64", 0), 0, Access.READ)

    def _stop_unless(
        self, ok: Value, fault: Fault, index: int, address: Value, n: int, access: Access
    ) -> None:
        good, bad = self.new_label(), self.new_label()
        self.branch(ok, good, bad, likely=True)
        self.place(bad)
        self.runtime("void", "rt_fault", int(fault), index, address, n, int(access))
        self.jump("exit")
        self.place(good)

    def runtime(self, type_: str, name: str, *arguments: Value | int) -> Value | None:
        given = [x if isinstance(x, Value) else constant("i64", x) for x in arguments]
        context = self.value("i64", "ptrtoint ptr %c to i64")
        everything = (context, self.thread_index(), *given)
        if type_ == "void":
            self.call_void(name, *everything)
            return None
        return self.call(type_, name, *everything)

    # -- memory

    def pointer(self, f_index: int, space: str, address: Address, n: int, access: Access) -> Value:
        where = self.address_value(address)
        if self.mode is Mode.SANITIZE:
            return self._touch(f_index, space, where, n, access, may_fail=False)
        if self.mode is Mode.COUNT and space != "local" and not access & Access.ASYNC:
            self._count(f_index, space, where, n, access)
        if space == "shared":
            size = self.kernel.shared.size
            self._check(f_index, where, where, constant("i64", size >> _log2(n)), n, access)
            return self.offset(self.field("shared", "ptr"), where)
        if space == "local":
            size = self.kernel.local.size
            self._check(f_index, where, where, constant("i64", size >> _log2(n)), n, access)
            return self.offset(self.offset(self.field("local", "ptr"), self._local_row()), where)
        window = self._window_of(space, address)
        writes_input = access & Access.WRITE and window in (Window.A, Window.B)
        if window is None or writes_input:
            return self._touch(f_index, space, where, n, access, may_fail=True)
        offset = self.op("sub", where, window.base)
        span = self.offset(self.field("windows", "ptr"), window * layout.SPAN_BYTES)
        size_ = self.load("i64", self.offset(span, 8), ", !invariant.load !0")
        self._check(f_index, where, offset, self.op("lshr", size_, _log2(n)), n, access)
        return self.offset(self.load("ptr", span, ", !invariant.load !0"), offset)

    def _local_row(self) -> Value:
        return self.op("mul", self.thread_index(), max(16, self.kernel.local.size + 15 & -16))

    def _window_of(self, space: str, address: Address) -> Window | None:
        if isinstance(address.base, Register) and space in ("global", "const", ""):
            return self._windows.get(address.base.name)
        if isinstance(address.base, Symbol) and address.base.name in self.kernel.module.variables:
            return Window.MODULE
        return None

    def _check(
        self, index: int, address: Value, offset: Value, units: Value, n: int, access: Access
    ) -> None:
        """Rotating the offset by log2(n) moves misaligned low bits to the top, so that one
        comparison with the array's size in units of n bytes finds both faults."""
        turned = offset
        if n > 1:
            turned = self.intrinsic("fshr", offset, offset, constant("i64", _log2(n)))
        ok = self.compare("ult", turned, units)
        self._stop_unless(ok, Fault.MEMORY, index, address, n, access)

    def _touch(
        self, index: int, space: str, where: Value, n: int, access: Access, may_fail: bool
    ) -> Value:
        """Let the runtime check an access; unless it may fail, it always gives a pointer."""
        generic = (
            self.op("add", where, self.window_base(space)) if self.window_base(space) else where
        )
        pointer = self.runtime("i64", "rt_touch", index, generic, n, int(access))
        assert pointer is not None
        if may_fail:
            good = self.new_label()
            self.branch(self.compare("ne", pointer, 0), good, "exit", likely=True)
            self.place(good)
        return self.value("ptr", f"inttoptr {pointer} to ptr")

    def _count(self, index: int, space: str, where: Value, n: int, access: Access) -> None:
        generic = (
            self.op("add", where, self.window_base(space)) if self.window_base(space) else where
        )
        halves = [self.resize(generic, "i32"), self.resize(self.op("lshr", generic, 32), "i32")]
        kind = n << 8 | int(access)
        self.collective(index, Collective.COUNT_ACCESS, halves, mask=0, argument=kind, phase=1)

    def parameter(self, address: Address, n: int) -> Value:
        if not isinstance(address.base, Symbol):
            raise CannotTranslate("a parameter that is indexed at run time")
        name, offset = address.base.name, address.offset
        if name in self._temporaries:
            if not 0 <= offset <= max(8, self.kernel.temporaries[name]) - n:
                raise CannotTranslate("an access outside a parameter")
            return self.offset(Value(self._temporaries[name], "ptr"), offset)
        place = self.kernel.parameters.variables.get(name)
        if place is None or not 0 <= offset <= place.size - n:
            raise CannotTranslate("an access outside the kernel's parameters")
        return self.offset(self.field("parameters", "ptr"), place.offset + offset)

    def window_base(self, space: str) -> int:
        return {"shared": Window.SHARED.base, "local": Window.LOCAL.base}.get(space, 0)

    def symbol(self, symbol: Symbol) -> Value:
        kernel = self.kernel
        for memory, base in (
            (kernel.shared, 0),
            (kernel.local, 0),
            (kernel.module, Window.MODULE.base),
        ):
            if symbol.name in memory.variables:
                place = memory.variables[symbol.name]
                return constant("i64", base + place.offset + symbol.offset)
        raise CannotTranslate(f"this device does not know the symbol {symbol.name}")

    # -- special registers

    def special(self, name: str) -> Value:
        base, _, axis = name.partition(".")
        if axis in ("x", "y", "z") and base in _POSITIONS:
            return self._position(_POSITIONS[base], axis)
        if name in ("laneid", "warpid"):
            return Value(f"%{name[:4]}", "i32")
        if name in ("clock", "clock_hi"):
            shift = 32 if name == "clock_hi" else 0
            return self.resize(self.op("lshr", self._cycles(), shift), "i32")
        if name in ("clock64", "globaltimer"):
            return self._cycles()
        if name.startswith("lanemask_"):
            return self._lane_mask(name.removeprefix("lanemask_"))
        if name in self._constants():
            return constant("i32", self._constants()[name])
        raise CannotTranslate(f"this device does not know the special register %{name}")

    def _constants(self) -> dict[str, int]:
        x, y, z = self.block
        shared = self.kernel.shared
        dynamic = shared.variables.get("dynamic shared memory")
        return {
            "smid": 0,
            "nsmid": 1,
            "gridid": 0,
            "nwarpid": -(-x * y * z // layout.LANES),
            "cluster_ctarank": 0,
            "cluster_nctarank": 1,
            "total_smem_size": shared.size,
            "dynamic_smem_size": dynamic.size if dynamic else 0,
        }

    def _position(self, kind: str, axis: str) -> Value:
        if kind == "thread":
            return Value(f"%tid.{axis}", "i32")
        if kind == "threads":
            return constant("i32", self.block["xyz".index(axis)])
        if kind in ("zero", "one"):
            return constant("i32", int(kind == "one"))
        field = axis if kind == "block" else f"grid_{axis}"
        return self.resize(self.field(field, "i64"), "i32")

    def _cycles(self) -> Value:
        self.declarations.add("declare i64 @llvm.readcyclecounter()")
        return self.value("i64", "call i64 @llvm.readcyclecounter()")

    def _lane_mask(self, which: str) -> Value:
        one = self.op("shl", constant("i32", 1), Value("%lane", "i32"))
        below = self.op("sub", one, 1)
        until = self.op("or", below, one)
        masks = {"eq": lambda: one, "lt": lambda: below, "le": lambda: until}
        masks |= {"ge": lambda: self.invert(below), "gt": lambda: self.invert(until)}
        if which not in masks:
            raise CannotTranslate(
                f"this device does not know the special register %lanemask_{which}"
            )
        return masks[which]()

    # -- control

    def label(self, index: int, item: Label) -> None:
        super().label(index, item)
        self.count_block(index)

    def poll(self, index: int) -> None:
        asked = self.value("i8", f"load volatile i8, {self.field('stop', 'ptr')}")
        self.stop_unless(self.compare("eq", asked, 0), Fault.TIME_LIMIT, index)

    def count_branch(self, index: int, taken: Value) -> None:
        if self.mode is Mode.COUNT:
            word = self.resize(taken, "i32")
            self.collective(index, Collective.COUNT_BRANCH, [word], mask=0, phase=1)

    def count_block(self, index: int) -> None:
        if self.mode is Mode.COUNT:
            self.collective(index, Collective.COUNT_BLOCK, [], mask=0, phase=2)

    def call_function(self, index: int, item: Instruction) -> None:
        from harness.devices.cpu.instructions.control import call_host

        call_host(self, index, item)


_POSITIONS = {
    "tid": "thread",
    "ntid": "threads",
    "ctaid": "block",
    "nctaid": "grid",
    "clusterid": "block",
    "nclusterid": "grid",
    "cluster_ctaid": "zero",
    "cluster_nctaid": "one",
}

_CORO = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
!0 = !{}
!1 = !{!"branch_weights", i32 100000, i32 1}
"""


def _log2(n: int) -> int:
    if n & (n - 1) or not n:
        raise CannotTranslate(f"an access of {n} bytes")
    return n.bit_length() - 1
