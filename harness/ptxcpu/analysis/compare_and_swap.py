"""Finds loads of the value that a compare-and-swap then expects."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.ptxcpu.ptx.effects import is_ordered, written_by
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
        replace(item, opcode=item.opcode.replace("ld.", "ld.relaxed.gpu.", 1))
        if id(item) in found and isinstance(item, Instruction)
        else item
        for item in body
    ]


class _Loads:
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
            and self._origin(one.base) == self._origin(other.base)
        )

    def _origin(self, base: Operand) -> Operand:
        """Return what a register was copied from, if only one instruction writes it."""
        while isinstance(base, Register):
            writers = self.writers[base.name]
            if len(writers) != 1 or not writers[0].opcode.startswith(("mov.", "cvta.")):
                break
            base = writers[0].operands[1]
        return base


def _is_swap(item: Instruction) -> bool:
    parts = item.opcode.split(".")
    return parts[0] == "atom" and "cas" in parts and len(item.operands) == 4


def _is_plain_load(item: Instruction) -> bool:
    others = {"nc", "weak", "param"}
    return (
        item.opcode.startswith("ld.")
        and others.isdisjoint(item.opcode.split("."))
        and not is_ordered(item)
    )
