"""Divergence analysis: which values the lanes of a register share.

A register is uniform if all lanes hold the same value, affine if lane l holds `base + l * stride`,
and varying otherwise. This analysis generalises the first two: within a group of neighbouring
lanes, each lane holds the value of the group's first lane (its leader) plus a number known at
compile time. Uniform and affine registers have one group; `threadIdx.y * pitch` in a block of
16x16 threads has two groups in a warp; a varying register has as many groups as lanes.

The analysis is a flow-insensitive forward data-flow analysis: PTX is nearly in SSA form. It assumes
that lanes diverge only in regions between a branch and its join (see `analysis/cfg.py`). A register
that is written both in a region and elsewhere is varying, and so is each one that a loop of a
region writes.

Sources: R. Karrenberg and S. Hack, "Whole-Function Vectorization", CGO 2011, and "Improving
Performance of OpenCL on CPUs", CC 2012 (uniform and consecutive values); M. Pharr and W. R. Mark,
"ispc: A SPMD Compiler for High-Performance CPU Programming", InPar 2012; B. Coutinho et al.,
"Divergence Analysis and Optimizations", PACT 2011 (affine values).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.ptxcpu.analysis.cfg import ControlFlowGraph, Region
from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.ptx.effects import read_by, written_by
from harness.ptxcpu.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Not,
    Operand,
    Register,
    Sink,
    Special,
    Vector,
)
from harness.ptxcpu.ptx.types import TYPES

MAX_GROUPS = 4
"""A register with more groups is treated as varying, since its leaders would fill a vector
anyway."""

MAX_REGIONS = 200
"""The most divergent branches of a kernel that are translated with masks. Kernels with more would
take long to translate, so threads run their blocks at the edges."""

_WIDENING_ROUNDS = 4
"""After this many changes of a register, only its low bits may be known to be zero."""


@dataclass(frozen=True)
class Shape:
    """Lane l holds the value of its group's leader plus offsets[l], modulo the register's size."""

    groups: int
    offsets: tuple[int, ...]

    @property
    def lanes(self) -> int:
        return len(self.offsets)

    @property
    def is_varying(self) -> bool:
        return self.groups == self.lanes

    @property
    def is_uniform(self) -> bool:
        return self.groups == 1 and not any(self.offsets)

    @property
    def is_constant_in_groups(self) -> bool:
        return not any(self.offsets)

    def leader(self, lane: int) -> int:
        """Return the first lane of the group that `lane` belongs to."""
        size = self.lanes // self.groups
        return lane - lane % size

    def split(self, groups: int) -> Shape:
        """Return the same shape with more groups."""
        if groups <= self.groups:
            return self
        finer = Shape(groups, self.offsets)
        return Shape(
            groups, tuple(x - self.offsets[finer.leader(i)] for i, x in enumerate(self.offsets))
        )

    def split_until_constant(self) -> Shape:
        """Return the shape split until all lanes of a group hold the same value."""
        shape = self
        while any(shape.offsets):
            shape = shape.split(2 * shape.groups)
        return shape

    def limited(self) -> Shape:
        return varying(self.lanes) if self.groups > min(MAX_GROUPS, self.lanes - 1) else self


def uniform(lanes: int) -> Shape:
    return Shape(1, (0,) * lanes)


def varying(lanes: int) -> Shape:
    return Shape(lanes, (0,) * lanes)


def join(a: Shape, b: Shape) -> Shape:
    """Return the shape of a register that has one or the other."""
    groups = max(a.groups, b.groups)
    while a.split(groups).offsets != b.split(groups).offsets:
        groups *= 2
    return a.split(groups).limited()


@dataclass(frozen=True)
class Lanes:
    """The result of the analysis for a value.

    maybe: the bits that a leader may have set.
    constant: the value of every leader, if it is known.
    """

    shape: Shape
    maybe: int
    constant: int | None = None

    def may_wrap(self, signed: bool) -> bool:
        """Return whether a leader plus an offset may exceed the range of a 32-bit integer."""
        offsets = self.shape.offsets
        if not any(offsets):
            return False
        return min(offsets) < 0 or self.maybe + max(offsets) >= 1 << (31 if signed else 32)

    def is_disjoint(self) -> bool:
        """Return whether leaders and offsets have no common bits, so that + equals | in every
        lane."""
        offsets = self.shape.offsets
        return min(offsets) >= 0 and not _union(offsets) & self.maybe


def _union(numbers: Sequence[int]) -> int:
    result = 0
    for number in numbers:
        result |= number
    return result


def _bits_of_sum(a: int, b: int, width: int) -> int:
    """Return the bits that the sum of two numbers with at most these bits may have."""
    full = (1 << width) - 1
    if not a & b:
        return a | b
    low = ((a | b) & -(a | b)).bit_length() - 1
    return ((1 << (a + b).bit_length()) - 1 & full) >> low << low


def _signed(number: int, width: int) -> int:
    number &= (1 << width) - 1
    return number - (1 << width) if number >> (width - 1) else number


@functools.cache
def special_lanes(name: str, block: tuple[int, int, int], lanes: int) -> Lanes:
    """Return the lanes of a special register in a block of this shape."""
    x, y, z = block
    base, _, axis = name.partition(".")
    if base == "tid":
        return _thread_position(axis, block, lanes)
    if base == "ntid" and axis in ("x", "y", "z"):
        size = block["xyz".index(axis)]
        return Lanes(uniform(lanes), size, size)
    if name == "laneid":
        return Lanes(Shape(1, tuple(lane % 32 for lane in range(lanes))), 31 & -lanes)
    if name == "warpid":
        warps = (1 << (x * y * z // 32).bit_length()) - 1
        return Lanes(
            Shape(1, tuple(lane // 32 for lane in range(lanes))), warps & -max(1, lanes // 32)
        )
    if name.startswith("lanemask_"):
        return Lanes(varying(lanes), (1 << 32) - 1)
    return Lanes(uniform(lanes), (1 << 64) - 1)


def _thread_position(axis: str, block: tuple[int, int, int], lanes: int) -> Lanes:
    """Return the lanes of `threadIdx`. A unit begins at a multiple of `lanes` in the linear
    order."""
    x, y, z = block
    before, size = {"x": (1, x), "y": (x, y), "z": (x * y, z)}[axis]
    # The value is (thread // before) % size for thread = first + l.
    values = [
        [(first + lane) // before % size for lane in range(lanes)]
        for first in range(0, x * y * z, lanes)
    ]
    maybe = _union([unit[0] for unit in values])
    shapes = {Shape(1, tuple(value - unit[0] for value in unit)) for unit in values}
    if len(shapes) > 1:
        return Lanes(varying(lanes), (1 << size.bit_length()) - 1)
    constant = values[0][0] if len({unit[0] for unit in values}) == 1 else None
    return Lanes(shapes.pop(), maybe, constant)


def _defined_once(kernel: InlinedKernel) -> frozenset[str]:
    """Return the registers that exactly one instruction writes, without a guard."""
    count: dict[str, int] = {}
    for item in kernel.body:
        if isinstance(item, Instruction):
            for name in written_by(item):
                count[name] = count.get(name, 0) + (2 if item.guard else 1)
    return frozenset(name for name, times in count.items() if times == 1)


ONE_BY_ONE = {"atom", "red", "mbarrier"}
"""Instructions that run for one lane after the other, with the lowerings for threads."""

_LINEAR = {"add", "sub", "mul", "mad", "shl"}
_LOGIC = {"and", "shr"}


class ShapeAnalysis:
    """The shapes of all registers of a kernel, for units of `lanes` neighbouring threads."""

    def __init__(self, kernel: InlinedKernel, block: tuple[int, int, int], lanes: int) -> None:
        self.kernel = kernel
        self.block = block
        self.lanes = lanes
        self.registers: dict[str, Lanes] = {}
        """The lanes of all registers that are written."""
        self._changes: dict[str, int] = {}
        self._changed: set[str] = set()
        """The registers that this round of the analysis has changed."""
        self.defined_once = _defined_once(kernel)
        self.graph = ControlFlowGraph(kernel)
        self.regions = self._regions()
        """The regions by the index of their conditional branch."""
        self._solve()

    def shape(self, name: str) -> Shape:
        """Return the shape of a register; one that is never written is equal in all lanes."""
        return self.registers[name].shape if name in self.registers else uniform(self.lanes)

    def widened(self, item: Instruction) -> list[tuple[Operand, Lanes, bool]]:
        """Return the 32-bit operands that an instruction sign- or zero-extends to 64 bits, for
        which this analysis is correct only if no lane overflows."""
        root, *modifiers = item.opcode.split(".")
        if root == "cvt":
            kinds = [TYPES.get(x) for x in modifiers]
            if len(kinds) != 2 or not kinds[0] or not kinds[1] or kinds[0].bits <= kinds[1].bits:
                return []
            given, signed = item.operands[1:2], kinds[1].is_signed
        elif "wide" in modifiers:
            given, signed = item.operands[1:3], modifiers[-1].startswith("s")
        else:
            return []
        found = [(operand, self.of(operand), signed) for operand in given]
        return [(x, lanes, s) for x, lanes, s in found if lanes and lanes.may_wrap(s)]

    def of(self, operand: Operand) -> Lanes | None:
        """Return the lanes of an operand; None for a register that has no value yet."""
        match operand:
            case Register():
                return self.registers.get(operand.name)
            case Not():
                return self.registers.get(operand.register.name)
            case Integer():
                return Lanes(uniform(self.lanes), operand.value & (1 << 64) - 1, operand.value)
            case Special():
                return special_lanes(operand.name, self.block, self.lanes)
            case Vector():
                return self._together([self.of(item) for item in operand.items])
            case Address():
                base = self.of(operand.base)
                return base and replace(base, maybe=(1 << 64) - 1, constant=None)
            case _:
                return Lanes(uniform(self.lanes), (1 << 64) - 1)

    def _together(self, given: Sequence[Lanes | None]) -> Lanes | None:
        """Return the lanes of a result that depends on these values in an unknown way."""
        groups = 1
        for lanes in given:
            if lanes is None:
                return None
            groups = max(groups, lanes.shape.split_until_constant().groups)
        return Lanes(uniform(self.lanes).split(groups), (1 << 64) - 1)

    def _solve(self) -> None:
        """Visit the instructions in turn until nothing changes. After the first round, only those
        are visited again of which an operand has changed since.

        Sums without a first value depend on themselves. They have no value when nothing changes any
        more, and are then given one that is equal in all lanes.
        """
        steps = [
            (index, item, written_by(item), read_by(item))
            for index, item in enumerate(self.kernel.body)
            if isinstance(item, Instruction)
        ]
        changed_before, is_first = self._changed, True
        while is_first or changed_before:
            for index, item, names, reads in steps:
                changed = not (changed_before.isdisjoint(reads) and self._changed.isdisjoint(reads))
                if names and (is_first or changed):
                    self._visit(item, names)
                if item.guard is not None:
                    self._visit_guard(index, item, item.guard)
            if not self._changed:
                without_value = {name for step in steps for name in step[3]} - {*self.registers}
                for name in without_value & {*self.kernel.registers}:
                    self._join(name, Lanes(uniform(self.lanes), (1 << 64) - 1))
            changed_before, self._changed, is_first = self._changed, set(), False

    def _visit(self, item: Instruction, names: Sequence[str]) -> None:
        result = self._result(item)
        for name in names:
            if result is not None and name in self.kernel.registers:
                self._join(name, result)

    def _regions(self) -> dict[int, Region]:
        found = {}
        for number, block in enumerate(self.graph.blocks):
            last = self.kernel.body[block.end - 1]
            if isinstance(last, Instruction) and last.opcode.startswith("bra") and last.guard:
                region = self.graph.region(number)
                if region is not None:
                    found[block.end - 1] = region
        return found if len(found) <= MAX_REGIONS else {}

    def _visit_guard(self, index: int, item: Instruction, guard: Register | Not) -> None:
        """Make registers varying that divergent lanes write, unless nothing else writes them."""
        known = self.of(guard)
        if known is None or known.shape.is_uniform:
            return
        if index not in self.regions:
            self._vary(item, is_guarded=True)
            return
        for number, is_in_loop in self.regions[index].blocks():
            for _, inner in self.graph.instructions(number):
                self._vary(inner, is_in_loop or inner.guard is not None)

    def _vary(self, item: Instruction, is_guarded: bool) -> None:
        """Record that some lanes may execute an instruction without the others.

        is_guarded: the other lanes keep their values.
        """
        for name in written_by(item):
            is_apart = item.opcode.split(".")[0] in ONE_BY_ONE
            if item.opcode.startswith("ld") and ".param" not in item.opcode:
                address = self.of(item.operands[1])
                is_apart = address is None or not address.shape.is_uniform
            if name in self.kernel.registers and (
                is_guarded or is_apart or name not in self.defined_once
            ):
                self._join(name, Lanes(varying(self.lanes), (1 << 64) - 1))

    def _join(self, name: str, new: Lanes) -> None:
        """Add a value that a register may have."""
        type_ = self.kernel.registers[name]
        full = (1 << type_.bits) - 1
        if type_.is_float or type_.bits not in (32, 64):
            new = Lanes(new.shape.split_until_constant(), full)
        new = self._fitted(new, type_.bits)
        old = self.registers.get(name)
        if old is None:
            self.registers[name] = new
            self._changed.add(name)
            return
        shape = join(old.shape, new.shape)
        maybe = old.maybe | new.maybe
        constant = old.constant if old.constant == new.constant else None
        for each in (old, new):
            if shape.groups > each.shape.groups and any(each.shape.offsets):
                # There are new leaders.
                maybe |= each.maybe | _union(each.shape.offsets) if each.is_disjoint() else full
                constant = None
        joined = Lanes(shape, maybe, constant)
        if joined == old:
            return
        self._changes[name] = self._changes.get(name, 0) + 1
        if self._changes[name] > _WIDENING_ROUNDS:
            joined = Lanes(shape, full & -(joined.maybe & -joined.maybe))
        if joined != old:
            self.registers[name] = joined
            self._changed.add(name)

    def _fitted(self, new: Lanes, width: int) -> Lanes:
        """Return the lanes of a value in a register of this width."""
        full = (1 << width) - 1
        offsets = tuple(_signed(x, width) for x in new.shape.offsets)
        shape = Shape(new.shape.groups, offsets).limited()
        if shape.groups > new.shape.groups:
            return Lanes(shape, full)
        constant = None if new.constant is None else new.constant & full
        if not new.maybe & full:
            constant = 0
        return Lanes(shape, new.maybe & full, constant)

    def _result(self, item: Instruction) -> Lanes | None:
        """Return the lanes of the result of one instruction."""
        root, *modifiers = item.opcode.split(".")
        sources = [self.of(operand) for operand in item.operands[1:]]
        if any(source is None for source in sources):
            return None
        known = [source for source in sources if source is not None]
        default = self._together(known)
        if root == "atom" or (root == "mbarrier" and "arrive" in modifiers[0]):
            return Lanes(varying(self.lanes), (1 << 64) - 1)
        if not isinstance(item.operands[0], Register) or isinstance(item.operands[0], Sink):
            return default
        held = self.kernel.registers[item.operands[0].name]
        if any(x in ("sat", "cc", "hi") for x in modifiers):
            return default
        special = self._special(root, modifiers, item.operands[1:], known, held.bits)
        return special or default

    def _special(
        self,
        root: str,
        modifiers: Sequence[str],
        operands: Sequence[Operand],
        known: list[Lanes],
        held: int,
    ) -> Lanes | None:
        """Return the result of an instruction that preserves offsets; None for all others."""
        type_ = TYPES.get(modifiers[-1]) if modifiers else None
        if type_ is None or type_.is_float or type_.bits not in (32, 64):
            return None
        width = type_.bits
        if not self._whole(root, operands, width, "wide" in modifiers):
            return None
        if root == "ld":
            return None
        if root == "mov":
            return known[0] if width == held else None
        if root == "cvt":
            return self._converted(modifiers, known[0], held)
        if "wide" in modifiers:
            return self._wide(root, known, type_.is_signed, held) if width == 32 else None
        if width != held:
            return None
        if root in _LINEAR:
            return self._linear(root, known, width)
        if root in _LOGIC:
            return self._logic(root, known, width, type_.is_signed)
        return None

    def _whole(self, root: str, operands: Sequence[Operand], width: int, wide: bool) -> bool:
        """Return whether each source register has exactly the width that the instruction reads."""
        for i, operand in enumerate(operands):
            if isinstance(operand, Register):
                expected = 2 * width if wide and root == "mad" and i == 2 else width
                if root in ("shl", "shr") and i == 1:
                    expected = 32
                if self.kernel.registers[operand.name].bits != expected:
                    return False
        return True

    def _converted(self, modifiers: Sequence[str], a: Lanes, held: int) -> Lanes | None:
        if len(modifiers) != 2:
            return None
        to, from_ = TYPES[modifiers[0]], TYPES[modifiers[1]]
        if to.is_float or to.bits != held:
            return None
        if to.bits <= from_.bits:
            return Lanes(a.shape, a.maybe & (1 << to.bits) - 1)
        return self._widened(a, from_.is_signed)

    def _widened(self, a: Lanes, signed: bool) -> Lanes:
        """Return a 32-bit integer extended to 64 bits, provided that no lane's sum overflows."""
        may_be_negative = signed and a.maybe >> 31
        constant = a.constant
        if constant is not None:
            constant = _signed(constant, 32) if signed else constant & (1 << 32) - 1
        return Lanes(a.shape, (1 << 64) - 1 if may_be_negative else a.maybe, constant)

    def _wide(self, root: str, known: list[Lanes], signed: bool, held: int) -> Lanes | None:
        if held != 64:
            return None
        a, b = (self._widened(x, signed) for x in known[:2])
        product = self._product(a, b, 64)
        if product is None or root == "mul":
            return product
        return self._sum(product, known[2], 64, 1)

    def _linear(self, root: str, known: list[Lanes], width: int) -> Lanes | None:
        if root == "add":
            return self._sum(known[0], known[1], width, 1)
        if root == "sub":
            return self._sum(known[0], known[1], width, -1)
        if root == "shl":
            amount = known[1].constant
            if amount is None or not 0 <= amount < width or not known[1].shape.is_uniform:
                return None
            factor = 1 << amount
            return self._product(known[0], Lanes(uniform(self.lanes), factor, factor), width)
        product = self._product(known[0], known[1], width)
        if product is None or root == "mul":
            return product
        return self._sum(product, known[2], width, 1)

    def _sum(self, a: Lanes, b: Lanes, width: int, sign: int) -> Lanes:
        groups = max(a.shape.groups, b.shape.groups)
        first, second = a.shape.split(groups), b.shape.split(groups)
        offsets = tuple(
            _signed(x + sign * y, width) for x, y in zip(first.offsets, second.offsets, strict=True)
        )
        full = (1 << width) - 1
        maybe, constant = full, None
        if sign > 0 and groups == 1:
            maybe = _bits_of_sum(a.maybe & full, b.maybe & full, width)
        if groups == 1 and a.constant is not None and b.constant is not None:
            constant = (a.constant + sign * b.constant) & full
            maybe = constant
        return Lanes(Shape(groups, offsets), maybe, constant)

    def _product(self, a: Lanes, b: Lanes, width: int) -> Lanes | None:
        if b.constant is None or not b.shape.is_uniform:
            a, b = b, a
        full = (1 << width) - 1
        if b.constant is None or not b.shape.is_uniform:
            return None
        factor = b.constant
        offsets = tuple(_signed(x * factor, width) for x in a.shape.offsets)
        constant = None if a.constant is None else a.constant * factor & full
        if constant is not None:
            maybe = constant
        elif factor > 0 and a.maybe:
            low = ((a.maybe & -a.maybe) * (factor & -factor)).bit_length() - 1
            maybe = ((1 << (a.maybe * factor).bit_length()) - 1 & full) >> low << low
        else:
            maybe = full if factor and a.maybe else 0
        return Lanes(Shape(a.shape.groups, offsets), maybe, constant)

    def _logic(
        self,
        root: str,
        known: list[Lanes],
        width: int,
        signed: bool,
    ) -> Lanes | None:
        a, b = known[0], known[1]
        if root != "shr" and (b.constant is None or not b.shape.is_uniform):
            a, b = b, a
        if b.constant is None or not b.shape.is_uniform:
            return None
        number = b.constant & (1 << width) - 1
        if root == "and":
            return self._masked(a, number, width)
        offsets = a.shape.offsets
        if not a.is_disjoint() or number >= width or (signed and _union(offsets) >> (width - 1)):
            return None
        negative = signed and a.maybe >> (width - 1)
        full = (1 << width) - 1
        moved = a.maybe >> number | (full & ~(full >> number) if negative else 0)
        constant = a.constant >> number if a.constant is not None and not negative else None
        return Lanes(Shape(a.shape.groups, tuple(x >> number for x in offsets)), moved, constant)

    def _masked(self, a: Lanes, mask: int, width: int) -> Lanes | None:
        """Return the bitwise and of a value and a constant."""
        mask &= (1 << width) - 1
        if not a.is_disjoint():
            return None
        offsets = tuple(x & mask for x in a.shape.offsets)
        constant = None if a.constant is None else a.constant & mask
        return Lanes(Shape(a.shape.groups, offsets), a.maybe & mask, constant)
