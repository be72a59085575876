"""Finds the registers that a function may read before it has written them, and the stores that
nothing reads."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_REGISTER = ", ptr %r"
_TARGET = re.compile(r"label %([\w.]+)")
_JUMPS = ("  br ", "  switch ")


@dataclass
class _Block:
    """A basic block. Sets of registers, of which there are thousands, are bit masks in integers."""

    accesses: list[tuple[int, str, bool]] = field(default_factory=list)
    """Of each line that accesses a register: its number, the register, and whether it stores."""
    targets: list[str] = field(default_factory=list)
    read: int = 0
    """The registers that the block reads before it writes them."""
    written: int = 0


@dataclass(frozen=True)
class Liveness:
    """The registers that some lines of a function read too early or write in vain.

    unwritten: the registers `%r…` that may be read before they are written, from the first line.
    dead: the numbers of the lines that store to a register what nothing reads.
    """

    unwritten: frozenset[str]
    dead: frozenset[int]


def liveness(lines: Sequence[str]) -> Liveness:
    """Analyse these lines. Paths that leave them read nothing more."""
    blocks = _blocks(lines)
    accesses = [access for block in blocks.values() for access in block.accesses]
    loaded = dict.fromkeys(register for _, register, is_store in accesses if not is_store)
    bits = {register: 1 << number for number, register in enumerate(loaded)}
    needed = _needed(blocks, bits)
    dead = set()
    for block in blocks.values():
        wanted = _behind(block, needed)
        for at, register, is_store in reversed(block.accesses):
            bit = bits.get(register, 0)
            if not is_store:
                wanted |= bit
            elif wanted & bit:
                wanted ^= bit
            else:
                dead.add(at)
    unwritten = (register for register, bit in bits.items() if needed[""] & bit)
    return Liveness(frozenset(unwritten), frozenset(dead))


def _needed(blocks: dict[str, _Block], bits: Mapping[str, int]) -> dict[str, int]:
    """Return the registers that are read at or after the beginning of each block before they are
    written."""
    for block in blocks.values():
        for _, register, is_store in block.accesses:
            bit = bits.get(register, 0)
            if is_store:
                block.written |= bit
            elif not block.written & bit:
                block.read |= bit
    needed = dict.fromkeys(blocks, 0)
    changed = True
    while changed:
        changed = False
        for name, block in reversed(blocks.items()):
            found = block.read | (_behind(block, needed) & ~block.written)
            if found != needed[name]:
                needed[name] = found
                changed = True
    return needed


def _behind(block: _Block, needed: Mapping[str, int]) -> int:
    """Return the registers that are read after a block."""
    found = 0
    for target in block.targets:
        found |= needed.get(target, 0)
    return found


def _blocks(lines: Sequence[str]) -> dict[str, _Block]:
    """Return the blocks in the order of the text; the first has no name."""
    block = _Block()
    blocks = {"": block}
    for at, line in enumerate(lines):
        if line.endswith(":"):
            block = blocks[line[:-1]] = _Block()
        elif line.startswith(_JUMPS):
            block.targets += _TARGET.findall(line)
        elif _REGISTER in line:
            access, _, register = line.rpartition(", ptr ")
            block.accesses.append((at, register, access.startswith("  store ")))
    return blocks
