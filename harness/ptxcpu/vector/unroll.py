"""Unrolls short inner loops, so that sums stay in vector registers from one step to the next.

A thread's sums need more vector registers than a processor has. In a loop, each sum is loaded and
stored in every step; in one long basic block LLVM computes all steps of a sum in a register. Only
loops of one basic block of loads and arithmetic are unrolled, in which a register counts from one
constant to another.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.ptxcpu.analysis.inline import InlinedKernel, renamed
from harness.ptxcpu.ptx.effects import read_by, written_by
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


def unrolled(kernel: InlinedKernel, computed: Collection[str]) -> InlinedKernel:
    """Return the same kernel with its short inner loops unrolled.

    computed: the instructions whose results depend only on their operands.
    """
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
            loop = _loop_behind(kernel.body, at, body, computed)
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
    strides: the distance by which an address advances in each step, by register.
    """

    body: Sequence[Instruction]
    counted: Mapping[int, tuple[str, int]]
    condition: int
    steps: int
    strides: Mapping[str, int]

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
            for name in own & self.strides.keys():
                if registers[name].bits == 64:
                    base = names[name] if step == 0 else bases[name][0]
                    bases[name] = base, self.strides[name] * (step + 1)
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


def _loop_behind(body: Body, first: int, before: Body, computed: Collection[str]) -> _Loop | None:
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
        if item.guard is not None or (root not in computed and root != "ld"):
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
    once = {name for name, times in written.items() if times == 1}
    strides = _Strides(items, counted, before, steps, once).found
    return _Loop(items, counted, condition, steps, strides)


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


class _Strides:
    """Finds the distance by which each step of a loop advances the addresses in its registers.

    found: the result by register. A 32-bit register is included only if its values are known, since
    the sum of two others may overflow before it is extended to an address.
    """

    def __init__(
        self,
        items: Sequence[Instruction],
        counted: Mapping[int, tuple[str, int]],
        before: Body,
        steps: int,
        once: set[str],
    ) -> None:
        self.steps = steps
        self.known: dict[str, tuple[int | None, int] | None] = {}
        """The value in the first step and the stride of each register that the loop writes."""
        self.found: dict[str, int] = {}
        for item in items:
            self.known.update(dict.fromkeys(written_by(item)))
        for name, by in counted.values():
            self.known[name] = _constant(name, before), by
        for at, item in enumerate(items):
            if at in counted:
                name, by = counted[at]
                start, _ = self.known[name] or (None, 0)
                self.known[name] = None if start is None else start + by, by
                continue
            result = self.result(item)
            for name in written_by(item):
                if name in once and result is not None:
                    self.known[name] = result
                    self.found[name] = result[1]

    def of(self, operand: Operand) -> tuple[int | None, int] | None:
        if isinstance(operand, Integer):
            return operand.value, 0
        if isinstance(operand, Register):
            return self.known.get(operand.name, (None, 0))
        return (None, 0) if isinstance(operand, Symbol) else None

    def result(self, item: Instruction) -> tuple[int | None, int] | None:
        root, *modifiers = item.opcode.split(".")
        sources = [self.of(x) for x in item.operands[1:]]
        if root == "ld" or any(source is None for source in sources):
            return None
        values = [source for source in sources if source is not None]
        if not any(stride for _, stride in values):
            return None, 0
        if modifiers[-1][1:] not in ("32", "64") or (root == "cvt" and modifiers[0][1:] != "64"):
            return None
        is_narrow = modifiers[-1].endswith("32")
        if is_narrow and not all(self.is_small(value) for value in values):
            return None
        result = None if "hi" in modifiers else _combined(root, values)
        if result is None or (is_narrow and "wide" not in modifiers and not self.is_small(result)):
            return None
        return result

    def is_small(self, value: tuple[int | None, int]) -> bool:
        """Return whether a value is known and never negative in 32 bits."""
        start, stride = value
        if start is None:
            return False
        return all(0 <= x < 1 << 31 for x in (start, start + self.steps * stride))


def _combined(root: str, values: Sequence[tuple[int | None, int]]) -> tuple[int | None, int] | None:
    """The first value and the stride of a result; None if it has no stride."""
    starts, strides = zip(*values, strict=True)
    match root, len(values):
        case (("mov" | "cvt"), 1):
            return values[0]
        case (("add" | "sub"), 2):
            sign = 1 if root == "add" else -1
            start = None if None in starts else starts[0] + sign * starts[1]
            return start, strides[0] + sign * strides[1]
        case (("mul" | "shl"), 2) if starts[1] is not None and not strides[1]:
            factor = starts[1] if root == "mul" else 1 << starts[1]
            return None if starts[0] is None else starts[0] * factor, strides[0] * factor
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
