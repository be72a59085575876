"""Finds loads whose values a kernel uses only where a predicate selects them.

The compiler may execute a load before the condition on which the source reads the memory. Then it
selects the loaded value or another one. Only a selected value is one that the source reads: any
other may be uninitialised, and other threads may write it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.ptxcpu.ptx.effects import COMPUTED, is_ordered, read_by, written_by
from harness.ptxcpu.ptx.syntax import Instruction, Label, Register, Symbol, elements

_MAX_PATH = 1000
"""The limit of the instructions between a load and the selections of its value."""

_VALUES = COMPUTED - {"fence", "membar", "prefetch"} | {"ld"}
"""Instructions that change nothing but registers."""


@dataclass(frozen=True)
class Selection:
    """An instruction that selects an element of what the load at this index loaded.

    wanted: the instruction selects the element if its predicate has this value.
    """

    load: int
    element: int
    wanted: bool


def selections(body: Sequence[Instruction | Label]) -> dict[int, list[Selection]]:
    """Return the selections of loaded values that are not used otherwise, by the index of the
    instruction that selects."""
    labels = {item.name: index for index, item in enumerate(body) if isinstance(item, Label)}
    reads: defaultdict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(body):
        if isinstance(item, Instruction):
            for name in read_by(item):
                reads[name].append(index)
    found: defaultdict[int, list[Selection]] = defaultdict(list)
    for index, item in enumerate(body):
        if not isinstance(item, Instruction) or not _is_plain_load(item):
            continue
        path = None
        for i, element in enumerate(elements(item.operands[0])):
            if not isinstance(element, Register) or not _may_be_selected(body, reads[element.name]):
                continue
            path = path or _path(body, index, labels)
            for at, wanted in _choices(body, path, element.name, reads):
                found[at].append(Selection(index, i, wanted))
    return found


def _is_plain_load(item: Instruction) -> bool:
    is_load = item.opcode.startswith("ld.") and not item.opcode.startswith("ld.param")
    return is_load and item.guard is None and not is_ordered(item)


def _may_be_selected(body: Sequence[Instruction | Label], reads: Sequence[int]) -> bool:
    """Return whether a selection is near each read. Most loads are left out here, in no time."""
    return bool(reads) and all(
        any(isinstance(x, Instruction) and x.opcode.startswith("selp") for x in body[at : at + 8])
        for at in reads
    )


def _path(
    body: Sequence[Instruction | Label], load: int, labels: Mapping[str, int]
) -> dict[int, None]:
    """Return the instructions that follow a load in any case, up to one that may change memory."""
    path: dict[int, None] = {}
    at = load + 1
    while at < len(body) and len(path) < _MAX_PATH:
        item = body[at]
        if isinstance(item, Instruction):
            root = item.opcode.partition(".")[0]
            target = item.operands[0] if root == "bra" and item.guard is None else None
            if isinstance(target, Symbol) and labels.get(target.name, 0) > at:
                at = labels[target.name]
                continue
            if root not in _VALUES or is_ordered(item):
                break
            path[at] = None
        at += 1
    return path


def _choices(
    body: Sequence[Instruction | Label],
    path: Mapping[int, None],
    loaded: str,
    reads: Mapping[str, Sequence[int]],
) -> list[tuple[int, bool]]:
    """Return where a loaded register, or what is computed from it, is selected, and for which
    value of the predicate. Return nothing if it may be used otherwise."""
    found = []
    derived = {loaded}
    for at in path:
        item = body[at]
        assert isinstance(item, Instruction)
        if derived.isdisjoint(read_by(item)):
            derived.difference_update(written_by(item) if item.guard is None else ())
            continue
        if item.guard is not None:
            return []
        if not item.opcode.startswith("selp."):
            if item.opcode.startswith(("ld.", "setp.")):
                return []
            derived.update(written_by(item))
            continue
        _, a, b, predicate = item.operands
        if not isinstance(predicate, Register) or predicate.name in derived:
            return []
        for operand, wanted in ((a, True), (b, False)):
            if isinstance(operand, Register) and operand.name in derived:
                found.append((at, wanted))
        derived.difference_update(written_by(item))
    is_read_elsewhere = any(at not in path for name in derived for at in reads.get(name, ()))
    return [] if is_read_elsewhere else found
