"""Leaves out of a kernel what decides no address and no branch, to check the bounds of accesses.

Products and sums are most of a kernel's work, and whether an access is inside its array rarely
depends on them. This is a backward program slice (M. Weiser, "Program Slicing", ICSE 1981), whose
criteria are the addresses of all accesses and everything that is not arithmetic: branches,
barriers, atomics, copies.

An access of which only the address matters keeps its instruction, with `_` for its data.
"""

from collections.abc import Iterator
from dataclasses import replace

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.ptx.effects import COMPUTED, is_ordered, read_by, written_by
from harness.ptxcpu.ptx.syntax import Address, Instruction, Label, Operand, Sink, Vector


def without_data(kernel: InlinedKernel) -> tuple[InlinedKernel, frozenset[int]]:
    """Return the kernel with the same accesses, in the same order, and without other results; and
    the indices of the asynchronous copies whose data nothing reads."""
    found = _Slice(kernel)
    reduced = replace(kernel, body=[*found.body()])
    return reduced, found.unread_copies(reduced)


class _Slice:
    """Finds the registers on which an address or a branch may depend.

    reads_memory: whether one of them comes from memory; then all data that is stored matters.
    """

    def __init__(self, kernel: InlinedKernel) -> None:
        self._kernel = kernel
        self._needed: set[str] = set()
        self.reads_memory = False
        self._writers: dict[str, list[Instruction]] = {}
        waiting: list[str] = []
        stores = []
        for item in kernel.body:
            if isinstance(item, Label):
                continue
            for name in written_by(item):
                self._writers.setdefault(name, []).append(item)
            if _is_store(item):
                stores.append(item)
            waiting += _always_read(item)
        self._follow(waiting)
        if self.reads_memory:
            self._follow([name for item in stores for name in read_by(item)])

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
                    self.reads_memory |= any(isinstance(x, Address) for x in item.operands)

    def unread_copies(self, kernel: InlinedKernel) -> frozenset[int]:
        """Return the indices of the copies by `cp.async` to memory that no needed load reads."""
        if self.reads_memory:
            return frozenset()
        return frozenset(
            index
            for index, item in enumerate(kernel.body)
            if isinstance(item, Instruction)
            and item.opcode.startswith(("cp.async.ca.", "cp.async.cg."))
        )

    def body(self) -> Iterator[Instruction | Label]:
        for item in self._kernel.body:
            if isinstance(item, Label) or not self._needed.isdisjoint(written_by(item)):
                yield item
            elif _is_load(item) and not is_ordered(item):
                yield replace(item, operands=(_unused(item.operands[0]), *item.operands[1:]))
            elif _is_store(item) and not self.reads_memory:
                yield replace(item, operands=(item.operands[0], _unused(item.operands[1])))
            elif not is_computed(item):
                yield item


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
