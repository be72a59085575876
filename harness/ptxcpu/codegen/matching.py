"""Matches PTX opcodes with the forms in which the PTX manual writes them.

`add{.rnd}.f32 d, a, b` is the opcode and the names of its operands. `.name` stands for itself,
unless a choice of words is given for it; braces make it optional. An operand may name its own type
(`c:pred`); a trailing `?` makes it optional.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.ptxcpu.ptx.syntax import Instruction, Operand
from harness.ptxcpu.ptx.types import TYPES, Type

Choices = dict[str, Sequence[str]]


@dataclass(frozen=True)
class MatchedInstruction:
    """An instruction matched with one form: its modifiers and operands by name."""

    instruction: Instruction
    index: int
    modifiers: dict[str, str]
    operands: dict[str, Operand]

    def __getitem__(self, name: str) -> str:
        """Return the choice made for `.name`, "" where an optional one is absent."""
        return self.modifiers.get(name, "")

    @property
    def type(self) -> Type:
        return TYPES[self.modifiers["type"]]


@dataclass(frozen=True)
class Form:
    """One form: its opcode as a pattern, and its operands."""

    opcode: str
    choices: Choices
    root: str
    pattern: re.Pattern[str]
    operands: tuple[str, ...]
    required: int
    modifiers: tuple[tuple[tuple[str, ...], bool], ...]
    """The words of each modifier, and whether it is optional."""

    @classmethod
    def parse(cls, text: str, choices: Choices) -> Form:
        opcode, _, rest = text.partition(" ")
        names = [name.strip() for name in rest.split(",") if name.strip()]
        required = sum(not name.endswith("?") for name in names)
        root, pattern = _compile(opcode, choices)
        plain = tuple(name.rstrip("?") for name in names)
        modifiers = tuple(
            (tuple(choices.get(name := found[1] or found[2], (name,))), found[1] is not None)
            for found in _MODIFIER.finditer(opcode)
        )
        return cls(opcode, choices, root, pattern, plain, required, modifiers)

    def match(self, opcode: str, operands: int) -> dict[str, str] | None:
        """Return the modifiers of an opcode with so many operands, or None if it has another
        form."""
        found = self.pattern.fullmatch(opcode)
        if not found or not self.required <= operands <= len(self.operands):
            return None
        return {name: text for name, text in found.groupdict().items() if text}

    def in_order(self, opcode: str, operands: int) -> str | None:
        """Return the opcode with its modifiers in this form's order; None if it has another form.

        The types among its modifiers must already be in order.
        """
        given = opcode.split(".")[1:]
        left, found = list(given), []
        for words, is_optional in self.modifiers:
            word = next((word for word in left if word in words), None)
            if word is not None:
                left.remove(word)
                found.append(word)
            elif not is_optional:
                return None
        ordered = ".".join([self.root, *found])
        types = [[word for word in words if word in TYPES] for words in (given, found)]
        is_this = not left and types[0] == types[1] and self.match(ordered, operands) is not None
        return ordered if is_this else None


_MODIFIER = re.compile(r"\{\.([\w:]+)\}|\.([\w:]+)")


def _compile(opcode: str, choices: Choices) -> tuple[str, re.Pattern[str]]:
    """`add{.rnd}.type` -> a regular expression with a group for each choice."""

    def modifier(match: re.Match[str]) -> str:
        optional, name = match[1] is not None, match[1] or match[2]
        words = "|".join(map(re.escape, choices.get(name, (name,))))
        is_asked_for = name in choices or optional
        group = f"(?P<{name}>{words})" if is_asked_for and name.isidentifier() else f"(?:{words})"
        return rf"(?:\.{group})" + ("?" if optional else "")

    root, rest = re.fullmatch(r"(\w+)(.*)", opcode).groups()  # type: ignore[union-attr]
    body = _MODIFIER.sub(modifier, rest)
    return root, re.compile(re.escape(root) + body)
