"""The control-flow graph of the vector path: dominators and the regions of branches."""

from __future__ import annotations

import pytest

from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.vector.cfg import ControlFlowGraph, Region, immediate_dominators

MODULE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{{
.reg .pred %p<9>;
.reg .b32 %r<9>;
{body}
}}"""


def graph(body: str) -> ControlFlowGraph:
    return ControlFlowGraph(inline(parse(MODULE.format(body=body)), "k", 0))


DIAMOND = """@%p1 bra $A; mov.u32 %r1, 1; bra $B;
$A: mov.u32 %r1, 2;
$B: mov.u32 %r2, %r1; ret;"""


def test_blocks_end_at_branches_and_labels() -> None:
    found = graph(DIAMOND)
    assert [block.successors for block in found.blocks] == [(2, 1), (3,), (3,), (4,)]
    assert found.block_of(4) == 2


def test_dominators_of_a_diamond() -> None:
    found = graph(DIAMOND)
    assert found.dominators == {0: 0, 1: 0, 2: 0, 3: 0, 4: 3}
    assert found.postdominators == {4: 4, 3: 4, 2: 3, 1: 3, 0: 3}


def test_dominators_of_an_irreducible_graph() -> None:
    # the example of Cooper, Harvey and Kennedy
    successors = [(1, 2), (3,), (4, 5), (4,), (3, 5), (4,)]
    assert immediate_dominators(successors, 0) == {0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0}


def test_the_region_of_a_branch_ends_where_its_ways_meet() -> None:
    found = graph(DIAMOND).region(0)
    assert found == Region((2, 1), 3) or found == Region((1, 2), 3)


@pytest.mark.parametrize(
    "body",
    [
        "@%p1 bra $A; ret; $A: mov.u32 %r1, 2; ret;",
        "$A: add.s32 %r1, %r1, 1; @%p1 bra $A; ret;",
        "@%p1 bra $A; bar.sync 0; $A: ret;",
        "@%p1 bra $A; $B: add.s32 %r1, %r1, 1; @%p2 bra $B; $A: ret;",
        "@%p1 bra $A; trap; $A: ret;",
    ],
)
def test_branches_without_a_simple_region_have_none(body: str) -> None:
    found = graph(body)
    assert found.region(0) is None


def test_nested_branches_are_in_topological_order() -> None:
    body = """@%p1 bra $A; mov.u32 %r1, 1; @%p2 bra $B; mov.u32 %r1, 2; bra $C;
    $A: mov.u32 %r1, 3; $B: mov.u32 %r1, 4; $C: ret;"""
    found = graph(body)
    region = found.region(0)
    assert region is not None
    place = {number: i for i, number in enumerate(region.blocks)}
    for number in region.blocks:
        for target in found.blocks[number].successors:
            assert target == region.join or place[number] < place[target]
