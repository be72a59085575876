"""Finds the registers that a function may read before it has written them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_REGISTER = ", ptr %r"
_TARGET = re.compile(r"label %([\w.]+)")
_JUMPS = ("  br ", "  switch ")


@dataclass
class _Block:
    """A basic block. Sets of registers, of which there are thousands, are bit masks in integers."""

    read: int = 0
    """The registers that the block reads before it writes them."""
    written: int = 0
    targets: list[str] = field(default_factory=list)


def read_before_written(lines: Sequence[str]) -> frozenset[str]:
    """Return the names `%r…` that may be read before they are written, from the first of these
    lines.

    Paths that leave the lines read nothing more.
    """
    number: dict[str, int] = {}
    blocks = _blocks(lines, number)
    needed = dict.fromkeys(blocks, 0)
    changed = True
    while changed:
        changed = False
        for name, block in reversed(blocks.items()):
            behind = 0
            for target in block.targets:
                behind |= needed.get(target, 0)
            found = block.read | (behind & ~block.written)
            if found != needed[name]:
                needed[name] = found
                changed = True
    return frozenset(name for name, bit in number.items() if needed[""] >> bit & 1)


def _blocks(lines: Sequence[str], number: dict[str, int]) -> dict[str, _Block]:
    """Return the blocks in the order of the text; the first has no name. number: receives the bit
    of every register."""
    block = _Block()
    blocks = {"": block}
    for line in lines:
        if line.endswith(":"):
            block = blocks[line[:-1]] = _Block()
        elif line.startswith(_JUMPS):
            block.targets += _TARGET.findall(line)
        elif _REGISTER in line:
            access, _, register = line.rpartition(", ptr ")
            bit = 1 << number.setdefault(register, len(number))
            if access.startswith("  store "):
                block.written |= bit
            elif not block.written & bit:
                block.read |= bit
    return blocks
