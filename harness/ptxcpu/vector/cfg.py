"""The control-flow graph of a kernel: basic blocks, dominators, and the regions of branches.

Dominators are found as by K. D. Cooper, T. J. Harvey and K. Kennedy, "A Simple, Fast Dominance
Algorithm", 2001.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.ptx.syntax import Instruction, Label, Symbol

_ENDS = ("ret", "exit", "trap")
_MEETINGS = ("bar", "barrier", "mbarrier", "shfl", "vote", "match", "redux", "call", "brx", *_ENDS)
"""Instructions at which lanes must not be apart, or that a region does not contain."""

MAX_REGION = 400
"""Instructions of a region that is worth a second version of its code."""


@dataclass(frozen=True)
class BasicBlock:
    """The items [first, end) of a kernel's body, and the numbers of the blocks that may follow.

    The number of the virtual block behind all ends is the count of blocks.
    """

    first: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Region:
    """The blocks between a branch and the block where its ways meet again, in topological order."""

    blocks: tuple[int, ...]
    join: int


class ControlFlowGraph:
    """The basic blocks of a kernel, in the order of its body."""

    def __init__(self, kernel: InlinedKernel) -> None:
        self.kernel = kernel
        self.blocks = _blocks(kernel)
        successors = [block.successors for block in self.blocks] + [()]
        self.dominators = immediate_dominators(successors, 0)
        reverse: list[list[int]] = [[] for _ in successors]
        for number, targets in enumerate(successors):
            for target in targets:
                reverse[target].append(number)
        self.postdominators = immediate_dominators(reverse, len(self.blocks))

    def block_of(self, index: int) -> int:
        """The number of the block that an item of the body is in."""
        return next(i for i, block in enumerate(self.blocks) if block.first <= index < block.end)

    def region(self, number: int) -> Region | None:
        """What the branch at the end of a block decides on.

        None where the ways meet only at the end of the kernel, or where the region has a loop, a
        place where threads meet, or too many instructions.
        """
        join = self.postdominators.get(number)
        if join is None or join == len(self.blocks):
            return None
        order: list[int] = []
        on_path: set[int] = set()
        if not all(self._visit(x, join, order, on_path) for x in self.blocks[number].successors):
            return None
        if number in order or sum(self._size(x) for x in order) > MAX_REGION:
            return None
        return Region(tuple(reversed(order)), join)

    def _visit(self, number: int, join: int, order: list[int], on_path: set[int]) -> bool:
        """Append what is reached from a block before the join, last blocks first. Says whether
        there is neither a loop nor a meeting."""
        if number == join or number in order:
            return True
        if number in on_path or number == len(self.blocks) or self._has_meeting(number):
            return False
        on_path.add(number)
        if not all(self._visit(x, join, order, on_path) for x in self.blocks[number].successors):
            return False
        on_path.remove(number)
        order.append(number)
        return True

    def instructions(self, number: int) -> list[tuple[int, Instruction]]:
        """The instructions of a block with their indices."""
        block = self.blocks[number]
        items = enumerate(self.kernel.body[block.first : block.end], block.first)
        return [(i, item) for i, item in items if isinstance(item, Instruction)]

    def _has_meeting(self, number: int) -> bool:
        return any(item.opcode.split(".")[0] in _MEETINGS for _, item in self.instructions(number))

    def _size(self, number: int) -> int:
        return self.blocks[number].end - self.blocks[number].first


def _blocks(kernel: InlinedKernel) -> list[BasicBlock]:
    body = kernel.body
    starts = {0}
    for index, item in enumerate(body):
        if isinstance(item, Label):
            starts.add(index)
        elif item.opcode.split(".")[0] in ("bra", "brx", *_ENDS):
            starts.add(index + 1)
    firsts = sorted(start for start in starts if start < len(body))
    number_at = {first: number for number, first in enumerate(firsts)}
    labels = {x.name: number_at[i] for i, x in enumerate(body) if isinstance(x, Label)}
    blocks = []
    for number, first in enumerate(firsts):
        end = firsts[number + 1] if number + 1 < len(firsts) else len(body)
        blocks.append(BasicBlock(first, end, _successors(kernel, end, number, len(firsts), labels)))
    return blocks


def _successors(
    kernel: InlinedKernel, end: int, number: int, count: int, labels: Mapping[str, int]
) -> tuple[int, ...]:
    """The blocks after block `number`, which ends before the item `end`."""
    last = kernel.body[end - 1]
    following = (number + 1,) if number + 1 < count else (count,)
    if isinstance(last, Label):
        return following
    root = last.opcode.split(".")[0]
    if root == "brx":
        table = last.operands[1]
        names = kernel.branch_targets.get(table.name, ()) if isinstance(table, Symbol) else ()
        return tuple(labels[name] for name in names)
    if root == "bra" and isinstance(last.operands[0], Symbol):
        targets = (labels[last.operands[0].name],)
    elif root in _ENDS:
        targets = (count,)
    else:
        return following
    return targets if last.guard is None else (*targets, *following)


def immediate_dominators(successors: Sequence[Sequence[int]], entry: int) -> dict[int, int]:
    """The immediate dominator of each node that is reached from `entry`, which is its own."""
    order = _postorder(successors, entry)
    rank = {node: i for i, node in enumerate(order)}
    predecessors: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for target in successors[node]:
            predecessors[target].append(node)
    found = {entry: entry}

    def meet(a: int, b: int) -> int:
        while a != b:
            while rank[a] < rank[b]:
                a = found[a]
            while rank[b] < rank[a]:
                b = found[b]
        return a

    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            known = [x for x in predecessors[node] if x in found]
            if node == entry or not known:
                continue
            nearest = known[0]
            for other in known[1:]:
                nearest = meet(nearest, other)
            if found.get(node) != nearest:
                found[node] = nearest
                changed = True
    return found


def _postorder(successors: Sequence[Sequence[int]], entry: int) -> list[int]:
    """Every node that is reached, after all that are first reached from it."""
    order: list[int] = []
    seen = {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors[target])))
                break
        else:
            order.append(node)
            stack.pop()
    return order
