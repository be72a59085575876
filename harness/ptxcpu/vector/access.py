"""Loads and stores of all lanes of a unit at once.

Where the distances of the lanes' addresses from their leaders' are known, an access becomes
contiguous loads, broadcasts and fixed permutations. One bounds check then suffices for all lanes of
a group. Other accesses are gathers and scatters, of which every lane is checked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.ptxcpu.codegen.instructions.memory import is_volatile, space
from harness.ptxcpu.codegen.llvm_ir import IrValue, llvm_type
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.effects import is_ordered
from harness.ptxcpu.ptx.syntax import Address, Instruction, Operand, Sink, elements
from harness.ptxcpu.ptx.types import Type
from harness.ptxcpu.vector.builder import VectorBuilder

ELEMENT = 4
"""The bytes of an element that processors permute among all lanes of a vector."""

_LEAST_LANES = 8
"""The fewest lanes for which elements are loaded together and permuted."""


@dataclass(frozen=True)
class Access:
    """One `ld` or `st`, decoded."""

    index: int
    space: str
    address: Address
    items: tuple[Operand, ...]
    type: Type
    is_store: bool

    @property
    def bytes(self) -> int:
        """The number of bytes that one lane accesses."""
        return self.type.bytes * len(self.items)

    @property
    def used(self) -> list[tuple[int, int]]:
        """Return where each row of elements that are used begins and ends, in bytes."""
        parts: list[tuple[int, int]] = []
        for i, item in enumerate(self.items):
            if not isinstance(item, Sink):
                begin, end = i * self.type.bytes, (i + 1) * self.type.bytes
                parts.append((parts.pop()[0] if parts and parts[-1][1] == begin else begin, end))
        return parts

    @property
    def has_data(self) -> bool:
        """Return whether any of the data is used; otherwise only the address is checked."""
        return any(not isinstance(item, Sink) for item in self.items)


def is_ordered_in_global_memory(item: Instruction) -> bool:
    """Return whether a load or store is ordered with what other blocks do."""
    return "global" in item.opcode.split(".") and is_ordered(item)


def decode(table: InstructionTable, item: Instruction, index: int) -> Access:
    """Return the parts of a load or store. Raises CannotTranslate if it has no vector form."""
    m, _ = table.match(item, index)
    is_store = item.opcode.startswith("st")
    if (
        (is_volatile(m) and space(m) != "global")
        or m.type.name == "b128"
        or not item.opcode.startswith(("ld.", "st."))
    ):
        raise CannotTranslate("an ordered or 128-bit access in vector code")
    data, address = m.operands["b" if is_store else "d"], m.operands["a"]
    if not isinstance(address, Address):
        raise CannotTranslate("an address in brackets is needed")
    items = elements(data)
    if len(items) != int((m["vec"] or "v1")[1:]):
        raise CannotTranslate("a vector of another length is needed")
    return Access(index, space(m), address, items, m.type, is_store)


class LaneMemory(VectorBuilder):
    """Copies elements between host memory and vectors. Each element of a result is a raw LLVM
    vector with one element per offset."""

    def load_lanes(
        self, host: IrValue, offsets: Sequence[int], type_: Type, count: int
    ) -> list[IrValue]:
        """Load `count` neighbouring elements per lane; those of lane l are at `host` +
        offsets[l]."""
        known: dict[tuple[int, ...], list[IrValue]] = {}

        def load(at: tuple[int, ...]) -> list[IrValue]:
            if at not in known:
                known[at] = self._load(host, at, type_, count, load)
            return known[at]

        return load(tuple(offsets))

    def _load(
        self,
        host: IrValue,
        at: tuple[int, ...],
        type_: Type,
        count: int,
        load: Callable[[tuple[int, ...]], list[IrValue]],
    ) -> list[IrValue]:
        """Load as `load_lanes` does, with the parts that `load` returns."""
        element, size, n = llvm_type(type_), type_.bytes, len(at)
        if len(set(at)) == 1:
            scalars = self.load_elements(host, at[0], type_, count)
            return [self._splat(x, n) for x in scalars]
        if count == 1 and at == tuple(range(at[0], at[0] + n * size, size)):
            return [self._load_vector(host, at[0], element, n, size)]
        near = self._load_nearby(host, at, type_, count)
        if near:
            return near
        halves = at[: n // 2], at[n // 2 :]
        if count == 4 and size == 4 and n == 8 and all(len(set(half)) > 1 for half in halves):
            rows = {x: self._load_vector(host, x, element, 4, size) for x in at}
            return self._transposed([rows[x] for x in at])
        if n <= 2:
            scalars_of = [self.load_elements(host, x, type_, count) for x in at]
            return [self._packed(x) for x in zip(*scalars_of, strict=True)]
        return [self.joined([a, b]) for a, b in zip(load(halves[0]), load(halves[1]), strict=True)]

    def _load_nearby(
        self, host: IrValue, at: tuple[int, ...], type_: Type, count: int
    ) -> list[IrValue]:
        """Return what `_load` returns, from two contiguous vectors whose elements are permuted; an
        empty list if the elements do not fill two vectors of the processor."""
        size, first = type_.bytes, min(at)
        elements = (max(at) - first) // size + count
        if size != ELEMENT or len(at) < _LEAST_LANES or elements not in (8, 16, 32):
            return []
        element, length = llvm_type(type_), elements // 2
        low, high = (
            self._load_vector(host, first + part * length * size, element, length, size)
            for part in (0, 1)
        )
        return [
            self.shuffle(low, high, [(x - first) // size + i for x in at]) for i in range(count)
        ]

    def load_elements(self, host: IrValue, offset: int, type_: Type, count: int) -> list[IrValue]:
        """Load `count` contiguous scalars."""
        return [
            self.load(
                llvm_type(type_),
                self.offset(host, offset + i * type_.bytes),
                f", align {type_.bytes}",
            )
            for i in range(count)
        ]

    def _load_vector(self, host: IrValue, offset: int, element: str, n: int, size: int) -> IrValue:
        whole = f"<{n} x {element}>"
        return self.raw(whole, f"load {whole}, {self.offset(host, offset)}, align {size}")

    def _splat(self, x: IrValue, n: int) -> IrValue:
        whole = f"<{n} x {x.type}>"
        first = self.raw(whole, f"insertelement {whole} poison, {x}, i32 0")
        return self.shuffle(first, None, [0] * n)

    def _packed(self, scalars: Sequence[IrValue]) -> IrValue:
        """Return a vector with these scalars as its elements."""
        element = scalars[0].type
        whole = IrValue("poison", f"<{len(scalars)} x {element}>")
        for i, x in enumerate(scalars):
            whole = self.raw(whole.type, f"insertelement {whole}, {x}, i32 {i}")
        return whole

    def joined(self, parts: Sequence[IrValue]) -> IrValue:
        """Return the concatenation of vectors of one length."""
        parts = list(parts)
        length = int(parts[0].type[1:].split(" ")[0])
        while len(parts) > 1:
            parts = [
                self.shuffle(parts[i], parts[i + 1], range(2 * length))
                for i in range(0, len(parts), 2)
            ]
            length *= 2
        return parts[0]

    def _transposed(self, rows: Sequence[IrValue]) -> list[IrValue]:
        """Transpose eight rows of four elements to four columns of eight."""
        pairs = [self.shuffle(rows[i], rows[i + 4], range(8)) for i in range(4)]
        return self._transposed_halves(pairs)

    def _transposed_halves(self, rows: Sequence[IrValue]) -> list[IrValue]:
        """Transpose both halves of four vectors of eight elements, as matrices of 4 x 4, by
        permutations within 128 bits, which take AVX one cycle."""
        pairs = [
            [self.shuffle(rows[i], rows[i + 1], lanes) for i in (0, 2)]
            for lanes in ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15))
        ]
        return [
            self.shuffle(upper, lower, lanes)
            for upper, lower in pairs
            for lanes in ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
        ]

    def store_lanes(
        self, host: IrValue, offsets: Sequence[int], type_: Type, values: Sequence[IrValue]
    ) -> None:
        """Store one raw vector for each of a lane's neighbouring elements (`values`). If lanes
        store to the same address, the value of the last one remains."""
        element, size, n = llvm_type(type_), type_.bytes, len(offsets)
        if len(values) == 1 and list(offsets) == list(
            range(offsets[0], offsets[0] + n * size, size)
        ):
            self.emit(f"store {values[0]}, {self.offset(host, offsets[0])}, align {size}")
            return
        if n > 8:
            half = n // 2
            for first in (0, half):
                parts = [self.shuffle(x, None, range(first, first + half)) for x in values]
                self.store_lanes(host, offsets[first : first + half], type_, parts)
            return
        if n == 8 and len(values) == 4 and size == 4:
            for row, offset in zip(self._rows(values), offsets, strict=True):
                self.emit(f"store {row}, {self.offset(host, offset)}, align {size}")
            return
        for lane, offset in enumerate(offsets):
            for i, x in enumerate(values):
                scalar = self.raw(element, f"extractelement {x}, i32 {lane}")
                self.store(scalar, self.offset(host, offset + i * size), f", align {size}")

    def _rows(self, columns: Sequence[IrValue]) -> list[IrValue]:
        """Transpose four columns of eight elements to eight rows of four."""
        pairs = self._transposed_halves(columns)
        return [self.shuffle(x, None, range(half, half + 4)) for half in (0, 4) for x in pairs]

    def gather(self, pointers: IrValue, type_: Type, count: int) -> list[IrValue]:
        """Load as `load_lanes` does, with a pointer for each lane."""
        element, size, n = llvm_type(type_), type_.bytes, self.lanes
        if count == 1:
            whole = f"<{n} x {element}>"
            suffix = f"v{n}{'f' if type_.is_float else 'i'}{type_.bits}.v{n}p0"
            name = f"llvm.masked.gather.{suffix}"
            self.declarations.add(f"declare {whole} @{name}(<{n} x ptr>, <{n} x i1>, {whole})")
            return [
                self.raw(
                    whole,
                    f"call {whole} @{name}(<{n} x ptr> align {size} {pointers.text}, "
                    f"<{n} x i1> splat (i1 true), {whole} poison)",
                )
            ]
        each = [self._pointer(pointers, lane) for lane in range(n)]
        if count == 4 and size == 4 and n % 8 == 0:
            rows = [self._load_vector(p, 0, element, 4, size) for p in each]
            blocks = [self._transposed(rows[i : i + 8]) for i in range(0, n, 8)]
            return [self.joined(x) for x in zip(*blocks, strict=True)]
        scalars = [self.load_elements(p, 0, type_, count) for p in each]
        return [self._packed(x) for x in zip(*scalars, strict=True)]

    def scatter(self, pointers: IrValue, type_: Type, values: Sequence[IrValue]) -> None:
        """Store as `store_lanes` does, with a pointer for each lane."""
        for lane in range(self.lanes):
            pointer = self._pointer(pointers, lane)
            for i, x in enumerate(values):
                scalar = self.raw(llvm_type(type_), f"extractelement {x}, i32 {lane}")
                at = self.offset(pointer, i * type_.bytes)
                self.store(scalar, at, f", align {type_.bytes}")

    def _pointer(self, pointers: IrValue, lane: int) -> IrValue:
        return self.raw("ptr", f"extractelement {pointers}, i32 {lane}")
