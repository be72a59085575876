"""Tables of instructions: each PTX form, written as in the PTX manual, and how it becomes IR.

    TABLE = InstructionTable()

    @TABLE.value("add{.rnd}.f32 d, a, b", rnd=ROUNDING)
    def add(t, m, a, b):
        return t.op("fadd", a, b)

What no form matches is refused, so an unknown modifier is never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Concatenate

from harness.ptxcpu.codegen.llvm_ir import IrValue
from harness.ptxcpu.codegen.matching import Form, MatchedInstruction
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Instruction, Label
from harness.ptxcpu.ptx.types import TYPES

# A lowering emits the IR of an instruction through the translator.
Lowering = Callable[[Translator, MatchedInstruction], None]
# A lowering that only computes: it is given the operands' values and returns the result.
Computation = Callable[Concatenate[Translator, MatchedInstruction, ...], IrValue]


@dataclass(frozen=True)
class Row:
    """One form and its lowering."""

    form: Form
    lowering: Lowering


class InstructionTable:
    """The instructions of one family, or of all of them."""

    def __init__(self, *parts: InstructionTable) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._found: dict[tuple[str, int], tuple[Row, dict[str, str]]] = {}
        """The row and the modifiers for an opcode with so many operands."""
        self._ordered: dict[tuple[str, int], str] = {}
        """The opcode with so many operands as the PTX manual writes it."""
        for part in parts:
            for row in part:
                self._add(row)

    def __iter__(self) -> Iterator[Row]:
        return (row for rows in self._rows.values() for row in rows)

    def _add(self, row: Row) -> None:
        self._rows.setdefault(row.form.root, []).append(row)

    def instruction(self, form: str, **choices: Sequence[str]) -> Callable[[Lowering], Lowering]:
        """Register the lowering of one form."""

        def register(lowering: Lowering) -> Lowering:
            self._add(Row(Form.parse(form, choices), lowering))
            return lowering

        return register

    def value(self, form: str, **choices: Sequence[str]) -> Callable[[Computation], Computation]:
        """Register a form that computes `d` from its operands, which are read in the types that
        they name, or in `.type`."""
        target, *sources = Form.parse(form, choices).operands

        def register(computation: Computation) -> Computation:
            def lowering(t: Translator, m: MatchedInstruction) -> None:
                given = []
                for name in sources:
                    if name in m.operands:
                        type_ = name.partition(":")[2]
                        given.append(t.read(m.operands[name], TYPES[type_] if type_ else m.type))
                t.write(m.operands[target], computation(t, m, *given))

            self.instruction(form, **choices)(lowering)
            return computation

        return register

    def operation(self, form: str, name: str, **choices: Sequence[str]) -> None:
        """Register a form that is one operation of LLVM."""

        @self.value(form, **choices)
        def computation(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
            return t.op(name, a, b)

    def intrinsic(self, form: str, name: str, **choices: Sequence[str]) -> None:
        """Register a form that is one intrinsic function of LLVM."""

        @self.value(form, **choices)
        def computation(t: Translator, m: MatchedInstruction, *given: IrValue) -> IrValue:
            return t.intrinsic(name, *given)

    def match(self, item: Instruction, index: int) -> tuple[MatchedInstruction, Lowering]:
        """Return the row of an instruction. Raises CannotTranslate if no row matches."""
        written = item.opcode, len(item.operands)
        if written not in self._found:
            self._found[written] = self._search(*written)
        row, modifiers = self._found[written]
        operands = dict(zip(row.form.operands, item.operands, strict=False))
        return MatchedInstruction(item, index, modifiers, operands), row.lowering

    def _search(self, opcode: str, operands: int) -> tuple[Row, dict[str, str]]:
        for row in self._rows.get(_root(opcode), ()):
            modifiers = row.form.match(opcode, operands)
            if modifiers is not None:
                return row, modifiers
        raise CannotTranslate(f"this device does not know the PTX instruction {opcode!r}")

    def put_in_order(self, body: list[Instruction | Label]) -> None:
        """Rewrite opcodes whose modifiers are not in the order of the PTX manual. ptxas accepts
        most of them in any order."""
        for i, item in enumerate(body):
            if isinstance(item, Instruction):
                ordered = self._in_order(item.opcode, len(item.operands))
                if ordered != item.opcode:
                    body[i] = replace(item, opcode=ordered)

    def _in_order(self, opcode: str, operands: int) -> str:
        if (opcode, operands) not in self._ordered:
            rows = self._rows.get(_root(opcode), [])
            is_known = any(row.form.match(opcode, operands) is not None for row in rows)
            found = (row.form.in_order(opcode, operands) for row in rows if not is_known)
            self._ordered[opcode, operands] = next(filter(None, found), opcode)
        return self._ordered[opcode, operands]

    def lower(self, t: Translator, item: Instruction, index: int) -> None:
        """Emit the IR of one instruction."""
        matched, lowering = self.match(item, index)
        lowering(t, matched)


def _root(opcode: str) -> str:
    return re.split(r"[.:]", opcode, maxsplit=1)[0]
