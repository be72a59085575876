"""Writes LLVM IR in which a value is either a scalar or a vector with one element per lane.

The lowerings of instructions are written for one thread and use the type of an element. If an
operand is a `LaneVector`, the same lowering emits vector code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.ptxcpu.codegen.llvm_ir import ELEMENT, Builder, IrValue, constant
from harness.ptxcpu.errors import CannotTranslate

_OVERLOADED = re.compile(r"\.(b?f\d+|i\d+)\b")
_WITH_IMMEDIATE = ("llvm.ctlz", "llvm.cttz", "llvm.abs", "llvm.is.fpclass")
"""Intrinsics whose last argument must be a constant."""


class LaneVector(IrValue):
    """One value per lane; `type` is the type of an element."""

    lanes: int

    @classmethod
    def of(cls, text: str, type_: str, lanes: int) -> LaneVector:
        if type_ in ELEMENT:
            raise CannotTranslate("packed halves in vector code")
        vector = cls(text, type_)
        vector.lanes = lanes
        return vector

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.type}> {self.text}"


def is_vector(*values: IrValue) -> bool:
    return any(isinstance(value, LaneVector) for value in values)


class VectorBuilder(Builder):
    """A builder whose methods take scalars and vectors of lanes alike."""

    lanes: int

    # -- making vectors

    def lane_value(self, type_: str, text: str) -> LaneVector:
        """Append an instruction whose result is a vector with one element of `type_` per lane."""
        made = self.raw(f"<{self.lanes} x {type_}>", text)
        return LaneVector.of(made.text, type_, self.lanes)

    def value(self, type_: str, text: str) -> IrValue:
        if f"<{self.lanes} x " in text and not type_.startswith("<"):
            raise CannotTranslate("an instruction that has no vector form here")
        return super().value(type_, text)

    def vector(self, a: IrValue) -> LaneVector:
        """Return a vector with the same value in all lanes."""
        if isinstance(a, LaneVector):
            return a
        if not a.text.startswith("%"):
            if a.text in ("poison", "zeroinitializer", "undef"):
                return LaneVector.of(a.text, a.type, self.lanes)
            return LaneVector.of(f"splat ({a})", a.type, self.lanes)
        first = self.raw(
            f"<{self.lanes} x {a.type}>",
            f"insertelement <{self.lanes} x {a.type}> poison, {a}, i32 0",
        )
        return self.lane_value(
            a.type,
            f"shufflevector {first}, <{self.lanes} x {a.type}> poison, "
            f"<{self.lanes} x i32> zeroinitializer",
        )

    def constants(self, type_: str, numbers: Sequence[int]) -> LaneVector:
        """Return a vector of integer constants."""
        items = ", ".join(str(constant(type_, number)) for number in numbers)
        return LaneVector.of(f"<{items}>", type_, self.lanes)

    def element(self, vector: LaneVector, lane: int) -> IrValue:
        return self.raw(vector.type, f"extractelement {vector}, i32 {lane}")

    def bits_of_lanes(self, predicate: LaneVector) -> IrValue:
        """Return an integer with the predicate of lane i in bit i."""
        type_ = f"i{self.lanes}"
        return self.raw(type_, f"bitcast {predicate} to {type_}")

    def held_bits(self, predicate: LaneVector) -> IrValue:
        """Return the same for use in other basic blocks. A vector of predicates that is used there
        would take one register per lane in LLVM's code."""
        bits = self.bits_of_lanes(predicate)
        return self.raw(bits.type, f'call {bits.type} asm "", "=r,0"({bits})')

    def lanes_of_bits(self, bits: IrValue) -> LaneVector:
        return self.lane_value("i1", f"bitcast {bits} to <{self.lanes} x i1>")

    # -- what lowerings call

    def alike(self, a: IrValue, b: IrValue | int | float) -> tuple[IrValue, IrValue]:
        a, b = super().alike(a, b)
        return (self.vector(a), self.vector(b)) if is_vector(a, b) else (a, b)

    def result(self, type_: str, text: str, like: IrValue) -> IrValue:
        return self.lane_value(type_, text) if is_vector(like) else self.value(type_, text)

    def select(self, condition: IrValue, a: IrValue, b: IrValue | int | float) -> IrValue:
        return super().select(condition, self.vector(a) if is_vector(condition) else a, b)

    def call(self, type_: str, name: str, *arguments: IrValue) -> IrValue:
        if not is_vector(*arguments):
            return super().call(type_, name, *arguments)
        if not name.startswith("llvm."):
            raise CannotTranslate("a call in vector code")
        given = [*arguments]
        fixed = 1 if name.startswith(_WITH_IMMEDIATE) else 0
        for i in range(len(given) - fixed):
            given[i] = self.vector(given[i])
        name = _OVERLOADED.sub(rf".v{self.lanes}\1", name)
        whole = f"<{self.lanes} x {type_}>"
        types = ", ".join(str(x).removesuffix(x.text).strip() for x in given)
        self.declarations.add(f"declare {whole} @{name}({types})")
        return self.lane_value(type_, f"call {whole} @{name}({', '.join(map(str, given))})")

    def call_void(self, name: str, *arguments: IrValue) -> None:
        if is_vector(*arguments):
            raise CannotTranslate("a call in vector code")
        super().call_void(name, *arguments)

    def bitcast(self, a: IrValue, type_: str) -> IrValue:
        if not is_vector(a) or a.type == type_:
            return super().bitcast(a, type_)
        if type_ in ELEMENT:
            raise CannotTranslate("packed halves in vector code")
        return self.lane_value(type_, f"bitcast {a} to <{self.lanes} x {type_}>")

    def convert(self, how: str, a: IrValue, type_: str) -> IrValue:
        if not is_vector(a):
            return super().convert(how, a, type_)
        return self.lane_value(type_, f"{how} {a} to <{self.lanes} x {type_}>")

    def extract(self, vector: IrValue, element: str, index: int) -> IrValue:
        if is_vector(vector):
            raise CannotTranslate("packed halves in vector code")
        return super().extract(vector, element, index)

    def insert(self, vector: IrValue, item: IrValue, index: int) -> IrValue:
        if is_vector(vector, item):
            raise CannotTranslate("packed halves in vector code")
        return super().insert(vector, item, index)

    def branch(self, condition: IrValue, then: str, other: str, likely: bool = False) -> None:
        if is_vector(condition):
            raise CannotTranslate("a branch on a vector")
        super().branch(condition, then, other, likely)
