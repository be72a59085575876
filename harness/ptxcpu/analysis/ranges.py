"""Value ranges of registers, from what is known of special registers and parameters.

`decided` removes the branches that every thread of a block of known size takes or leaves. A loop
such as `for (i = threadIdx.x; i < 1024; i += 256)` has the same number of steps in every thread,
but the compiler computes it from the position of the thread. Such a branch would seem to diverge,
and its paths would run under masks.

`LaunchDecisions` finds the comparisons that depend only on the sizes and the grid of a launch.

Sources: W. Harrison, "Compiler Analysis of the Value Ranges for Variables", IEEE Transactions on
Software Engineering 3 (3), 1977; M. Wegman and F. K. Zadeck, "Constant Propagation with Conditional
Branches", ACM TOPLAS 13 (2), 1991 (paths that are never taken contribute no values).
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from harness.ptxcpu.analysis.cfg import ControlFlowGraph
from harness.ptxcpu.analysis.inline import InlinedKernel, renamed
from harness.ptxcpu.arguments import ParameterKind
from harness.ptxcpu.grid import Size
from harness.ptxcpu.ptx.effects import read_by, written_by
from harness.ptxcpu.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Label,
    Not,
    Operand,
    Register,
    Special,
    Symbol,
)
from harness.ptxcpu.ptx.types import TYPES, Type

Range: TypeAlias = tuple[int, int]
"""The least and the greatest value of an integer, taken as signed. A predicate is 0 or 1."""

_MAX_VISITS = 4
"""After so many visits of a basic block, ranges at its beginning do not grow any more."""

_ORDERS: dict[str, Callable[[int, int], bool]] = {
    **{"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge},
    **{"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge},
}
_COMPARISONS = _ORDERS | {"eq": operator.eq, "ne": operator.ne}

_ALIGNED = 1 << 40
"""The value of a pointer: buffers are far from each other, and all are aligned."""


@dataclass
class State:
    """This records what is known of the registers at one place of the program.

    ranges: by register, or by the text of an address in a parameter; others may have any value.
    parts: the register and the mask of which each of these is the bitwise and; a copy has the mask
        -1.
    related: all registers that parts of this or another place contain.
    """

    ranges: dict[str, Range] = field(default_factory=dict)
    parts: dict[str, tuple[str, int]] = field(default_factory=dict)
    related: set[str] = field(default_factory=set)

    def copy(self) -> State:
        return State({**self.ranges}, {**self.parts}, self.related)

    def forget(self, name: str) -> None:
        """Forget what is known of a register that is written."""
        self.ranges.pop(name, None)
        if name in self.related:
            self.parts = {to: part for to, part in self.parts.items() if name not in (to, part[0])}

    def joined(self, other: State, *, may_grow: bool) -> State:
        """Return what is known if one or the other is true.

        may_grow: otherwise ranges that differ are forgotten.
        """
        ranges = {}
        for name, one in self.ranges.items():
            another = other.ranges.get(name)
            if another == one:
                ranges[name] = one
            elif another and may_grow:
                ranges[name] = _hull(one, another)
        parts = {to: part for to, part in self.parts.items() if other.parts.get(to) == part}
        return State(ranges, parts, self.related)

    def part(self, operand: Operand) -> tuple[str, int] | None:
        """Return the register and the mask of which an operand is the bitwise and."""
        if not isinstance(operand, Register):
            return None
        return self.parts.get(operand.name, (operand.name, -1))


def decided(kernel: InlinedKernel, block: Size) -> InlinedKernel:
    """Return the same kernel, for blocks of this size, without the branches whose condition is the
    same in all threads whenever they reach it, and without the code that no thread reaches."""
    specials = {f"tid.{axis}": (0, size - 1) for axis, size in zip("xyz", block, strict=True)}
    specials |= _sizes("ntid", block) | {"laneid": (0, 31)}
    ranges = _Ranges(kernel, {*specials}, set())
    ranges.find(specials, {})
    body = (
        item if isinstance(item, Label) else ranges.simplified(item, state)
        for _, item, state in ranges.reached()
    )
    return replace(kernel, body=[item for item in body if item is not None])


class LaunchDecisions:
    """Finds the comparisons of one kernel that depend on a launch only."""

    def __init__(self, kernel: InlinedKernel, block: Size) -> None:
        self._kinds, self._block = kernel.kinds, block
        self._parameters = [str(Address(Symbol(name), 0)) for name in kernel.parameters.variables]
        specials = _sizes("ntid", block) | _sizes("nctaid", block)
        self._ranges = _Ranges(kernel, {*specials}, {*self._parameters})

    def of(self, grid: Size, numbers: Sequence[int]) -> dict[int, bool]:
        """Return the comparisons of a launch by index in the body, with their results.

        numbers: the arguments that are no buffers. Instructions that the launch cannot reach are
        left out.
        """
        ranges, left, parameters = self._ranges, iter(numbers), {}
        for at, (name, kind) in enumerate(zip(self._parameters, self._kinds, strict=True), 1):
            value = next(left) if kind is ParameterKind.NUMBER else _ALIGNED * at
            parameters[name] = value, value
        ranges.find(_sizes("ntid", self._block) | _sizes("nctaid", grid), parameters)
        found = (
            (index, ranges.comparison(item, state))
            for index, item, state in ranges.reached()
            if isinstance(item, Instruction) and item.opcode.startswith("setp.")
        )
        return {index: result for index, result in found if result is not None}


def _sizes(name: str, sizes: Size) -> dict[str, Range]:
    return {f"{name}.{axis}": (size, size) for axis, size in zip("xyz", sizes, strict=True)}


def _written(item: Instruction) -> tuple[str, ...]:
    """Return the registers that an instruction writes, or the parameter."""
    if item.opcode.startswith("st.param"):
        return (str(item.operands[0]),)
    return written_by(item)


def _known(kernel: InlinedKernel, specials: set[str], parameters: set[str]) -> set[str]:
    """Return the registers and parameters that some instruction computes from nothing but constants
    and these special registers and parameters."""
    found = {*parameters}

    def is_known(operand: Operand) -> bool:
        match operand:
            case Special(name):
                return name in specials
            case Address():
                return str(operand) in found
            case Register(name) | Not(Register(name)):
                return name in found
        return isinstance(operand, Integer)

    computed = [
        (names, item)
        for item in kernel.body
        if isinstance(item, Instruction)
        and (names := _written(item))
        and (item.opcode.split(".")[0] in _COMPUTED or ".param" in item.opcode)
        and not any(name in kernel.registers and kernel.registers[name].is_float for name in names)
    ]
    size = -1
    while len(found) != size:
        size = len(found)
        for names, item in computed:
            enough = any if item.opcode.endswith(".pred") else all
            if enough(map(is_known, item.operands[1:])):
                found.update(names)
    return found


class _Ranges:
    """The ranges of registers at the beginning of each basic block that a thread may reach.

    entries: these ranges, by the number of the block.
    """

    def __init__(self, kernel: InlinedKernel, specials: set[str], parameters: set[str]) -> None:
        """specials, parameters: the names of those with known values."""
        self.graph = ControlFlowGraph(kernel)
        self.entries: dict[int, State] = {}
        self._registers = kernel.registers
        self._specials: Mapping[str, Range] = {}
        self._known = _known(kernel, specials, parameters)
        self._steps = [
            [item for _, item in self.graph.instructions(number) if self._is_followed(item)]
            for number in range(len(self.graph.blocks))
        ]

    def find(self, specials: Mapping[str, Range], parameters: Mapping[str, Range]) -> None:
        """Find the ranges for these values of special registers and parameters."""
        self.entries, self._specials = {0: State({**parameters})}, specials
        visits: Counter[int] = Counter()
        waiting = {0}
        while waiting:
            number = min(waiting)
            waiting.remove(number)
            for target, state in self._leave(number, self.entries[number].copy()):
                if target < len(self.graph.blocks) and self._enter(target, state, visits[target]):
                    visits[target] += 1
                    waiting.add(target)

    def reached(self) -> Iterator[tuple[int, Instruction | Label, State]]:
        """Return all items that a thread may reach, with their indices and the states before
        them."""
        for number, state in sorted(self.entries.items()):
            block = self.graph.blocks[number]
            for index in range(block.first, block.end):
                item = self.graph.kernel.body[index]
                yield index, item, state
                if isinstance(item, Instruction) and self._is_followed(item):
                    self._execute(item, state)

    def _leave(self, number: int, state: State) -> list[tuple[int, State]]:
        """Execute a basic block. Return the blocks that may follow, with their states."""
        block = self.graph.blocks[number]
        for item in self._steps[number]:
            self._execute(item, state)
        last = self.graph.kernel.body[block.end - 1]
        if isinstance(last, Label) or not last.guard or len(block.successors) != 2:
            return [(target, state) for target in block.successors]
        condition = self._condition(last, state)
        ways = zip(block.successors, (True, False), strict=True)
        return [(target, state) for target, taken in ways if condition in (None, taken)]

    def _enter(self, number: int, state: State, visits: int) -> bool:
        """Join a state with that at the beginning of a block. Return whether this changed it."""
        before = self.entries.get(number)
        if before is None:
            self.entries[number] = state.copy()
            return True
        self.entries[number] = before.joined(state, may_grow=visits < _MAX_VISITS)
        return self.entries[number] != before

    def _is_followed(self, item: Instruction) -> bool:
        """Return whether an instruction writes a register of which anything may be known."""
        return not self._known.isdisjoint(_written(item))

    def _condition(self, item: Instruction, state: State) -> bool | None:
        """Return whether an instruction is executed, as its guard says; None if that may vary."""
        if item.guard is None:
            return True
        least, greatest = self._of(item.guard, state, 1) or (0, 1)
        return bool(least) if least == greatest else None

    def simplified(self, item: Instruction, state: State) -> Instruction | None:
        """Return a simpler instruction with the same effect, or None if it is never executed.

        Copies are replaced by their originals, and a guard that is always true is left out.
        """
        condition = self._condition(item, state)
        if condition is False:
            return None
        guard = None if condition else item.guard
        width = self._width(item) if self._is_followed(item) else None
        result = self._result(item, state) if width else None
        if result and result[0] == result[1]:
            moved = item.operands[0], Integer(result[0])
            return replace(item, opcode=f"mov.b{width}", operands=moved, guard=guard)
        part = self._part(item, state) if width and item.opcode.startswith("sub") else None
        if part:
            masked = item.operands[0], Register(part[0]), Integer(part[1])
            return replace(item, opcode=f"and.b{width}", operands=masked, guard=guard)
        if guard == item.guard and state.related.isdisjoint(read_by(item)):
            return item
        written = len(item.operands[:1]) if written_by(item) else 0
        copies = {to: origin for to, (origin, mask) in state.parts.items() if mask == -1}
        read = (renamed(operand, copies) for operand in item.operands[written:])
        return replace(item, operands=(*item.operands[:written], *read), guard=guard)

    def comparison(self, item: Instruction, state: State) -> bool | None:
        """Return the result of a comparison of two known numbers; None for other instructions, or
        for one that is never executed."""
        _, relation, *_, kind = item.opcode.split(".")
        type_ = TYPES[kind]
        if type_.is_float or relation not in _COMPARISONS or self._condition(item, state) is False:
            return None
        a, b = (self._number(x, state, type_) for x in item.operands[1:3])
        return None if a is None or b is None else _COMPARISONS[relation](a, b)

    def _number(self, operand: Operand, state: State, type_: Type) -> int | None:
        """Return the value of an operand if it is known exactly."""
        least, greatest = self._of(operand, state, type_.bits) or (0, 1)
        return _wrapped(least, type_) if least == greatest else None

    def _execute(self, item: Instruction, state: State) -> None:
        """Change the state as an instruction does."""
        names = _written(item)
        condition = self._condition(item, state)
        if condition is False or not names:
            return
        result = self._result(item, state)
        part = self._part(item, state) if condition else None
        before = state.ranges.get(names[0])
        for name in names:
            state.forget(name)
        if result is not None and condition:
            state.ranges[names[0]] = result
        elif result is not None and before is not None:
            state.ranges[names[0]] = _hull(before, result)
        if part and part[0] != names[0]:
            state.parts[names[0]] = part
            state.related |= {names[0], part[0]}

    def _width(self, item: Instruction) -> int | None:
        """Return the bits of the integer register that an instruction writes; None for others."""
        match item.operands:
            case (Register(name), *_):
                type_ = self._registers[name]
                return type_.bits if type_.bits in (32, 64) and not type_.is_float else None
        return None

    def _part(self, item: Instruction, state: State) -> tuple[str, int] | None:
        """Return the register and the mask of which the result is the bitwise and."""
        root, *modifiers = item.opcode.split(".")
        width = self._width(item)
        if width is None or len(modifiers) != 1:
            return None
        sources = [x for x in item.operands[1:] if self._of(x, state, width) != (0, 0)]
        parts = [state.part(x) for x in sources]
        known = [x for x in parts if x and self._registers[x[0]].bits == width]
        match root, known:
            case (("mov" | "add"), [part]) if len(sources) == 1:
                return part
            case "and", [(name, mask)] if len(sources) == 2:
                other = self._of(sources[parts[0] is not None], state, width)
                return (name, mask & other[0]) if other and other[0] == other[1] else None
            case "sub", [(name, all_), (same, some)] if name == same and some & ~all_ == 0:
                return name, all_ & ~some
        return None

    def _of(self, operand: Operand, state: State, bits: int) -> Range | None:
        """Return the range of an operand; of a constant, as a signed number of so many bits."""
        match operand:
            case Integer(value):
                limit = 1 << bits - 1
                signed = (value + limit) % (2 * limit) - limit
                return signed, signed
            case Register(name):
                return state.ranges.get(name)
            case Not(Register(name)):
                least, greatest = state.ranges.get(name, (0, 1))
                return 1 - greatest, 1 - least
            case Special(name):
                return self._specials.get(name)
            case Address():
                return state.ranges.get(str(operand))
        return None

    def _result(self, item: Instruction, state: State) -> Range | None:
        """Return the range of the result of an instruction; None if it is not known."""
        root, *modifiers = item.opcode.split(".")
        type_ = TYPES.get(modifiers[-1]) if modifiers else None
        if type_ is None or type_.is_float:
            return None
        if "param" in modifiers:
            return self._of(item.operands[1], state, type_.bits)
        if not isinstance(item.operands[0], Register):
            return None
        sources = [self._of(operand, state, type_.bits) for operand in item.operands[1:]]
        if modifiers == ["pred"]:
            return _logic(root, [source or (0, 1) for source in sources])
        if type_.bits not in (32, 64):
            return None
        known = [source for source in sources if source is not None]
        if not known or len(known) < len(sources):
            return None
        held = self._registers[item.operands[0].name].bits
        if all(least == greatest for least, greatest in known):
            return _exact(root, modifiers, [least for least, _ in known], held)
        if not type_.is_signed and root not in _MODULAR and min(known)[0] < 0:
            return None
        match root, modifiers:
            case "setp", [comparison, _] if len(known) == 2:
                return _compared(comparison, *known)
            case "cvt", [to, _] if TYPES[to].bits == held and not TYPES[to].is_float:
                result: Range | None = known[0]
            case "mul", ["wide", _] if type_.is_signed or min(known)[0] >= 0:
                result = _computed(root, known)
            case (("mul" | "mad"), ["lo", _]) | (_, [_]) if held == type_.bits:
                result = _computed(root, known)
            case _:
                return None
        limit = 1 << held - 1
        return result if result and -limit <= result[0] and result[1] < limit else None


_EXACT: dict[str, Callable[..., int]] = {
    **{"mov": lambda a: a, "cvt": lambda a: a, "cvta": lambda a: a, "abs": abs},
    **{"add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg},
    **{"mad": lambda a, b, c: a * b + c, "min": min, "max": max, "not": operator.invert},
    **{"and": operator.and_, "or": operator.or_, "xor": operator.xor},
    **{"shl": lambda a, b: a << min(b, 64), "shr": lambda a, b: a >> min(b, 64)},
    **{"selp": lambda a, b, p: a if p else b},
}
"""Operations on known numbers."""

_COMPUTED = {*_EXACT, "div", "rem", "setp"}
"""Operations of which the range of the result may be known."""

_MODULAR = {"mov", "add", "sub", "mul", "mad", "shl", "and", "or"}
"""Operations whose result has the same bits for signed and unsigned numbers."""


def _wrapped(value: int, type_: Type) -> int:
    value &= (1 << type_.bits) - 1
    return value - (1 << type_.bits) if type_.is_signed and value >> (type_.bits - 1) else value


def _exact(root: str, modifiers: Sequence[str], values: Sequence[int], held: int) -> Range | None:
    """Return the result of an operation on known numbers. held: the bits of its register."""
    type_ = TYPES[modifiers[-1]]
    given = [_wrapped(value, type_) for value in values]
    if root == "setp":
        compare = _COMPARISONS.get(modifiers[0])
        if compare is None:
            return None
        found = int(compare(given[0], given[1]))
        return (
            _logic(modifiers[1], [(found, found), (values[2],) * 2])
            if len(values) == 3
            else (found, found)
        )
    if root in ("div", "rem") and given[1]:
        quotient = abs(given[0]) // abs(given[1]) * (1 if (given[0] < 0) == (given[1] < 0) else -1)
        result = quotient if root == "div" else given[0] - quotient * given[1]
    elif root in _EXACT and "sat" not in modifiers and (root != "mad" or "lo" in modifiers):
        result = _EXACT[root](*given)
        if root == "mul" and "hi" in modifiers:
            result >>= type_.bits
        if root == "cvt":
            if len(modifiers) != 2 or TYPES[modifiers[0]].is_float:
                return None
            result = _wrapped(result, TYPES[modifiers[0]])
    else:
        return None
    limit = 1 << held - 1
    signed = (result + limit) % (2 * limit) - limit
    return signed, signed


def _hull(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _logic(root: str, known: Sequence[Range]) -> Range | None:
    """Return the range of a predicate that is computed from others."""
    match root:
        case "mov":
            return known[0]
        case "not":
            return 1 - known[0][1], 1 - known[0][0]
        case "and":
            return min(x[0] for x in known), min(x[1] for x in known)
        case "or":
            return max(x[0] for x in known), max(x[1] for x in known)
        case "xor" if all(x[0] == x[1] for x in known):
            return (known[0][0] ^ known[1][0],) * 2
    return None


def _compared(comparison: str, a: Range, b: Range) -> Range | None:
    """Return the range of the result of a comparison: no pair of values contradicts it."""
    if comparison in _ORDERS:
        results = {_ORDERS[comparison](x, y) for x in a for y in b}
    elif comparison in ("eq", "ne") and (a[1] < b[0] or b[1] < a[0]):
        results = {comparison == "ne"}
    else:
        return None
    return (int(*results),) * 2 if len(results) == 1 else None


def _computed(root: str, known: Sequence[Range]) -> Range | None:
    """Return the range of the result of an integer operation, without a limit to its bits."""
    match root, known:
        case "mov", [a]:
            return a
        case "add", [a, b]:
            return a[0] + b[0], a[1] + b[1]
        case "sub", [a, b]:
            return a[0] - b[1], a[1] - b[0]
        case "mul", [a, b]:
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        case "mad", [a, b, c]:
            least, greatest = _computed("mul", [a, b]) or (0, 0)
            return least + c[0], greatest + c[1]
        case "shl", [a, (amount, same)] if amount == same and 0 <= amount < 64:
            return a[0] << amount, a[1] << amount
        case "shr", [a, (amount, same)] if amount == same and 0 <= amount < 32:
            return a[0] >> amount, a[1] >> amount
        case "min", [a, b]:
            return min(a[0], b[0]), min(a[1], b[1])
        case "max", [a, b]:
            return max(a[0], b[0]), max(a[1], b[1])
        case "and", [a, b]:
            return _masked(a, b)
        case "or", [a, b] if a[0] >= 0 and b[0] >= 0:
            return max(a[0], b[0]), (1 << (a[1] | b[1]).bit_length()) - 1
    return None


def _masked(a: Range, b: Range) -> Range | None:
    """Return the range of a bitwise and."""
    if a[0] == a[1]:
        a, b = b, a
    mask = b[0]
    if mask == b[1] and mask & -mask == -mask:  # ones above zeros: rounds down
        return a[0] & mask, a[1] & mask
    if a[0] == a[1] and mask == b[1]:
        return a[0] & mask, a[0] & mask
    limits = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(limits)) if limits else None
