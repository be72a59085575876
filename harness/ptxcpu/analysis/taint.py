"""Finds branches of a kernel that depend on values which differ between machines or launches.

A register is tainted by the clocks, by the number of its multiprocessor or of the grid, and by the
bits of a pointer. Taint flows through every instruction from sources to results, and through each
state space as a whole. An instruction with a tainted guard counts as a branch itself. Adding to a
pointer, comparing it with another one, and testing the low bits for its alignment cause no taint:
correct kernels do that.
"""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.ptx.effects import registers_of, written_by
from harness.ptxcpu.ptx.syntax import (
    Address,
    Group,
    Instruction,
    Integer,
    Label,
    Not,
    Operand,
    Pair,
    Program,
    Register,
    Special,
    Symbol,
    Vector,
)

POINTER = "a pointer"
BITS = "the bits of a pointer"
LARGEST_ALIGNMENT = 256
"""The alignment of every allocation in bytes: testing the bits below causes no taint."""

_TIME = "%globaltimer"
_MACHINE = {
    **dict.fromkeys(("clock", "clock_hi", "clock64"), "%clock"),
    **dict.fromkeys(("globaltimer", "globaltimer_lo", "globaltimer_hi"), _TIME),
    **{name: f"%{name}" for name in ("smid", "nsmid", "gridid")},
}
_KEEP_POINTERS = {
    *("mov", "add", "sub", "mad", "selp", "cvt", "cvta", "min", "max"),
    *("and", "or", "xor"),  # the low bits of what comes out are those of pointers
}
_SPACES = ("global", "shared", "local", "param", "const")

_MEMORY = "memory"

Taint = frozenset[str]
NONE: Taint = frozenset()


@dataclass(frozen=True)
class Dependence:
    """A source on which branches or selections of a kernel depend.

    line: where the kernel reads it; of a pointer's bits, the first branch.
    branches: the lines with such branches or selections.
    """

    source: str
    line: int | None
    branches: int


def machine_dependent(program: Program, entry: str) -> tuple[Dependence, ...]:
    """Return the sources that differ between machines and on which the kernel's branches depend."""
    function = program.functions[entry]
    body: Sequence[Instruction | Label] = function.body
    if any(isinstance(x, Instruction) and x.opcode.split(".")[0] == "call" for x in body):
        body = inline(program, entry, 0).body
    pointers = {each.name for each in function.parameters if each.size == 8}
    variables = {each.name for each in program.variables.values() if each.space == "global"}
    flow = _Flow(body, pointers, variables)
    flow.run()
    read: dict[str, int] = {}
    branches: dict[str, set[int]] = defaultdict(set)
    for item in body:
        if isinstance(item, Label):
            continue
        for operand in item.operands:
            if isinstance(operand, Special) and operand.name in _MACHINE:
                read.setdefault(_MACHINE[operand.name], item.line)
        for source in flow.decides(item):
            if not (item.in_header and source == _TIME):  # a header's wait with a time limit
                branches[source].add(item.line)
    return tuple(
        Dependence(source, max(read.get(source, min(lines)), 0) or None, len(lines))
        for source, lines in sorted(branches.items())
    )


class _Flow:
    """The taint of every register and state space, which never shrinks."""

    def __init__(
        self, body: Sequence[Instruction | Label], pointers: set[str], variables: set[str]
    ) -> None:
        self.body = [x for x in body if isinstance(x, Instruction) and x.operands]
        self.pointers, self.variables = pointers, variables
        self.held: dict[str, Taint] = {}
        self.spaces: dict[str, Taint] = {}
        self.readers: dict[str, list[int]] = defaultdict(list)
        """The instructions that read a register, by its name, or memory."""
        for index, item in enumerate(self.body):
            for name in _read_by(item):
                self.readers[name].append(index)
        self.planned: set[int] = set()

    def run(self) -> None:
        """Follow every instruction, and again while the taint of what it reads grows."""
        following: Iterable[int] = range(len(self.body))
        while following:
            self.planned = set()
            for index in following:
                self._follow(self.body[index])
            following = sorted(self.planned)

    def decides(self, item: Instruction) -> Taint:
        """Return the sources on which the guard, selection or jump table of an instruction
        depends."""
        root = item.opcode.split(".")[0]
        taint = self.of(item.guard) if item.guard is not None else NONE
        if root in ("selp", "slct") and len(item.operands) == 4:
            taint |= self.of(item.operands[3])
        if root == "brx":
            taint |= self.of(item.operands[0])
        return taint - {POINTER}

    def of(self, operand: Operand) -> Taint:
        """Return the taint of a value that is read."""
        if isinstance(operand, Register):
            return self.held.get(operand.name, NONE)
        if isinstance(operand, Not):
            return self.of(operand.register)
        if isinstance(operand, Special):
            return frozenset({_MACHINE[operand.name]}) if operand.name in _MACHINE else NONE
        if isinstance(operand, Symbol):
            return frozenset({POINTER}) if operand.name in self.variables else NONE
        if isinstance(operand, Vector | Group):
            return NONE.union(*(self.of(each) for each in operand.items))
        if isinstance(operand, Pair):
            return self.of(operand.first) | self.of(operand.second)
        return NONE

    def _follow(self, item: Instruction) -> None:
        root, space = _parts(item.opcode)
        if root in ("st", "red", "atom"):
            stored = NONE.union(*(self.of(each) for each in item.operands[1:]))
            self._store(space, stored - {POINTER, BITS})
        names, sources = written_by(item), item.operands[1:]
        if not names:
            return
        is_load = root in ("ld", "ldu", "atom")
        taint = self._loaded(space, sources[0]) if is_load else self._computed(root, sources)
        for name in names:
            before = self.held.get(name, NONE)
            if not taint <= before:
                self.held[name] = before | taint
                self.planned.update(self.readers[name])

    def _store(self, space: str, taint: Taint) -> None:
        before = self.spaces.get(space, NONE)
        if not taint <= before:
            self.spaces[space] = before | taint
            self.planned.update(self.readers[_MEMORY])

    def _loaded(self, space: str, address: Operand) -> Taint:
        if space == "param":
            base = address.base if isinstance(address, Address) else None
            is_buffer = isinstance(base, Symbol) and base.name in self.pointers
            return frozenset({POINTER}) if is_buffer else NONE
        if space == "generic":
            return NONE.union(*self.spaces.values())
        return self.spaces.get(space, NONE) | self.spaces.get("generic", NONE)

    def _computed(self, root: str, sources: Sequence[Operand]) -> Taint:
        taints = [self.of(each) for each in sources]
        taint = NONE.union(*taints)
        if POINTER not in taint:
            return taint
        if root in {"setp", "set"}:
            others = zip(sources, taints, strict=True)
            pure = all(POINTER in known or _is_zero(each) for each, known in others)
            return (taint - {POINTER}) | (NONE if pure else frozenset({BITS}))
        if root == "and" and any(_is_low_mask(each) for each in sources):
            return taint - {POINTER, BITS}
        if root == "sub" and all(POINTER in known for known in taints):
            return taint - {POINTER}
        if root in _KEEP_POINTERS:
            return taint
        return (taint - {POINTER}) | {BITS}


@functools.cache
def _parts(opcode: str) -> tuple[str, str]:
    """Return the root of an opcode and its state space."""
    root, *modifiers = (word.split("::")[0] for word in opcode.split("."))
    return root, next((word for word in modifiers if word in _SPACES), "generic")


def _read_by(item: Instruction) -> Iterator[str]:
    """Yield the registers whose taint an instruction may pass on, and a name for memory."""
    if _parts(item.opcode)[0] in ("ld", "ldu", "atom"):
        yield _MEMORY
    yield from registers_of(item)


def _is_zero(operand: Operand) -> bool:
    return isinstance(operand, Integer) and operand.value == 0


def _is_low_mask(operand: Operand) -> bool:
    return isinstance(operand, Integer) and 0 <= operand.value < LARGEST_ALIGNMENT
