"""Unrolls short inner loops, so that sums stay in vector registers from one step to the next.

A thread's sums need more vector registers than a processor has. In a loop, each sum is loaded and
stored in every step; in one long basic block LLVM computes all steps of a sum in a register. Only
loops of one basic block of loads and arithmetic are unrolled, in which a register counts from one
constant to another.
"""

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.ptxcpu.analysis.inline import InlinedKernel, renamed
from harness.ptxcpu.ptx.effects import COMPUTED, read_by, written_by
from harness.ptxcpu.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Label,
    Operand,
    Register,
    Symbol,
    symbols,
)
from harness.ptxcpu.ptx.types import Type

MAX_STEPS = 64

MAX_INSTRUCTIONS = 1500
"""The most instructions of all steps of a loop. A longer basic block would take seconds to
compile."""

MIN_PRODUCTS = 8
"""The fewest sums of a step. Fewer sums stay in registers anyway."""

_COMPARISONS = {
    **{"ne": operator.ne, "lt": operator.lt, "le": operator.le},
    **{"gt": operator.gt, "ge": operator.ge},
}

Body = Sequence[Instruction | Label]


def unrolled(kernel: InlinedKernel) -> InlinedKernel:
    """Return the same kernel with its short inner loops unrolled."""
    targets = Counter(name for names in kernel.branch_targets.values() for name in names)
    for item in kernel.body:
        if isinstance(item, Instruction):
            targets.update(name for operand in item.operands for name in symbols(operand))
    registers = dict(kernel.registers)
    body: list[Instruction | Label] = []
    at = 0
    while at < len(kernel.body):
        item = kernel.body[at]
        at += 1
        if isinstance(item, Label) and targets[item.name] == 1:
            loop = _loop_behind(kernel.body, at, body)
            if loop:
                body += loop.unrolled(registers, f".{at}")
                at += len(loop.body) + 1
                continue
        body.append(item)
    return replace(kernel, body=body, registers=registers)


@dataclass(frozen=True)
class _Loop:
    """A loop of one basic block: the instructions between its label and the branch back.

    counted: the increment of a register in each step, by the index of the addition.
    condition: the index of the comparison on which the branch depends.
    """

    body: Sequence[Instruction]
    counted: Mapping[int, tuple[str, int]]
    condition: int
    steps: int

    def unrolled(self, registers: dict[str, Type], tag: str) -> list[Instruction]:
        """Return the instructions of all steps.

        Values that only one step reads are in registers of that step. A register that is counted up
        keeps its first value until the end. Addresses are those of the first step plus a distance,
        so that one check suffices for all steps.
        """
        found: list[Instruction] = []
        names: dict[str, str] = {}
        bases: dict[str, tuple[str, int]] = {}
        distances = {name: 0 for name, _ in self.counted.values()}
        own = _written_first(self.body) - distances.keys()

        def rename(name: str, step: int) -> None:
            names[name] = f"{name}{tag}.{step}"
            registers[names[name]] = registers[name]

        for step in range(self.steps):
            for name in own:
                rename(name, step)
                if step == self.steps - 1:
                    names[name] = name
            for at, item in enumerate(self.body):
                if at in self.counted:
                    name, by = self.counted[at]
                    distances[name] += by
                    rename(name, step)
                    operands = Register(names[name]), Register(name), Integer(distances[name])
                    found.append(replace(item, operands=operands))
                elif at != self.condition:
                    bases |= {x: (x, d) for x, d in distances.items() if registers[x].bits == 64}
                    moved = tuple(_moved(x, names, bases) for x in item.operands)
                    found.append(replace(item, operands=moved))
        for at, (name, _) in self.counted.items():
            operands = Register(name), Register(name), Integer(distances[name])
            found.append(replace(self.body[at], operands=operands))
        return [*found, self.body[self.condition]]


def _moved(
    operand: Operand, names: dict[str, str], bases: Mapping[str, tuple[str, int]]
) -> Operand:
    """Return an operand for a later step.

    bases: another register and a distance from it, for registers with 64-bit addresses. (A 32-bit
    one might overflow.)
    """
    match operand:
        case Address(Register(name), offset) if name in bases:
            base, distance = bases[name]
            return Address(Register(base), offset + distance)
    return renamed(operand, names)


def _loop_behind(body: Body, first: int, before: Body) -> _Loop | None:
    """Return the loop that begins at this index after its label, if it can be unrolled.

    before: the instructions before it.
    """
    items: list[Instruction] = []
    for item in body[first:]:
        if isinstance(item, Label):
            return None
        root = item.opcode.split(".")[0]
        if root == "bra":
            label = body[first - 1]
            goes_back = isinstance(label, Label) and item.operands[0] == Symbol(label.name)
            if not goes_back or not isinstance(item.guard, Register):
                return None
            return _loop(items, item.guard, before)
        if item.guard is not None or (root not in COMPUTED and root != "ld"):
            return None
        items.append(item)
    return None


def _loop(items: Sequence[Instruction], guard: Register, before: Body) -> _Loop | None:
    written = Counter(name for item in items for name in written_by(item))
    products = sum(item.opcode.startswith("fma") for item in items)
    is_read = any(guard.name in read_by(item) for item in items)
    if products < MIN_PRODUCTS or written[guard.name] != 1 or is_read:
        return None
    counted = {}
    for at, item in enumerate(items):
        match item.operands:
            case (Register(to), Register(from_), Integer(by)):
                if item.opcode in _ADDITIONS and to == from_ and written[to] == 1:
                    counted[at] = to, by
    (condition,) = (at for at, item in enumerate(items) if guard.name in written_by(item))
    steps = _steps(items[condition], condition, counted, before)
    if steps is None or steps * len(items) > MAX_INSTRUCTIONS:
        return None
    return _Loop(items, counted, condition, steps)


_ADDITIONS = {f"add.{kind}{width}" for kind in "su" for width in (32, 64)}


def _steps(
    comparison: Instruction, at: int, counted: Mapping[int, tuple[str, int]], before: Body
) -> int | None:
    """Return the number of steps of a loop that ends by this comparison of a counted register."""
    root, *modifiers = comparison.opcode.split(".")
    match comparison.operands:
        case (Register(), Register(name), Integer(bound)):
            by = next((by for i, (each, by) in counted.items() if each == name and i < at), None)
        case _:
            return None
    value = _constant(name, before)
    goes_on = _COMPARISONS.get(modifiers[0]) if root == "setp" and len(modifiers) == 2 else None
    if by is None or value is None or goes_on is None:
        return None
    smallest = -(1 << 31) if modifiers[1].startswith("s") else 0
    for steps in range(1, MAX_STEPS + 1):
        value += by
        if not smallest <= value < 1 << 31:
            return None
        if not goes_on(value, bound):
            return steps
    return None


def _constant(name: str, before: Body) -> int | None:
    """Return the constant in a register after these instructions, if the last of their basic blocks
    determines it."""
    for item in reversed(before):
        if isinstance(item, Label):
            return None
        if name in written_by(item):
            is_move = item.opcode.startswith("mov.") and item.guard is None
            source = item.operands[1]
            return source.value if is_move and isinstance(source, Integer) else None
    return None


def _written_first(items: Sequence[Instruction]) -> set[str]:
    """Return the registers that are written before they are read."""
    found: set[str] = set()
    read: set[str] = set()
    for item in items:
        read |= read_by(item) - found
        found |= set(written_by(item)) - read
    return found
