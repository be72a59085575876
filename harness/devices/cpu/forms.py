"""The table of instructions: each PTX form, written as in the PTX manual, and its meaning.

    @value("add{.rnd}.f32 d, a, b", rnd=ROUNDING)
    def add(t, f, a, b):
        return t.op("fadd", a, b)

A form is the opcode and the names of its operands. `.name` stands for itself, unless `name=` gives
the choices it stands for; braces make it optional. `.type` gives the type in which `@value` reads
operands. An operand may name its own type (`c:pred`); a trailing `?` makes it optional.
What no form matches is refused, so an unknown modifier is never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate

from harness.devices.cpu.errors import CannotTranslate
from harness.devices.cpu.ir import Value
from harness.devices.cpu.ptx import Instruction, Operand
from harness.devices.cpu.types import TYPES, Type

if TYPE_CHECKING:
    from harness.devices.cpu.translate import Translator


@dataclass(frozen=True)
class Form:
    """An instruction matched with one form: its modifiers and operands by name."""

    instruction: Instruction
    index: int
    modifiers: dict[str, str]
    operands: dict[str, Operand]

    def __getitem__(self, name: str) -> str:
        """The choice made for `.name`, "" where an optional one is absent."""
        return self.modifiers.get(name, "")

    @property
    def type(self) -> Type:
        return TYPES[self.modifiers["type"]]


# What an instruction does: emits IR through the translator.
Meaning = Callable[["Translator", Form], None]
# A meaning that only computes: it is given the operands' values and returns the result.
Computation = Callable[Concatenate["Translator", Form, ...], Value]


@dataclass(frozen=True)
class Entry:
    """A row of the table."""

    opcode: str
    choices: dict[str, Sequence[str]]
    pattern: re.Pattern[str]
    operands: tuple[str, ...]
    required: int
    meaning: Meaning


TABLE: dict[str, list[Entry]] = {}


def _compile(opcode: str, choices: dict[str, Sequence[str]]) -> tuple[str, re.Pattern[str]]:
    """`add{.rnd}.type` -> a regular expression with a group for each choice."""

    def modifier(match: re.Match[str]) -> str:
        optional, name = match[1] is not None, match[1] or match[2]
        words = "|".join(map(re.escape, choices.get(name, (name,))))
        is_asked_for = name in choices or optional
        group = f"(?P<{name}>{words})" if is_asked_for and name.isidentifier() else f"(?:{words})"
        return rf"(?:\.{group})" + ("?" if optional else "")

    root, rest = re.fullmatch(r"(\w+)(.*)", opcode).groups()  # type: ignore[union-attr]
    body = re.sub(r"\{\.([\w:]+)\}|\.([\w:]+)", modifier, rest)
    return root, re.compile(re.escape(root) + body)


def instruction(form: str, **choices: Sequence[str]) -> Callable[[Meaning], Meaning]:
    """Register the meaning of one form."""
    opcode, _, rest = form.partition(" ")
    names = tuple(name.strip() for name in rest.split(",") if name.strip())
    root, pattern = _compile(opcode, choices)
    required = sum(not name.endswith("?") for name in names)
    plain = tuple(name.rstrip("?") for name in names)

    def register(meaning: Meaning) -> Meaning:
        entry = Entry(opcode, choices, pattern, plain, required, meaning)
        TABLE.setdefault(root, []).append(entry)
        return meaning

    return register


def value(form: str, **choices: Sequence[str]) -> Callable[[Computation], Computation]:
    """Register a form that computes `d` from operands that are all read in their types."""
    names = [name.strip().rstrip("?") for name in form.partition(" ")[2].split(",")]
    typed = [(name, *name.partition(":")[::2]) for name in names]

    def register(computation: Computation) -> Computation:
        def meaning(t: Translator, f: Form) -> None:
            given = [
                t.read(f.operands[name], TYPES[type_] if type_ else f.type)
                for name, _, type_ in typed[1:]
                if name in f.operands
            ]
            result: Any = computation(t, f, *given)
            t.write(f.operands[names[0]], result)

        instruction(form, **choices)(meaning)
        return computation

    return register


def match(item: Instruction, index: int) -> tuple[Form, Meaning]:
    """The form of an instruction. Raises CannotTranslate where there is none."""
    root = re.split(r"[.:]", item.opcode, maxsplit=1)[0]
    for entry in TABLE.get(root, ()):
        found = entry.pattern.fullmatch(item.opcode)
        if found and entry.required <= len(item.operands) <= len(entry.operands):
            modifiers = {name: text for name, text in found.groupdict().items() if text}
            operands = dict(zip(entry.operands, item.operands, strict=False))
            return Form(item, index, modifiers, operands), entry.meaning
    raise CannotTranslate(f"this device does not know the PTX instruction {item.opcode!r}")
