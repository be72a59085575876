"""Translates registers, operands and branches into LLVM IR. See thread.py, which translates whole
kernels by means of it."""

from dataclasses import dataclass
from functools import cached_property

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.analysis.polling import deciding_registers
from harness.ptxcpu.codegen.liveness import liveness
from harness.ptxcpu.codegen.llvm_ir import Builder, IrValue, all_ones, bits, constant, llvm_type
from harness.ptxcpu.errors import CannotTranslate, InternalError
from harness.ptxcpu.ptx.effects import read_by
from harness.ptxcpu.ptx.syntax import (
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
from harness.ptxcpu.ptx.types import TYPES, Type
from harness.ptxcpu.runtime.layout import Access

PREDICATE, B32, B64 = TYPES["pred"], TYPES["b32"], TYPES["b64"]

CARRY = "%r.carry"
REGISTER = ", ptr %r"
"""Text before the rest of a register's name, at the end of a line that loads or stores it."""


@dataclass(frozen=True)
class MemoryAccess:
    """The memory access of the instruction at `index`: it reads or writes `n` bytes."""

    index: int
    n: int
    kind: Access

    @property
    def log2(self) -> int:
        if self.n & (self.n - 1) or not self.n:
            raise CannotTranslate(f"an access of {self.n} bytes")
        return self.n.bit_length() - 1


@dataclass(frozen=True)
class MatrixProduct:
    """A product of tensor cores, `sums = a * b + start`, as the lanes of a warp bring it.

    a, b: registers, or one with a descriptor.
    uses_start: of wgmma, which may leave out what it adds to.
    """

    variant: int
    sums: tuple[Operand, ...]
    start: tuple[Operand, ...]
    a: tuple[Operand, ...]
    b: tuple[Operand, ...]
    uses_start: Operand | None = None

    @property
    def operands(self) -> tuple[tuple[Operand, ...], ...]:
        return (self.a, self.b) if self.uses_start is None else (self.a, self.b, (self.uses_start,))


class OperandTranslator(Builder):
    """Registers, operands and branches of one function."""

    def __init__(self, kernel: InlinedKernel) -> None:
        super().__init__()
        self.kernel = kernel
        self._registers = {name: f"%r{i}" for i, name in enumerate(kernel.registers)}
        self._types = {
            register: llvm_type(kernel.registers[name])
            for name, register in self._registers.items()
        } | {CARRY: "i1"}
        self._declared_at = 0
        """The line in the text."""
        self._held: dict[str, IrValue] = {}
        """The values of registers that this basic block has read or written."""
        self._temporaries = {name: f"%p{i}" for i, name in enumerate(kernel.temporaries)}
        labels = [item.name for item in kernel.body if isinstance(item, Label)]
        self._labels = {name: f"L{i}" for i, name in enumerate(labels)}
        if len(self._labels) != len(labels):
            raise CannotTranslate("a label stands twice")
        self._index_of = {x.name: i for i, x in enumerate(kernel.body) if isinstance(x, Label)}

    def special(self, name: str) -> IrValue:
        """Return the value of a special register."""
        raise NotImplementedError

    def symbol(self, symbol: Symbol) -> IrValue:
        """Return the address of a variable."""
        raise NotImplementedError

    def window_base(self, space: str) -> int:
        """Return the number that `cvta` adds to an address of a state space."""
        raise NotImplementedError

    def lower(self, index: int, item: Instruction) -> None:
        """Emit the IR of one instruction, without its guard."""
        raise NotImplementedError

    # -- operands

    def read(self, operand: Operand, type_: Type) -> IrValue:
        """Return the value of an operand as `type_`: the low bits, or extended by the type's
        sign."""
        if isinstance(operand, Register):
            if (type_ is PREDICATE) != (self.kernel.registers[operand.name] is PREDICATE):
                raise CannotTranslate("a predicate and a number are mixed")
            return self.reinterpret(self._value_of(operand), llvm_type(type_), type_.is_signed)
        if isinstance(operand, Not):
            return self.invert(self.read(operand.register, PREDICATE))
        if isinstance(operand, Special):
            return self.reinterpret(self.special(operand.name), llvm_type(type_))
        if isinstance(operand, Integer):
            return self._integer(operand, type_)
        if isinstance(operand, Float):
            return self._float(operand, type_)
        if isinstance(operand, Symbol):
            return self.reinterpret(self.symbol(operand), llvm_type(type_))
        raise CannotTranslate("an operand of another kind is needed")

    def _value_of(self, register: Register) -> IrValue:
        name = register.name
        if name not in self._held:
            place = self._registers[name]
            self._held[name] = self.load(self._types[place], IrValue(place, "ptr"))
        return self._held[name]

    def place(self, label: str) -> None:
        super().place(label)
        self._held = {}

    def _integer(self, operand: Integer, type_: Type) -> IrValue:
        if type_.is_float:
            if operand.value:
                raise CannotTranslate("an integer where a floating-point number is needed")
            return constant(llvm_type(type_), 0.0)
        return constant(llvm_type(type_), operand.value)

    def _float(self, operand: Float, type_: Type) -> IrValue:
        if type_.is_float:
            if type_.bits == operand.width:
                whole = constant(f"i{operand.width}", operand.bits)
                return self.bitcast(whole, llvm_type(type_))
            if type_.name == "f32":
                return self.convert("fptrunc", constant("double", operand.value), "float")
            raise CannotTranslate("a floating-point constant of another width")
        return constant(llvm_type(type_), operand.bits)

    def pack(self, vector: Vector, type_: Type) -> IrValue:
        """`{lo, hi}` as one integer."""
        whole = f"i{type_.bits}"
        part = type_.bits // max(1, len(vector.items))
        if f"b{part}" not in TYPES or not vector.items:
            raise CannotTranslate("a vector of another length is needed")
        result = constant(whole, 0)
        for i, item in enumerate(vector.items):
            piece = self.resize(self.read(item, TYPES[f"b{part}"]), whole)
            result = self.op("or", result, self.op("shl", piece, i * part))
        return self.bitcast(result, llvm_type(type_))

    def unpack(self, vector: Vector, value: IrValue) -> None:
        """One integer into `{lo, hi}`."""
        whole = self.as_integer(value)
        part = bits(whole.type) // max(1, len(vector.items))
        if f"b{part}" not in TYPES or not vector.items:
            raise CannotTranslate("a vector of another length is needed")
        for i, item in enumerate(vector.items):
            self.write(item, self.resize(self.op("lshr", whole, i * part), f"i{part}"))

    def write(self, operand: Operand, value: IrValue, signed: bool = False) -> None:
        """Store a result; a wider register is sign- or zero-extended."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise CannotTranslate("a result that is not a register")
        held = self.kernel.registers[operand.name]
        if (held is PREDICATE) != (value.type == "i1"):
            raise CannotTranslate("a predicate and a number are mixed")
        kept = self.reinterpret(value, llvm_type(held), signed)
        self._held[operand.name] = kept
        self.store(kept, IrValue(self._registers[operand.name], "ptr"))

    def write_pair(self, operand: Operand, first: IrValue, second: IrValue) -> None:
        """Write `d|p`, of which the second is optional."""
        if isinstance(operand, Pair):
            self.write(operand.first, first)
            self.write(operand.second, second)
        else:
            self.write(operand, first)

    def address(self, operand: Operand) -> Address:
        if not isinstance(operand, Address):
            raise CannotTranslate("an address in brackets is needed")
        return operand

    def address_value(self, address: Address) -> IrValue:
        """Return the 64-bit device address."""
        base = self.read(address.base, B64)
        return self.op("add", base, address.offset) if address.offset else base

    def generic(self, operand: Operand, space: str) -> IrValue:
        """Return the generic address of an operand in a state space."""
        return self.op("add", self.address_value(self.address(operand)), self.window_base(space))

    def halves(self, x: IrValue) -> list[IrValue]:
        """Return the low and the high word of a 64-bit integer."""
        return [self.resize(x, "i32"), self.resize(self.op("lshr", x, 32), "i32")]

    def carry(self) -> IrValue:
        """Return the carry flag of extended-precision arithmetic."""
        return self.load("i1", IrValue(CARRY, "ptr"))

    def set_carry(self, value: IrValue) -> None:
        self.store(value, IrValue(CARRY, "ptr"))

    # -- control

    def branch_label(self, operand: Operand) -> str:
        if not isinstance(operand, Symbol) or operand.name not in self._labels:
            raise CannotTranslate("a branch to something that is not a label")
        return self._labels[operand.name]

    def is_backward(self, index: int, operand: Operand) -> bool:
        return isinstance(operand, Symbol) and self._index_of.get(operand.name, index) < index

    def is_in_loop(self, index: int) -> bool:
        """Return whether some branch after `index` leads back before it."""
        return any(start <= index <= end for start, end in self._loops)

    @cached_property
    def deciding_registers(self) -> set[str]:
        """The registers that may decide branches."""
        return deciding_registers(self.kernel.body)

    @cached_property
    def read_registers(self) -> frozenset[str]:
        """The registers that some instruction reads."""
        items = (item for item in self.kernel.body if isinstance(item, Instruction))
        return frozenset(name for item in items for name in read_by(item))

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
        """Jump out of the function; the code after it is reached only by labels."""
        self.jump("exit")
        self.place(self.new_label())

    def declare_registers(self) -> None:
        """Note where `body` declares the registers that have memory."""
        self._declared_at = len(self.lines)
        for name, size in self.kernel.temporaries.items():
            self.emit(f"{self._temporaries[name]} = alloca [{max(8, size)} x i8], align 16")

    def body(self) -> None:
        """Emit the statements. In PTX, a register has no defined value before it is written. One
        that may be read before starts as NaN, so that a sum without a first value is wrong. Setting
        all of many thousand registers would cost LLVM minutes."""
        start = len(self.lines)
        self.statements()
        statements = self.lines[start:]
        del self.lines[start:]
        live = liveness(statements)
        for register in sorted(live.unwritten):
            self.store(all_ones(self._types[register]), IrValue(register, "ptr"))
        self.lines += [line for at, line in enumerate(statements) if at not in live.dead]
        ends = (line.rpartition(REGISTER) for line in self.lines[start:])
        used = dict.fromkeys(f"%r{name}" for _, found, name in ends if found)
        self.lines[self._declared_at : self._declared_at] = [
            f"  {register} = alloca {self._types[register]}" for register in used
        ]

    def statements(self) -> None:
        for index, item in enumerate(self.kernel.body):
            if isinstance(item, Label):
                self.label(index, item)
                continue
            try:
                self.statement(index, item)
            except CannotTranslate as refusal:
                raise refusal.at(item.text, item.line) from None
            except InternalError:
                raise
            except Exception as error:
                raise InternalError(f"lowering `{item.text}`: {error!r}") from error

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
            before = dict(self._held)
            self.continue_at(do)
        self.lower(index, item)
        if guarded:
            self.jump(after)
            unchanged = {x: held for x, held in before.items() if self._held.get(x) is held}
            self.place(after)
            self._held = unchanged
