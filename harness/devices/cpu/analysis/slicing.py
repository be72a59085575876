"""What of a kernel must run so that its accesses and branches can be counted.

Sums and products that reach neither an address nor a branch may be left out, and so may the loads
and stores that only carry them: of those the address alone counts. That is most of a large kernel,
and what makes translating it slow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.devices.cpu.analysis.flatten import FlatKernel
from harness.devices.cpu.analysis.pointers import pointer_windows
from harness.devices.cpu.runtime.layout import Window
from harness.ptx.syntax import (
    Address,
    Coordinates,
    Group,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

_LOADS = {"ld", "ldu", "ldmatrix"}
_STORES = {"st", "stmatrix"}
_ACT = {
    *("bra", "brx", "ret", "exit", "trap", "brkpt", "call"),
    *("bar", "barrier", "mbarrier", "cp", "atom", "red", "membar", "fence", "nanosleep"),
    *("addc", "subc", "madc"),
}
"""Instructions that do more than write registers; those of the carry flag go with them."""

_MAY_GO = {"wgmma", "prefetch", "prefetchu", "setmaxnreg", "discard", "applypriority"}
"""Their effect is on data, or on nothing that is modelled."""


@dataclass(frozen=True)
class Slice:
    """By the index of an instruction.

    left_out: need not run at all. address_only: its accesses count, its data does not matter.
    """

    left_out: frozenset[int]
    address_only: frozenset[int]


class _Slicer:
    """Follows what is needed back to where it comes from, instruction by instruction."""

    def __init__(self, kernel: FlatKernel) -> None:
        self.run: set[int] = set()
        """Instructions that must run with their data."""
        self._body = kernel.body
        self._windows = pointer_windows(kernel)
        self._needed: set[str] = set()
        self._read: set[Window | None] = set()
        """Arrays from which something that is needed is read."""
        self._waiting: list[int] = []
        self._writers: dict[str, list[int]] = defaultdict(list)
        """By the register that they write."""
        self._stores: list[int] = []

    def follow(self) -> None:
        for index, item in enumerate(self._body):
            if not isinstance(item, Instruction):
                continue
            if _acts(item):
                self._run(index)
            elif _root(item) in _STORES or _is_copy(item):
                self._stores.append(index)
                self._need_place(item)
            elif _root(item) not in _MAY_GO:
                for name in _registers(item.operands[:1]):
                    self._writers[name].append(index)
                if _root(item) in _LOADS:
                    self._need_place(item)
        for name in self._needed:
            self._waiting += self._writers[name]
        while self._waiting:
            self._run(self._waiting.pop())

    def _run(self, index: int) -> None:
        item = self._body[index]
        if index in self.run or not isinstance(item, Instruction):
            return
        self.run.add(index)
        guard = [item.guard] if item.guard is not None else []
        self._need(_registers([*item.operands, *guard]))
        if _root(item) in _LOADS and not _is_private(item):
            self._need_stores(_window(self._windows, item))

    def _need_place(self, item: Instruction) -> None:
        guard = [item.guard] if item.guard is not None else []
        places = [x for x in item.operands if isinstance(x, Address)]
        self._need(_registers([*places, *guard]))

    def _need(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._needed:
                self._needed.add(name)
                self._waiting += self._writers[name]

    def _need_stores(self, read: Window | None) -> None:
        if read in self._read:
            return
        self._read.add(read)
        for index in self._stores:
            item = self._body[index]
            assert isinstance(item, Instruction)
            written = _window(self._windows, item)
            if read is None or written is None or read == written:
                self._waiting.append(index)


def slice_for_counting(kernel: FlatKernel) -> Slice:
    """What can be left out of the kernel where only its accesses and branches count."""
    slicer = _Slicer(kernel)
    slicer.follow()
    left_out: set[int] = set()
    address_only: set[int] = set()
    for index, item in enumerate(kernel.body):
        if not isinstance(item, Instruction) or index in slicer.run:
            continue
        touches = _root(item) in _LOADS | _STORES or _is_copy(item)
        (address_only if touches and not _is_private(item) else left_out).add(index)
    return Slice(frozenset(left_out), frozenset(address_only))


def _root(item: Instruction) -> str:
    return item.opcode.split(".")[0]


def _is_copy(item: Instruction) -> bool:
    """cp.async of a thread: not of groups, not in bulk."""
    return item.opcode.startswith(("cp.async.ca", "cp.async.cg"))


def _acts(item: Instruction) -> bool:
    if ".cc" in item.opcode or "volatile" in item.opcode:
        return True
    return _root(item) in _ACT and not _is_copy(item)


def _is_private(item: Instruction) -> bool:
    """Parameters and local memory: nothing that is counted."""
    return {"param", "param::entry", "param::func", "local"} & set(item.opcode.split(".")) != set()


def _window(windows: dict[str, Window], item: Instruction) -> Window | None:
    """The array that a memory instruction reaches, where that is plain to see; of a copy, where
    it copies to."""
    spaces = set(item.opcode.split("."))
    if spaces & {"shared", "shared::cta", "shared::cluster"}:
        return Window.SHARED
    if "local" in spaces:
        return Window.LOCAL
    for operand in item.operands:
        if isinstance(operand, Address):
            if isinstance(operand.base, Register):
                return windows.get(operand.base.name)
            if isinstance(operand.base, Symbol):
                return Window.MODULE
    return None


def _registers(operands: Iterable[Operand]) -> Iterable[str]:
    for operand in operands:
        if isinstance(operand, Register):
            yield operand.name
        elif isinstance(operand, Not):
            yield operand.register.name
        elif isinstance(operand, Address):
            if isinstance(operand.base, Register):
                yield operand.base.name
        elif isinstance(operand, Vector | Group):
            yield from _registers(operand.items)
        elif isinstance(operand, Pair):
            yield from _registers((operand.first, operand.second))
        elif isinstance(operand, Coordinates):
            yield from _registers((operand.base, *operand.items))
