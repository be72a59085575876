"""Finds loads of the value that a compare-and-swap then expects."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from harness.ptxcpu.ptx.effects import COMPUTED, is_ordered, written_by
from harness.ptxcpu.ptx.syntax import Address, Instruction, Label, Operand, Register


def relax_loads_before_swaps(body: Sequence[Instruction | Label]) -> list[Instruction | Label]:
    """Return the body with `ld.relaxed` for loads of a value that a compare-and-swap at the same
    address expects.

    The programming guide's `atomicAdd` of doubles begins with such a plain load. It is no race: if
    the value is out of date, the swap fails and returns the present one.
    """
    if not any(isinstance(item, Instruction) and _is_swap(item) for item in body):
        return list(body)
    found = {id(load) for load in _Loads(body).before_swaps()}
    return [
        replace(item, opcode=item.opcode.replace(".weak", "").replace("ld.", "ld.relaxed.gpu.", 1))
        if id(item) in found and isinstance(item, Instruction)
        else item
        for item in body
    ]


class _Loads:
    """The loads of a kernel's body."""

    def __init__(self, body: Sequence[Instruction | Label]) -> None:
        self.items = [item for item in body if isinstance(item, Instruction)]
        self.writers: dict[str, list[Instruction]] = defaultdict(list)
        for item in self.items:
            for name in written_by(item):
                self.writers[name].append(item)

    def before_swaps(self) -> Iterator[Instruction]:
        for swap in filter(_is_swap, self.items):
            _, address, expected, _ = swap.operands
            pending, seen = [expected], set[Operand]()
            while pending:
                operand = pending.pop()
                if operand in seen or not isinstance(operand, Register):
                    continue
                seen.add(operand)
                for item in self.writers[operand.name]:
                    if item.opcode.startswith("mov."):
                        pending.append(item.operands[1])
                    elif _is_plain_load(item) and self._is_same(item.operands[1], address):
                        yield item

    def _is_same(self, one: Operand, other: Operand) -> bool:
        return (
            isinstance(one, Address)
            and isinstance(other, Address)
            and one.offset == other.offset
            and self._value(one.base) == self._value(other.base)
        )

    def _value(self, operand: Operand, depth: int = 8) -> Hashable:
        """Return how an operand is computed; equal computations have equal addresses. An address in
        global memory equals the generic one that it was converted from."""
        writers = self.writers[operand.name] if isinstance(operand, Register) else []
        if len(writers) != 1 or not depth or not _is_computation(writers[0]):
            return operand
        values = [self._value(each, depth - 1) for each in writers[0].operands[1:]]
        is_copy = writers[0].opcode.startswith(("mov.", "cvta."))
        return values[0] if is_copy else (writers[0].opcode, *values)


def _is_computation(item: Instruction) -> bool:
    return item.opcode.split(".")[0] in COMPUTED and item.guard is None


def _is_swap(item: Instruction) -> bool:
    parts = item.opcode.split(".")
    return parts[0] == "atom" and "cas" in parts and len(item.operands) == 4


def _is_plain_load(item: Instruction) -> bool:
    return (
        item.opcode.startswith("ld.")
        and isinstance(item.operands[0], Register)
        and {"nc", "param"}.isdisjoint(item.opcode.split("."))
        and not is_ordered(item)
    )
