"""The syntax tree of a PTX program: functions, variables, and instructions with typed operands."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from harness.ptxcpu.ptx.types import Type


@dataclass(frozen=True)
class Register:
    name: str


@dataclass(frozen=True)
class Not:
    """A predicate register that is read inverted: `!%p`."""

    register: Register


@dataclass(frozen=True)
class Special:
    """A special register, such as `%tid.x`."""

    name: str


@dataclass(frozen=True)
class Integer:
    value: int


@dataclass(frozen=True)
class Float:
    """`0f3F800000` or `0d3FF0000000000000`, kept as bits."""

    bits: int
    width: int

    @property
    def value(self) -> float:
        code = ("<I", "<f") if self.width == 32 else ("<Q", "<d")
        return float(struct.unpack(code[1], struct.pack(code[0], self.bits))[0])


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, or the name of a label or function."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """`[base+offset]`."""

    base: Register | Symbol | Integer
    offset: int


@dataclass(frozen=True)
class Coordinates:
    """Coordinates in a tensor or a texture: `[base, {x, y}]`."""

    base: Operand
    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Vector:
    """`{a, b, c, d}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """`d|p`: two results."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Sink:
    """`_`: a result that is not used."""


@dataclass(frozen=True)
class Group:
    """`(a, b)`: the arguments or results of a call."""

    items: tuple[Operand, ...]


Operand = (
    Register
    | Not
    | Special
    | Integer
    | Float
    | Symbol
    | Address
    | Coordinates
    | Vector
    | Pair
    | Sink
    | Group
)


def elements(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of a vector, or one scalar."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def symbols(operand: Operand) -> Iterator[str]:
    """Return the names of all symbols in an operand."""
    match operand:
        case Symbol():
            yield operand.name
        case Address():
            yield from symbols(operand.base)
        case Coordinates():
            yield from symbols(operand.base)
            yield from chain.from_iterable(map(symbols, operand.items))
        case Vector() | Group():
            yield from chain.from_iterable(map(symbols, operand.items))
        case Pair():
            yield from symbols(operand.first)
            yield from symbols(operand.second)


@dataclass(frozen=True)
class Instruction:
    """An instruction.

    line: the line of the user's source, or of the call if the code is a header's; 0 if unknown.
    caller: the line of the call if the compiler inlined the user's function; otherwise 0.
    in_header: whether a header has the code.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | Not | None
    line: int
    text: str
    caller: int = 0
    in_header: bool = False


@dataclass(frozen=True)
class Label:
    name: str


class Pointee(NamedTuple):
    """A position in a variable's initial bytes that holds the address of another symbol.

    at: bytes from the variable's beginning.
    distance: bytes that are added to the address.
    """

    at: int
    name: str
    distance: int


@dataclass(frozen=True)
class Variable:
    """A variable or parameter.

    size: bytes; 0 for the extern array whose size the launch gives.
    is_array: whether it was declared with brackets.
    image: the initial bytes, if any are given.
    pointees: the addresses in the image, where the image itself has zeros.
    """

    space: str
    align: int
    type: Type
    name: str
    size: int
    is_array: bool = False
    image: bytes = b""
    pointees: tuple[Pointee, ...] = ()
    extern: bool = False


@dataclass
class Function:
    """A kernel (`.entry`) or device function. Its scopes are resolved, so every name is unique.

    directives: directives such as `.maxntid 256, 1, 1`, as numbers by name.
    prototypes: names of `.callprototype` and `.calltargets`, for calls through a pointer.
    """

    name: str
    is_entry: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    registers: dict[str, Type] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: set[str] = field(default_factory=set)
    body: list[Instruction | Label] = field(default_factory=list)

    @property
    def cluster(self) -> tuple[int, int, int]:
        """The blocks of a cluster along x, y and z, from `__cluster_dims__`."""
        x, y, z = (*self.directives.get("reqnctapercluster", ()), 1, 1, 1)[:3]
        return x, y, z


@dataclass
class Program:
    """A PTX module.

    statements: the statements of the canonical text, which has only what was parsed.
    names: all names that the program declares.
    """

    version: str = ""
    target: tuple[str, ...] = ()
    functions: dict[str, Function] = field(default_factory=dict)
    declared: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def with_entry(self, name: str) -> Program:
        """Return the program of one kernel, made visible so that it can be launched by its name.

        Kernels and tables of addresses that it does not use are left out; the tables come from
        pointers in host code.
        """
        module = self.variables.keys() | self.functions.keys() | self.declared.keys()
        subjects = [
            s.function or next((token for token in s.tokens if token in module), "")
            for s in self.statements
        ]
        mentioned: dict[str, set[str]] = {}
        for subject, statement in zip(subjects, self.statements, strict=True):
            mentioned.setdefault(subject, set()).update(module.intersection(statement.tokens))
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if each not in reached:
                reached.add(each)
                waiting += mentioned.get(each, ())
        gone = {f.name for f in self.functions.values() if f.is_entry}
        gone |= {v.name for v in self.variables.values() if v.pointees}
        gone -= reached
        return replace(
            self,
            functions={f.name: f for f in self.functions.values() if f.name not in gone},
            variables={v.name: v for v in self.variables.values() if v.name not in gone},
            statements=[
                replace(s, tokens=(".visible", *s.tokens), text=f".visible {s.text}")
                if subject == name and s.tokens[0] == ".entry"
                else s
                for subject, s in zip(subjects, self.statements, strict=True)
                if subject not in gone
            ],
        )

    def with_visible_variables(self) -> Program:
        """Return the program with all variables in global memory visible outside, so that a GPU's
        driver can find them by their names."""
        return replace(
            self,
            statements=[
                replace(s, text=f".visible {s.text}")
                if not s.function and s.tokens[0] == ".global"
                else s
                for s in self.statements
            ],
        )

    def line_of(self, line: int) -> int | None:
        """Return the line of the user's source for a line of the canonical text."""
        if not 0 < line <= len(self.statements):
            return None
        return self.statements[line - 1].line or None


@dataclass(frozen=True)
class Statement:
    """A statement: its tokens, and their printed text.

    function: the function that it belongs to, if any.
    line: the line of the user's source; 0 if unknown.
    is_debugging: whether it is debugging information (`.loc`, `.file`, `.section`).
    """

    tokens: tuple[str, ...]
    text: str
    function: str = ""
    line: int = 0
    is_debugging: bool = False
