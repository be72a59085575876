"""Orders the products of a basic block by tiles of sums, as fast matrix products do.

A thread with 64 or more sums adds one product to each of them in every step of its inner loop. They
do not fit into the processor's vector registers, so each product would load and store its sum. Here
the products of all steps of a basic block are delayed, and then emitted for one tile of sums after
the other: a few rows and columns, whose sums stay in registers from one step to the next. A product
(`fma`) only reads and writes registers, so it may be moved behind accesses to memory. The products
of each sum keep their order, so every sum keeps its bits.

Source: K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM
Transactions on Mathematical Software 34 (3), 2008.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.ptx.effects import read_by, written_by
from harness.ptxcpu.ptx.syntax import Instruction, Label, Operand, Register

ROWS, COLUMNS = 4, 4
"""The size of a tile: its sums and the factors of one step fit into 32 vector registers."""

MIN_SUMS = 2 * ROWS * COLUMNS
"""Fewer sums may stay in registers anyway."""

_ENDS = ("bra", "brx", "bar", "barrier", "call", "ret", "exit", "trap")


def tiled(kernel: InlinedKernel) -> InlinedKernel:
    """Return the same kernel with the products of each basic block ordered by tiles of sums."""
    body: list[Instruction | Label] = []
    delayed = _Products()
    for item in kernel.body:
        if _is_product(item) and delayed.add(item):
            continue
        if not delayed.may_follow(item):
            body += delayed.ordered()
            delayed = _Products()
            if _is_product(item) and delayed.add(item):
                continue
        body.append(item)
    return replace(kernel, body=[*body, *delayed.ordered()])


def _is_product(item: Instruction | Label) -> TypeGuard[Instruction]:
    return isinstance(item, Instruction) and item.opcode.startswith("fma.") and not item.guard


_SEVERAL = -1
"""Stands for the number of a sum where several sums use a register, or one as a factor."""


class _Products:
    """Products that have been delayed. Each belongs to a sum, which has a number."""

    def __init__(self) -> None:
        self._items: list[tuple[int, Instruction]] = []
        self._count = 0
        self._results: dict[str, int] = {}
        """The sum that each written register holds."""
        self._users: dict[str, int] = {}
        """The sum that reads or writes each register, or _SEVERAL."""

    def may_follow(self, item: Instruction | Label) -> bool:
        """Return whether the products may be emitted after an instruction that they precede."""
        if isinstance(item, Label) or item.opcode.split(".")[0] in _ENDS:
            return False
        reads, writes = read_by(item), written_by(item)
        return self._results.keys().isdisjoint(reads) and self._users.keys().isdisjoint(writes)

    def add(self, item: Instruction) -> bool:
        """Delay one more product, if its order with those of other sums does not matter."""
        to, *factors, start = (x.name if isinstance(x, Register) else "" for x in item.operands)
        number = self._results.get(start, self._count)
        if not self._results.keys().isdisjoint(factors) or self._users.get(to, number) != number:
            return False
        self._count = max(self._count, number + 1)
        self._items.append((number, item))
        self._users |= dict.fromkeys(factors, _SEVERAL)
        self._users[start] = number if self._users.get(start, number) == number else _SEVERAL
        self._users[to] = self._results[to] = number
        return True

    def ordered(self) -> list[Instruction]:
        """Return the products of one tile after the other; if there are few sums, as they were."""
        items = self._items
        if self._count >= MIN_SUMS:
            tiles = _tiles(items)
            items = sorted(items, key=lambda each: tiles[each[0]])
        return [item for _, item in items]


def _tiles(items: Sequence[tuple[int, Instruction]]) -> dict[int, tuple[int, int]]:
    """Return the row and the column of the tile of each sum.

    Sums whose first products have a factor in common are in one row or in one column.
    """
    rows: dict[Operand, int] = {}
    columns: dict[Operand, int] = {}
    tiles: dict[int, tuple[int, int]] = {}
    for number, item in items:
        if number not in tiles:
            _, a, b, _ = item.operands
            if a in columns or b in rows:
                a, b = b, a
            row, column = rows.setdefault(a, len(rows)), columns.setdefault(b, len(columns))
            tiles[number] = row // ROWS, column // COLUMNS
    return tiles
