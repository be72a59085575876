"""Writes LLVM IR as text: typed values, and one method per kind of instruction."""

import operator
import struct
from collections.abc import Sequence
from typing import NamedTuple

from harness.ptxcpu.ptx.types import TYPES, Type

_NAMES = {
    **{name: f"i{t.bits}" for name, t in TYPES.items() if not t.is_float},
    "f16": "half",
    "bf16": "bfloat",
    "f32": "float",
    "f64": "double",
    "f16x2": "<2 x half>",
    "bf16x2": "<2 x bfloat>",
}
_BITS = {_NAMES[name]: t.bits for name, t in TYPES.items()}

_SUFFIX = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}
ELEMENT = {"<2 x half>": "half", "<2 x bfloat>": "bfloat"}


class IrValue(NamedTuple):
    """An SSA value or constant: its text in IR, and its LLVM type."""

    text: str
    type: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def llvm_type(type_: Type) -> str:
    """`float` for f32."""
    return _NAMES[type_.name]


def element_of(vector: str) -> str:
    """Return `i8` for `<64 x i8>`."""
    return vector[1:-1].partition(" x ")[2]


def with_elements(vector: str, element: str) -> str:
    """Return the type of vectors of the same length with other elements."""
    return f"{vector.partition(' x ')[0]} x {element}>"


def _suffix(type_: str) -> str:
    """Return how the names of intrinsic functions call a type: `v64i8` for `<64 x i8>`."""
    if type_.startswith("<"):
        return f"v{type_[1:].partition(' ')[0]}{_suffix(element_of(type_))}"
    return _SUFFIX.get(type_, type_)


def bits(llvm: str) -> int:
    return _BITS[llvm] if llvm in _BITS else int(llvm.removeprefix("i"))


def constant(type_: str, number: int | float) -> IrValue:
    """Return a constant, in all elements of a vector. An integer is reduced modulo 2^bits; a float
    must be exact in `type_`."""
    if type_.startswith("i"):
        if type_ == "i1":
            return IrValue("true" if number else "false", "i1")
        return IrValue(str(int(number) % (1 << bits(type_))), type_)
    if type_.startswith("<"):
        return IrValue(f"splat ({constant(element_of(type_), number)})", type_)
    if type_ == "bfloat":
        top = struct.unpack("<I", struct.pack("<f", number))[0] >> 16
        return IrValue(f"0xR{top:04X}", type_)
    if type_ == "half":
        return IrValue(f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}", type_)
    return IrValue(f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}", type_)


def all_ones(type_: str) -> IrValue:
    """Return a constant all of whose bits are ones: of floats, a NaN."""
    if type_.startswith("i"):
        return constant(type_, -1)
    element = element_of(type_) if type_.startswith("<") else type_
    if element.startswith("i"):
        return constant(type_, -1)
    integer = f"i{bits(element)}"
    whole = with_elements(type_, integer) if type_.startswith("<") else integer
    return IrValue(f"bitcast ({constant(whole, -1)} to {type_})", type_)


TRUE, FALSE = constant("i1", 1), constant("i1", 0)

_FOLDED = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "lshr": operator.rshift,
}
_COMPARED = {
    "eq": operator.eq,
    "ne": operator.ne,
    "ult": operator.lt,
    "ule": operator.le,
    "ugt": operator.gt,
    "uge": operator.ge,
}
_UNCHANGED_BY_ZERO = {"add", "sub", "or", "xor", "shl", "lshr", "ashr"}


def _number(a: IrValue) -> int | None:
    """Return the value of an integer constant of more than one bit, else None."""
    return int(a.text) if a.text.isdecimal() else None


class Builder:
    """Appends instructions to one function. Operands of different types fail an assertion.

    Operations on integer constants are computed at once, since LLVM takes longer for them.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.value_types: dict[str, str] = {}
        self.declarations: set[str] = set()
        self._serial = 0

    # -- text

    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, type_: str, text: str) -> IrValue:
        """Append an instruction, and return its result."""
        return self.raw(type_, text)

    def raw(self, type_: str, text: str) -> IrValue:
        """Do the same, also for vectors of lanes (vector/builder.py)."""
        self._serial += 1
        name = f"%v{self._serial}"
        self.lines.append(f"  {name} = {text}")
        self.value_types[name] = type_
        return IrValue(name, type_)

    def new_label(self) -> str:
        self._serial += 1
        return f"b{self._serial}"

    def place(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def continue_at(self, label: str) -> None:
        """Begin a basic block that is entered only from the end of this one."""
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def branch(self, condition: IrValue, then: str, other: str, likely: bool = False) -> None:
        hint = ", !prof !1" if likely else ""
        self.emit(f"br {condition}, label %{then}, label %{other}{hint}")

    # -- arithmetic

    def alike(self, a: IrValue, b: IrValue | int | float) -> tuple[IrValue, IrValue]:
        """Return two operands of one type, of which the second may be a number."""
        if not isinstance(b, IrValue):
            b = constant(a.type, b)
        assert a.type == b.type, f"{a}, {b}"
        return a, b

    def result(self, type_: str, text: str, like: IrValue) -> IrValue:
        """Append an instruction whose result has as many elements as an operand."""
        return self.value(type_, text)

    def op(self, name: str, a: IrValue, b: IrValue | int | float) -> IrValue:
        """Any instruction of two operands of one type: add, fmul, and, lshr, ..."""
        a, b = self.alike(a, b)
        second = _number(b)
        if second is not None:
            first = _number(a)
            if first is not None and name in _FOLDED:
                return constant(a.type, _FOLDED[name](first, second))
            if second == 0 and name in _UNCHANGED_BY_ZERO:
                return a
        return self.result(a.type, f"{name} {a}, {b.text}", a)

    def compare(self, predicate: str, a: IrValue, b: IrValue | int | float) -> IrValue:
        a, b = self.alike(a, b)
        first, second = _number(a), _number(b)
        if first is not None and second is not None and predicate in _COMPARED:
            return constant("i1", _COMPARED[predicate](first, second))
        name = "icmp" if a.type.startswith("i") or a.type == "ptr" else "fcmp"
        return self.result("i1", f"{name} {predicate} {a}, {b.text}", a)

    def select(self, condition: IrValue, a: IrValue, b: IrValue | int | float) -> IrValue:
        a, b = self.alike(a, b)
        assert condition.type == "i1", f"select {condition}, {a}, {b}"
        if condition in (TRUE, FALSE):
            return a if condition == TRUE else b
        return self.result(a.type, f"select {condition}, {a}, {b}", a)

    def invert(self, a: IrValue) -> IrValue:
        return self.op("xor", a, -1)

    def negate(self, a: IrValue) -> IrValue:
        if a.type.startswith("i"):
            return self.op("sub", constant(a.type, 0), a)
        return self.result(a.type, f"fneg {a}", a)

    def intrinsic(self, name: str, *arguments: IrValue) -> IrValue:
        """`llvm.fma` of three floats; the result has the type of the first argument."""
        first = arguments[0].type
        return self.call(first, f"llvm.{name}.{_suffix(first)}", *arguments)

    def call(self, type_: str, name: str, *arguments: IrValue) -> IrValue:
        """Call an external function, and declare it if it is not yet declared."""
        self._declare(type_, name, arguments)
        return self.value(type_, f"call {type_} @{name}({', '.join(map(str, arguments))})")

    def call_void(self, name: str, *arguments: IrValue) -> None:
        self._declare("void", name, arguments)
        self.emit(f"call void @{name}({', '.join(map(str, arguments))})")

    def _declare(self, type_: str, name: str, arguments: tuple[IrValue, ...]) -> None:
        types = ", ".join(a.type for a in arguments)
        self.declarations.add(f"declare {type_} @{name}({types})")

    # -- conversions

    def bitcast(self, a: IrValue, type_: str) -> IrValue:
        if a.type == type_:
            return a
        if _number(a) is not None:
            return IrValue(f"bitcast ({a} to {type_})", type_)
        return self.value(type_, f"bitcast {a} to {type_}")

    def as_integer(self, a: IrValue) -> IrValue:
        return self.bitcast(a, f"i{bits(a.type)}")

    def convert(self, how: str, a: IrValue, type_: str) -> IrValue:
        """fpext, fptrunc, sitofp, uitofp, ..."""
        return self.value(type_, f"{how} {a} to {type_}")

    def resize(self, a: IrValue, type_: str, signed: bool = False) -> IrValue:
        """Return an integer truncated or extended."""
        if bits(a.type) == bits(type_):
            return a
        number = _number(a)
        if number is not None and (bits(a.type) > bits(type_) or not signed):
            return constant(type_, number)
        how = "trunc" if bits(a.type) > bits(type_) else "sext" if signed else "zext"
        return self.convert(how, a, type_)

    def reinterpret(self, a: IrValue, type_: str, signed: bool = False) -> IrValue:
        """Return the low bits of `a` as `type_`; a narrower `a` is extended."""
        if a.type == type_:
            return a
        whole = self.resize(self.as_integer(a), f"i{bits(type_)}", signed)
        return self.bitcast(whole, type_)

    def extract(self, vector: IrValue, element: str, index: int) -> IrValue:
        return self.value(element, f"extractelement {vector}, i32 {index}")

    def insert(self, vector: IrValue, item: IrValue, index: int) -> IrValue:
        return self.value(vector.type, f"insertelement {vector}, {item}, i32 {index}")

    def shuffle(self, a: IrValue, b: IrValue | None, indices: Sequence[int]) -> IrValue:
        """Select elements of two vectors of one type, or of one vector; those of the second follow
        those of the first."""
        mask = ", ".join(f"i32 {i}" for i in indices)
        two = f"{a}, {b or IrValue('poison', a.type)}"
        whole = f"<{len(indices)} x {element_of(a.type)}>"
        return self.raw(whole, f"shufflevector {two}, <{len(indices)} x i32> <{mask}>")

    # -- memory of the host

    def offset(self, pointer: IrValue, offset: IrValue | int, type_: str = "i8") -> IrValue:
        if not isinstance(offset, IrValue):
            offset = IrValue(str(offset), "i64")
        return self.value("ptr", f"getelementptr {type_}, {pointer}, {offset}")

    def load(self, type_: str, pointer: IrValue, attributes: str = "") -> IrValue:
        return self.value(type_, f"load {type_}, {pointer}{attributes}")

    def store(self, a: IrValue, pointer: IrValue, attributes: str = "") -> None:
        self.emit(f"store {a}, {pointer}{attributes}")
