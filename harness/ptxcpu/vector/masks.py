"""Runs the region of a divergent branch: each basic block under the mask of the lanes that reach
it, and each loop until no lane is left in it.

Source: M. Pharr and W. R. Mark, "ispc: A SPMD Compiler for High-Performance CPU Programming",
InPar 2012, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.ptxcpu.analysis.cfg import ControlFlowGraph, Loop, Part, Region, blocks_of
from harness.ptxcpu.codegen.llvm_ir import IrValue, constant
from harness.ptxcpu.ptx.syntax import Not, Register

if TYPE_CHECKING:
    from harness.ptxcpu.vector.translator import VectorTranslator

Guard = Register | Not


class MaskedRegion:
    """A region while it is translated."""

    def __init__(self, builder: VectorTranslator, graph: ControlFlowGraph, region: Region) -> None:
        self.builder = builder
        self.graph = graph
        self.region = region
        self._mask_type = f"i{builder.lanes}"
        self._masks: dict[int, IrValue] = {}
        """The mask of the lanes that reach each block which has not run yet."""

    def run(self, index: int, guard: Guard) -> None:
        """Translate all blocks between the branch at this index and the join."""
        self._branch(self.graph.block_of(index), None, guard)
        self._run(self.region.parts, index)

    def _send(self, lanes: IrValue, number: int) -> None:
        masks = self._masks
        masks[number] = self.builder.op("or", masks[number], lanes) if number in masks else lanes

    def _branch(self, number: int, lanes: IrValue | None, guard: Guard | None) -> None:
        """Let some of the lanes at the end of a block take its branch."""
        b, successors = self.builder, self.graph.blocks[number].successors
        if guard is None or len(successors) == 1:
            assert lanes is not None
            self._send(lanes, successors[0])
            return
        taken = b.bits_of_guard(guard)
        for way, target in zip((taken, b.invert(taken)), successors, strict=True):
            self._send(way if lanes is None else b.op("and", lanes, way), target)

    def _run(self, parts: Sequence[Part], index: int) -> None:
        for part in parts:
            if isinstance(part, Loop):
                self._repeat(part, index)
            elif part in self._masks:
                self._execute(part, self._masks.pop(part))

    def _execute(self, number: int, lanes: IrValue) -> None:
        last: Guard | None = None
        for index, item in self.graph.instructions(number):
            if item.opcode.startswith("bra"):
                last = item.guard
            else:
                self.builder.run_masked(index, item, lanes)
        self._branch(number, lanes, last)

    def _repeat(self, loop: Loop, index: int) -> None:
        """Run a loop step by step. Lanes may enter it at a block that is not its head."""
        b, type_ = self.builder, self._mask_type
        nobody = constant(type_, 0)
        entries = dict.fromkeys([loop.head, *(x for x in blocks_of(loop) if x in self._masks)])
        slots = {number: b.variable(type_) for number in (*entries, *loop.exits)}
        for number, slot in slots.items():
            b.store(self._masks.pop(number, nobody), slot)
        again, step, behind = b.new_label(), b.new_label(), b.new_label()
        b.jump(again)
        b.place(again)
        b.poll(index)
        lanes = nobody
        for number in entries:
            self._masks[number] = b.load(type_, slots[number])
            b.store(nobody, slots[number])
            lanes = b.op("or", lanes, self._masks[number])
        b.branch(b.compare("ne", lanes, 0), step, behind)
        b.continue_at(step)
        b.loops_entered += 1
        self._run((loop.head, *loop.body), index)
        b.loops_entered -= 1
        for number in (loop.head, *loop.exits):
            lanes = self._masks.pop(number, nobody)
            b.store(b.op("or", lanes, b.load(type_, slots[number])), slots[number])
        b.jump(again)
        b.place(behind)
        for number in loop.exits:
            self._masks[number] = b.load(type_, slots[number])
