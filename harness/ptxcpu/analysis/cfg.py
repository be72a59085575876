"""The control-flow graph of a kernel: basic blocks, postdominators, and the regions of branches.

Postdominators are found with the algorithm of K. D. Cooper, T. J. Harvey and K. Kennedy, "A Simple,
Fast Dominance Algorithm", 2001. The order of a region's blocks is that of F. Bourdoncle, "Efficient
Chaotic Iteration Strategies with Widenings", 1993: topological, with each loop as one part.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.ptx.syntax import Instruction, Label, Symbol

_ENDS = ("ret", "exit", "trap")
_MEETINGS = ("bar", "barrier", "shfl", "vote", "match", "redux", "call", "brx", *_ENDS)
"""Instructions at which lanes must not be divergent, or that a region may not contain."""

_EFFECTS = ("atom", "red", "mbarrier")
"""Instructions by which threads communicate."""

MAX_REGION = 400
"""The most instructions of a region of which a second, masked version is generated."""


@dataclass(frozen=True)
class BasicBlock:
    """The items [first, end) of a kernel's body, and the numbers of the blocks that may follow.

    All ends of the kernel lead to a virtual block, whose number is the number of blocks.
    """

    first: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """A loop, whose back edges all lead to its head.

    body: its other parts, in the order in which one step runs them.
    exits: the blocks outside to which its blocks lead.
    """

    head: int
    body: tuple[Part, ...]
    exits: tuple[int, ...]


Part: TypeAlias = "int | Loop"
"""A basic block, or a loop of them."""


def blocks_of(part: Part) -> Iterator[int]:
    """Return the blocks of a part of a region."""
    if isinstance(part, int):
        yield part
    else:
        yield part.head
        for inner in part.body:
            yield from blocks_of(inner)


@dataclass(frozen=True)
class Region:
    """The blocks between a branch and the join of its paths, in topological order."""

    parts: tuple[Part, ...]
    join: int

    def blocks(self) -> Iterator[tuple[int, bool]]:
        """Return each block, and whether it is in a loop of the region."""
        for part in self.parts:
            for number in blocks_of(part):
                yield number, isinstance(part, Loop)


class ControlFlowGraph:
    """The basic blocks of a kernel, in the order of its body."""

    def __init__(self, kernel: InlinedKernel) -> None:
        self.kernel = kernel
        self.blocks = _blocks(kernel)

    @functools.cached_property
    def _postdominators(self) -> dict[int, int]:
        reverse: list[list[int]] = [[] for _ in range(len(self.blocks) + 1)]
        for number, block in enumerate(self.blocks):
            for target in block.successors:
                reverse[target].append(number)
        return immediate_dominators(reverse, len(self.blocks))

    def block_of(self, index: int) -> int:
        """Return the number of the block that contains an item of the body."""
        return next(i for i, block in enumerate(self.blocks) if block.first <= index < block.end)

    def region(self, number: int) -> Region | None:
        """Return the region of the branch at the end of a block.

        Returns None if the paths join only at the end of the kernel, or if the region contains the
        branch itself, a barrier, or too many instructions. Returns None also if it has a loop
        without an effect on other threads: all that such a loop writes would be varying. When
        lanes agree, that costs more than the thread path costs when they do not.
        """
        join = self._postdominators.get(number)
        if join is None or join == len(self.blocks):
            return None
        inside = self._between(number, join)
        if inside is None or number in inside or any(self._has_meeting(x) for x in inside):
            return None
        parts = _Order(self.blocks, inside).parts(self.blocks[number].successors)
        has_loop = any(isinstance(part, Loop) for part in parts)
        if has_loop and not any(self._has_effect(x) for x in inside):
            return None
        return Region(parts, join)

    def _between(self, number: int, join: int) -> set[int] | None:
        """Return the blocks that are reached from a block before the join; None if they have too
        many instructions, or end the kernel."""
        found: set[int] = set()
        size = 0
        waiting = [*self.blocks[number].successors]
        while waiting:
            block = waiting.pop()
            if block == join or block in found:
                continue
            if block == len(self.blocks):
                return None
            found.add(block)
            size += self._size(block)
            if size > MAX_REGION:
                return None
            waiting += self.blocks[block].successors
        return found

    def instructions(self, number: int) -> list[tuple[int, Instruction]]:
        """Return the instructions of a block with their indices."""
        block = self.blocks[number]
        items = enumerate(self.kernel.body[block.first : block.end], block.first)
        return [(i, item) for i, item in items if isinstance(item, Instruction)]

    def _has_meeting(self, number: int) -> bool:
        return any(item.opcode.split(".")[0] in _MEETINGS for _, item in self.instructions(number))

    def _has_effect(self, number: int) -> bool:
        return any(item.opcode.split(".")[0] in _EFFECTS for _, item in self.instructions(number))

    def _size(self, number: int) -> int:
        return self.blocks[number].end - self.blocks[number].first


class _Order:
    """Bourdoncle's weak topological order of some blocks."""

    def __init__(self, blocks: Sequence[BasicBlock], inside: Collection[int]) -> None:
        self._blocks = blocks
        self._inside = inside
        self._number = dict.fromkeys(inside, 0)
        """The number in the order of the depth-first search; 0 if the block was not reached."""
        self._count = 0
        self._stack: list[int] = []

    def parts(self, entries: Sequence[int]) -> tuple[Part, ...]:
        found: list[Part] = []
        for entry in entries:
            if entry in self._inside and self._number[entry] == 0:
                self._visit(entry, found)
        return tuple(reversed(found))

    def _visit(self, block: int, found: list[Part]) -> int:
        """Append the parts that are reached from a block, in reverse order."""
        self._stack.append(block)
        self._count += 1
        self._number[block] = head = self._count
        is_loop = False
        for target in self._successors(block):
            reached = self._number[target] or self._visit(target, found)
            if reached <= head:
                head, is_loop = reached, True
        if head == self._number[block]:
            self._number[block] = _DONE
            inner = self._stack.pop()
            while inner != block:
                self._number[inner] = 0 if is_loop else _DONE
                inner = self._stack.pop()
            found.append(self._loop(block) if is_loop else block)
        return head

    def _loop(self, head: int) -> Loop:
        body = self.parts(self._successors(head))
        members = {head, *(x for part in body for x in blocks_of(part))}
        targets = (x for block in sorted(members) for x in self._blocks[block].successors)
        return Loop(head, body, tuple(dict.fromkeys(x for x in targets if x not in members)))

    def _successors(self, block: int) -> list[int]:
        return [x for x in self._blocks[block].successors if x in self._inside]


_DONE = 1 << 60


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
    """Return the successors of block `number`, which ends before the item `end`."""
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
    """Return the immediate dominator of each node that is reached from `entry`; `entry` is its
    own."""
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
    """Return the nodes that are reached, in postorder of a depth-first search."""
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
