"""Leaves out of a kernel what decides no address and no branch, to check the bounds of accesses.

Products and sums are most of a kernel's work, and whether an access is inside its array rarely
depends on them. This is a backward program slice (M. Weiser, "Program Slicing", ICSE 1981), whose
criteria are the addresses of all accesses and everything that is not arithmetic: branches,
barriers, atomics, copies.

An access of which only the address matters keeps its instruction, with `_` for its data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.analysis.pointers import pointer_windows
from harness.ptxcpu.ptx.effects import COMPUTED, is_ordered, read_by, written_by
from harness.ptxcpu.ptx.syntax import (
    Address,
    Instruction,
    Label,
    Operand,
    Register,
    Sink,
    Symbol,
    Vector,
)
from harness.ptxcpu.runtime.layout import Window


def without_data(kernel: InlinedKernel) -> tuple[InlinedKernel, frozenset[int]]:
    """Return the kernel with the same accesses, in the same order, and without other results; and
    the indices of the asynchronous copies whose data nothing reads."""
    found = _Slice(kernel)
    reduced = replace(kernel, body=[*found.body()])
    return reduced, found.unread_copies(reduced)


_Memory = int | str | None
"""A window, the name of a variable in shared or module memory, or a memory that is not known."""


class _Slice:
    """Finds the registers and the memories on which an address or a branch may depend."""

    def __init__(self, kernel: InlinedKernel) -> None:
        self._kernel = kernel
        self._pointers = pointer_windows(kernel)
        self._variables = _variables(kernel)
        self._needed: set[str] = set()
        self._memories: set[_Memory] = set()
        """The memories with needed data."""
        self._writers: dict[str, list[Instruction]] = {}
        waiting: list[str] = []
        stores, copies = [], []
        for item in kernel.body:
            if isinstance(item, Label):
                continue
            for name in written_by(item):
                self._writers.setdefault(name, []).append(item)
            if _is_store(item):
                stores.append(item)
            elif item.opcode.startswith("cp."):
                copies.append({*self._accessed(item)})
            waiting += _always_read(item)
        size = -1
        while size != len(self._memories):
            size = len(self._memories)
            self._follow(waiting)
            for ends in copies:
                if self._are_needed(ends):
                    self._memories |= ends
            waiting = [
                name
                for item in stores
                if self._are_needed(self._accessed(item))
                for name in read_by(item)
            ]

    def _follow(self, waiting: list[str]) -> None:
        """Add these registers, and all those from which they are computed."""
        while waiting:
            name = waiting.pop()
            if name in self._needed:
                continue
            self._needed.add(name)
            for item in self._writers.get(name, ()):
                waiting += read_by(item)
                if not is_computed(item):
                    self._memories.update(self._accessed(item))

    def _accessed(self, item: Instruction) -> Iterator[_Memory]:
        """Return the memories to which the addresses of an instruction may point."""
        root, *modifiers = item.opcode.split(".")
        addresses = [x for x in item.operands if isinstance(x, Address)]
        for place, address in enumerate(addresses):
            is_shared = place == 0 if root == "cp" else "shared" in modifiers
            if isinstance(address.base, Symbol):
                yield _variable(self._kernel, address.base.name)
            elif isinstance(address.base, Register):
                window = self._pointers.get(address.base.name)
                if is_shared or window == Window.MODULE:
                    yield from self._variables.get(address.base.name) or {None}
                else:
                    yield window
            else:
                yield None

    def _are_needed(self, memories: Iterable[_Memory]) -> bool:
        """Return whether a needed load may read one of these memories."""
        found = {*memories}
        is_known = None not in found | self._memories
        return not found.isdisjoint(self._memories) if is_known else bool(self._memories)

    def unread_copies(self, kernel: InlinedKernel) -> frozenset[int]:
        """Return the indices of the copies by `cp.async` to memory that no needed load reads."""
        return frozenset(
            index
            for index, item in enumerate(kernel.body)
            if isinstance(item, Instruction)
            and item.opcode.startswith(("cp.async.ca.", "cp.async.cg."))
            and not self._are_needed(self._accessed(replace(item, operands=item.operands[:1])))
        )

    def body(self) -> Iterator[Instruction | Label]:
        for item in self._kernel.body:
            if isinstance(item, Label) or not self._needed.isdisjoint(written_by(item)):
                yield item
            elif _is_load(item) and not is_ordered(item):
                yield replace(item, operands=(_unused(item.operands[0]), *item.operands[1:]))
            elif _is_store(item) and not self._are_needed(self._accessed(item)):
                yield replace(item, operands=(item.operands[0], _unused(item.operands[1])))
            elif not is_computed(item):
                yield item


def _variables(kernel: InlinedKernel) -> dict[str, set[_Memory]]:
    """Return the variables from whose addresses each register is computed; with None, if it is also
    read from memory."""
    computed = [x for x in kernel.body if isinstance(x, Instruction) and is_computed(x)]
    others = (x for x in kernel.body if isinstance(x, Instruction) and not is_computed(x))
    loaded = {name for item in others for name in written_by(item)}
    found: dict[str, set[_Memory]] = {}
    changed = True
    while changed:
        changed = False
        for item in computed:
            names: set[_Memory] = {
                _variable(kernel, x.name) for x in item.operands if isinstance(x, Symbol)
            }
            names = names.union(*(found.get(name, ()) for name in read_by(item)))
            for name in written_by(item):
                new = names | {None} if name in loaded else names
                if not new <= found.get(name, set()):
                    found.setdefault(name, set()).update(new)
                    changed = True
    return found


def _variable(kernel: InlinedKernel, name: str) -> str:
    """Return one name for all variables at one place, as in dynamic shared memory."""
    places = kernel.shared.variables
    if name not in places:
        return name
    return next(x for x, place in places.items() if place.offset == places[name].offset)


def is_computed(item: Instruction) -> bool:
    """Return whether an instruction only computes its results; the carry flag is another one."""
    root, *modifiers = item.opcode.split(".")
    is_value = root in COMPUTED or item.opcode.startswith("ld.param")
    return is_value and bool(written_by(item)) and "cc" not in modifiers


def _is_load(item: Instruction) -> bool:
    return item.opcode.startswith("ld.") and not item.opcode.startswith("ld.param")


def _is_store(item: Instruction) -> bool:
    """Return whether an instruction stores data of which another thread cannot learn the order."""
    is_plain = item.opcode.startswith("st.") and not item.opcode.startswith("st.param")
    return is_plain and not is_ordered(item)


def _always_read(item: Instruction) -> set[str]:
    """Return the registers that an instruction reads, without a value that it only stores."""
    if is_computed(item):
        return set()
    return read_by(replace(item, operands=item.operands[:1]) if _is_store(item) else item)


def _unused(data: Operand) -> Operand:
    return Vector((Sink(),) * len(data.items)) if isinstance(data, Vector) else Sink()
