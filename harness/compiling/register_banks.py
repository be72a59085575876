"""How long a scheduler takes to issue a loop, as the two banks of the register file permit."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.compiling.waits import Instruction

_SOURCE = re.compile(r"-?\|?\[?R(\d+)(\.reuse)?")
_WITHOUT_RESULT = ("ST", "RED", "BAR", "BRA", "EXIT")
_AHEAD = 1
"""Reads of a bank that may still be open when the next instruction is issued. With one, the loops
of solutions/15 and 16 come out as their measured times differ."""


def issue_clocks(body: Iterable[Instruction]) -> int:
    """Return the clocks that one scheduler takes to issue the instructions of one warp.

    It issues one a clock. Each of the two banks, of even and of odd registers, gives one register a
    clock, and what the instruction before read under .reuse need not be read again. These rules are
    those that solutions/16_register_banks.cu measured on an H100.
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
            if found is None or (place == 0 and not each.name.startswith(_WITHOUT_RESULT)):
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
