"""Machine instructions, and the delays in a loop of them: waits for results, and conflicts of
register banks."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.protocol.report import Producer, Wait

_PRODUCERS = {
    **dict.fromkeys(("LDG", "LD", "ATOMG", "ATOM"), Producer.GLOBAL),
    "LDL": Producer.LOCAL,
    **dict.fromkeys(("LDS", "LDSM", "ATOMS", "SHFL"), Producer.SHARED),
    **dict.fromkeys(("MUFU", "F2F", "F2I", "I2F", "FRND"), Producer.SPECIAL),
    **dict.fromkeys(("DFMA", "DADD", "DMUL"), Producer.FP64),
    **dict.fromkeys(("HMMA", "IMMA", "DMMA"), Producer.TENSOR),
}
_ARITHMETIC_DISTANCE = 8
"""The number of instructions after which the result of an arithmetic instruction is available."""
_COPIES = 3
"""The number of iterations to examine: the last one may wait for loads issued two before it."""


INSTRUCTION_BYTES = 16
"""The size of an instruction on every architecture since sm_70."""


@dataclass(frozen=True)
class Instruction:
    """One machine instruction. line: of the submission's file, where the compiler names one."""

    opcode: str
    """The opcode with its modifiers: LDG.E.128."""
    operands: str
    predicate: str | None
    line: int | None

    @cached_property
    def name(self) -> str:
        """The opcode without modifiers: LDG."""
        return self.opcode.partition(".")[0]

    @property
    def text(self) -> str:
        guard = f"{self.predicate} " if self.predicate else ""
        return f"{guard}{self.opcode} {self.operands.replace(',', ', ')}".rstrip()

    @property
    def target(self) -> int | None:
        """Return the index of the instruction that a branch goes to."""
        if self.name not in ("BRA", "BRX") or not self.operands:
            return None
        last = self.operands.rpartition(",")[2].strip()
        return int(last, 16) // INSTRUCTION_BYTES if last.startswith("0x") else None


def waits(body: Sequence[Instruction]) -> tuple[Wait, ...]:
    """Return the waits of one iteration, without those that an earlier wait includes.

    Results of one kind arrive in order, so a wait for one includes all before it.
    """
    size = len(body)
    found = (wait for wait in _all_waits(body) if wait.used >= (_COPIES - 1) * size)
    latest: dict[Producer, int] = {}
    kept = []
    for wait in found:
        if wait.issued > latest.get(wait.producer, -1):
            latest[wait.producer] = wait.issued
            kept.append(wait)
    start = (_COPIES - 1) * size
    return tuple(each._replace(issued=each.issued - start, used=each.used - start) for each in kept)


def loads_together(body: Sequence[Instruction]) -> tuple[dict[int, int], ...]:
    """Return the loads from global memory that are under way when a warp waits for one of them.
    They are by source line, with one entry for each such wait."""
    found: list[dict[int, int]] = []
    together: dict[int, int] = {}
    pending: set[int] = set()
    for each in body:
        written, read = operand_registers(each)
        if pending & read:
            found.append(together)
            together, pending = {}, set()
        pending -= set(written)
        if _producer(each) is Producer.GLOBAL and each.line is not None:
            together[each.line] = together.get(each.line, 0) + 1
            pending |= set(written)
    return tuple(found)


def _all_waits(body: Sequence[Instruction]) -> Iterable[Wait]:
    pending: dict[int, tuple[Producer, int]] = {}
    groups: list[int] = []
    copied = 0
    registers = [(each, *operand_registers(each), _producer(each)) for each in body]
    for index, (each, written, read, produces) in enumerate(registers * _COPIES):
        for register in read:
            producer, issued = pending.get(register, (Producer.ARITHMETIC, index))
            near = index - issued <= _ARITHMETIC_DISTANCE
            if issued < index and (producer is not Producer.ARITHMETIC or near):
                loads = producer is Producer.GLOBAL
                line = body[issued % len(body)].line if loads else None
                yield Wait(producer, issued, index, line)
        if each.name == "LDGSTS":
            copied = index
        elif each.name == "LDGDEPBAR":
            groups.append(copied)
        elif each.opcode.startswith("DEPBAR.LE") and groups:
            count = re.search(r"SB\d+,\s*(0x[0-9a-f]+|\d+)", each.operands)
            left = int(count[1], 0) if count else 0
            if left < len(groups):
                yield Wait(Producer.GLOBAL, groups[-1 - left], index)
        for register in written:
            pending[register] = (produces, index)


def _producer(instruction: Instruction) -> Producer:
    """Return the source of an instruction's result.

    A generic load counts as a load from shared memory if only the block needs to see the value, as
    with barriers of the library. It also counts as one if the library itself loads, as wmma does.
    """
    by_library = "STRONG.SM" in instruction.opcode or instruction.line is None
    if instruction.name in ("LD", "ATOM") and by_library:
        return Producer.SHARED
    return _PRODUCERS.get(instruction.name, Producer.ARITHMETIC)


def operand_registers(instruction: Instruction) -> tuple[range | tuple[()], set[int]]:
    """Return the registers that an instruction writes and those that it reads."""
    operands = instruction.operands
    written: range | tuple[()] = ()
    if instruction.name != "BAR":  # whose first register is read; others begin with an address
        first = _RESULT.match(operands)
        if first:
            start = int(first[1])
            written = range(start, start + _words(instruction))
            operands = operands[first.end() :]
    return written, {int(number) for number in _REGISTER.findall(operands)}


_RESULT = re.compile(r"\s*R(\d+)(?:\.\w+)?\s*(?:,|$)")
_REGISTER = re.compile(r"\bR(\d+)")


def _words(instruction: Instruction) -> int:
    """Return how many registers the result takes."""
    modifiers = instruction.opcode.split(".")[1:]
    if instruction.name.startswith(("HMMA", "IMMA")) or "128" in modifiers:
        return 4
    wide = {"64", "WIDE", "F64"} & set(modifiers)
    return 2 if wide or instruction.name in ("DFMA", "DADD", "DMUL", "DMMA") else 1


_SOURCE = re.compile(r"-?\|?\[?R(\d+)(\.reuse)?")
_WRITES_NO_REGISTER = ("ST", "RED", "BAR", "BRA", "EXIT")
_AHEAD = 1
"""The number of reads of a bank that may be outstanding when the next instruction is issued. With
one, the estimates for solutions/15 and 16 differ as their measured times do."""


def issue_clocks(body: Iterable[Instruction]) -> int:
    """Return the clocks that one scheduler takes to issue the instructions of one warp.

    It issues one per clock. Each of the two banks, of even and of odd registers, delivers one
    register per clock. Operands that the previous instruction read with .reuse need not be read
    again. These rules were measured with solutions/16_register_banks.cu on an H100.
    """
    clocks = 0
    backlog = [0, 0]
    kept: dict[int, int] = {}
    for each in body:
        read: set[int] = set()
        keep: dict[int, int] = {}
        operands = [operand.strip() for operand in each.operands.split(",")]
        for place, operand in enumerate(operands):
            found = _SOURCE.match(operand)
            if found is None or (place == 0 and not each.name.startswith(_WRITES_NO_REGISTER)):
                continue
            register = int(found[1])
            if kept.get(place) != register:
                read.add(register)
            if found[2]:
                keep[place] = register
        kept = keep
        stalled = max(0, max(backlog) - _AHEAD)
        clocks += stalled + 1
        for bank in (0, 1):
            backlog[bank] = max(0, backlog[bank] - stalled)
            backlog[bank] += sum(register % 2 == bank for register in read)
            backlog[bank] = max(0, backlog[bank] - 1)
    return clocks
