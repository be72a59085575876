"""Finds the registers that decide branches: a loop polls memory only if it loads one of them."""

from collections import defaultdict
from collections.abc import Sequence

from harness.ptxcpu.ptx.effects import read_by, written_by
from harness.ptxcpu.ptx.syntax import Instruction, Label

_WRITES_MEMORY = ("st.", "atom.", "red.")


def deciding_registers(body: Sequence[Instruction | Label]) -> set[str]:
    """Return the registers whose values may decide whether any branch is taken, also by way of
    memory."""
    items = [item for item in body if isinstance(item, Instruction)]
    written = defaultdict(list)
    for item in items:
        for name in written_by(item):
            written[name].append(item)
    pending = [x for item in items if item.opcode.startswith(("bra", "brx")) for x in read_by(item)]
    found: set[str] = set()
    by_memory = False
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        for item in written[name]:
            pending += read_by(item)
            if not by_memory and _reads_memory(item):
                by_memory = True
                stores = (x for x in items if x.opcode.startswith(_WRITES_MEMORY))
                pending += [register for each in stores for register in read_by(each)]
    return found


def _reads_memory(item: Instruction) -> bool:
    is_parameter = item.opcode.startswith("ld.param")
    return item.opcode.startswith(("ld.", "ldu.", "atom.")) and not is_parameter
