"""Finds the comparisons of a kernel that depend only on the launch: its sizes and its grid.

This is sparse conditional constant propagation: a register is constant if all reachable
instructions that write it give the same value, and of a branch with a constant condition only one
target is reachable.
"""

import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.arguments import ParameterKind
from harness.ptxcpu.grid import Size
from harness.ptxcpu.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Label,
    Not,
    Operand,
    Pair,
    Register,
    Special,
    Vector,
)
from harness.ptxcpu.ptx.types import TYPES, Type

_ALIGNED = 1 << 40
"""The value of a pointer: buffers are far from each other, and all are aligned."""

_UNKNOWN = None
_Value = int | None
_Key = str | tuple[str, int]
"""A register, or an offset in a parameter."""

_COMPUTED: dict[str, Callable[..., int]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "cvta": lambda a: a,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mad": lambda a, b, c: a * b + c,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
    "neg": operator.neg,
    "abs": abs,
    "shl": lambda a, b: a << min(b, 64),
    "shr": lambda a, b: a >> min(b, 64),
    "selp": lambda a, b, p: a if p else b,
}

_COMPARED: dict[str, Callable[[int, int], bool]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge},
}


class LaunchDecisions:
    """Finds the comparisons of one kernel that depend on a launch only."""

    def __init__(self, kernel: InlinedKernel, block: Size) -> None:
        self.kernel, self.block, self.body = kernel, block, kernel.body
        self.labels = {x.name: i for i, x in enumerate(self.body) if isinstance(x, Label)}
        self.followed = self._followed()
        """The first instruction from each index on that matters: the others neither branch nor
        write a value that a launch may determine."""
        self.readers: dict[_Key, list[int]] = defaultdict(list)
        for index in sorted({*self.followed} - {len(self.body)}):
            for key in _read_by(self.body[index]):
                self.readers[key].append(index)

    def of(self, grid: Size, numbers: Sequence[int]) -> dict[int, bool]:
        """Return the comparisons of a launch by index in the body, with their results.

        numbers: the arguments that are no buffers. Instructions that the launch cannot reach are
        left out.
        """
        flow = _Flow(self, grid, numbers)
        flow.run()
        return flow.decided

    def _followed(self) -> list[int]:
        known = self._possibly_known()
        found = [len(self.body)]
        for index, item in reversed([*enumerate(self.body)]):
            matters = (
                isinstance(item, Label)
                or _parts(item.opcode)[0] in ("bra", "brx", "ret", "exit", "setp")
                or any(key in known for key in _written_by(item))
            )
            found.append(index if matters else found[-1])
        return found[::-1]

    def _possibly_known(self) -> set[_Key]:
        """Return the registers and parameters that have a known value in some launch."""
        numbers = [0] * sum(kind is ParameterKind.NUMBER for kind in self.kernel.kinds)
        known: set[_Key] = {*_parameters(self.kernel, numbers)}
        instructions = [x for x in self.body if isinstance(x, Instruction) and _may_be_known(x)]
        count = 0
        while len(known) > count:
            count = len(known)
            for item in instructions:
                sources = [key in known for key in _read_by(item)]
                if all(sources) or (any(sources) and ".pred" in item.opcode):
                    known.update(_written_by(item))
        return known


class _Flow:
    def __init__(self, static: LaunchDecisions, grid: Size, numbers: Sequence[int]) -> None:
        self.body, self.labels = static.body, static.labels
        self.followed, self.readers = static.followed, static.readers
        self.tables = static.kernel.branch_targets
        self.specials = {
            f"{name}.{axis}": size
            for name, sizes in (("ntid", static.block), ("nctaid", grid))
            for axis, size in zip("xyz", sizes, strict=True)
        }
        self.held: dict[_Key, _Value] = dict(_parameters(static.kernel, numbers))
        self.reached: set[int] = set()
        self.decided: dict[int, bool] = {}
        self.at = -1
        self.planned: list[int] = []
        """The instructions to follow in this round, as a heap."""
        self.later: set[int] = set()
        """Those to follow in the next round."""

    def run(self) -> None:
        """Follow each instruction that is reached, and again if what it reads has changed: in
        rounds, each in the order of the body."""
        self._reach(0)
        while self.planned:
            while self.planned:
                index = heappop(self.planned)
                if index > self.at:  # it may be planned twice
                    self.at = index
                    self._follow(index)
            self.planned, self.later, self.at = sorted(self.later), set(), -1

    def _plan(self, index: int) -> None:
        if index > self.at:
            heappush(self.planned, index)
        else:
            self.later.add(index)

    def _reach(self, index: int) -> None:
        index = self.followed[index]
        if index not in self.reached and index < len(self.body):
            self.reached.add(index)
            self._plan(index)

    def _follow(self, index: int) -> None:
        item = self.body[index]
        if isinstance(item, Label):
            self._reach(index + 1)
            return
        root, modifiers, _ = _parts(item.opcode)
        guard = 1 if item.guard is None else self._value(item.guard, TYPES["pred"])
        if guard != 0 and root in ("bra", "brx"):
            names = self.tables.get(getattr(item.operands[-1], "name", ""), ())
            if root == "bra":
                names = (getattr(item.operands[0], "name", ""),)
            for name in names:
                if name in self.labels:
                    self._reach(self.labels[name])
        if not (guard == 1 and root in ("bra", "brx", "ret", "exit")):
            self._reach(index + 1)
        if guard != 0 and item.operands and root not in ("bra", "brx", "bar", "red"):
            self._write(item.operands[0], self._result(index, item, root, modifiers))

    def _write(self, target: Operand, value: _Value) -> None:
        """Record the value that an instruction writes; a second, different value makes it
        unknown."""
        if isinstance(target, Pair | Vector):
            value = _UNKNOWN
        for key in _keys_of(target):
            if key in self.held and self.held[key] != value:
                value = _UNKNOWN
            if self.held.get(key) != value:
                for reader in self.readers[key]:
                    if reader in self.reached:
                        self._plan(reader)
            self.held[key] = value

    def _result(self, index: int, item: Instruction, root: str, modifiers: Sequence[str]) -> _Value:
        _, _, kinds = _parts(item.opcode)
        if root == "ld" and "param" in modifiers and isinstance(item.operands[1], Address):
            address = item.operands[1]
            return self.held.get((getattr(address.base, "name", ""), address.offset))
        if root == "st":
            return self._value(item.operands[1], kinds[-1]) if "param" in modifiers else _UNKNOWN
        if not kinds or any(kind.is_float for kind in kinds) or kinds[-1].bits > 64:
            return _UNKNOWN
        of = kinds[-1]
        values = [
            self._value(each, TYPES["pred"] if root in ("selp", "setp") and at == 2 else of)
            for at, each in enumerate(item.operands[1:])
        ]
        if root == "setp":
            return self._compared(index, modifiers, values)
        known = [each for each in values if each is not None]
        if len(known) < len(values):
            return _annihilated(root, known, of)
        if root in ("div", "rem") and known[1]:
            return _divided(root, *known)
        if root not in _COMPUTED or "sat" in modifiers or (root == "mad" and "wide" in modifiers):
            return _UNKNOWN
        found = _COMPUTED[root](*known)
        if root == "mul" and "hi" in modifiers:
            found >>= of.bits
        if root == "mul" and "wide" in modifiers:
            of = TYPES[f"{of.name[0]}{2 * of.bits}"]
        return _wrapped(found, kinds[0] if root == "cvt" else of)

    def _compared(self, index: int, modifiers: Sequence[str], values: list[_Value]) -> _Value:
        compare = _COMPARED.get(modifiers[0])
        if compare is None or values[0] is None or values[1] is None:
            self.decided.pop(index, None)
            return _UNKNOWN
        found = self.decided[index] = compare(values[0], values[1])
        if len(values) == 3:
            if values[2] is None:
                return _UNKNOWN
            join = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
            return int(join[modifiers[1]](found, bool(values[2])))
        return int(found)

    def _value(self, operand: Operand, of: Type) -> _Value:
        if isinstance(operand, Integer):
            return _wrapped(operand.value, of)
        if isinstance(operand, Not):
            found = self.held.get(operand.register.name)
            return None if found is None else 1 - found
        if isinstance(operand, Special):
            return self.specials.get(operand.name)
        found = self.held.get(operand.name) if isinstance(operand, Register) else _UNKNOWN
        return None if found is None else _wrapped(found, of)


@functools.cache
def _parts(opcode: str) -> tuple[str, tuple[str, ...], tuple[Type, ...]]:
    """Return the root of an opcode, its modifiers, and the types among them."""
    root, *modifiers = opcode.split(".")
    return root, tuple(modifiers), tuple(TYPES[word] for word in modifiers if word in TYPES)


def _keys_of(target: Operand) -> list[_Key]:
    """Return the registers, or the parameter, that are written through an operand."""
    if isinstance(target, Address):
        return [(getattr(target.base, "name", ""), target.offset)]
    if isinstance(target, Register):
        return [target.name]
    if isinstance(target, Pair | Vector):
        items = (target.first, target.second) if isinstance(target, Pair) else target.items
        return [each.name for each in items if isinstance(each, Register)]
    return []


def _written_by(item: Instruction) -> list[_Key]:
    return _keys_of(item.operands[0]) if item.operands else []


def _may_be_known(item: Instruction) -> bool:
    """Return whether an instruction may give a known value, if all that it reads is known."""
    root, modifiers, kinds = _parts(item.opcode)
    if root in ("ld", "st"):
        return "param" in modifiers
    if root not in (*_COMPUTED, "setp", "div", "rem") or any(kind.is_float for kind in kinds):
        return False
    specials = (each.name for each in item.operands if isinstance(each, Special))
    return all(name.startswith(("ntid", "nctaid")) for name in specials)


def _read_by(item: Instruction | Label) -> Iterator[_Key]:
    """Yield the registers and parameters that decide what an instruction writes or reaches."""
    if isinstance(item, Label):
        return
    for operand in item.operands[1:] if item.guard is None else (*item.operands[1:], item.guard):
        if isinstance(operand, Register):
            yield operand.name
        elif isinstance(operand, Not):
            yield operand.register.name
        elif isinstance(operand, Address):
            yield getattr(operand.base, "name", ""), operand.offset


def _parameters(kernel: InlinedKernel, numbers: Sequence[int]) -> Mapping[tuple[str, int], int]:
    left = iter(numbers)
    return {
        (name, 0): next(left) if kind is ParameterKind.NUMBER else _ALIGNED * (at + 1)
        for at, (name, kind) in enumerate(
            zip(kernel.parameters.variables, kernel.kinds, strict=True)
        )
    }


def _annihilated(root: str, known: list[int], of: Type) -> _Value:
    """Return the result of an operation on predicates if one known operand determines it."""
    if of.name == "pred":
        if root == "and" and 0 in known:
            return 0
        if root == "or" and 1 in known:
            return 1
    return _UNKNOWN


def _divided(root: str, a: int, b: int) -> int:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if root == "div" else a - quotient * b


def _wrapped(value: int, of: Type) -> int:
    value &= (1 << of.bits) - 1
    return value - (1 << of.bits) if of.is_signed and value >> (of.bits - 1) else value
