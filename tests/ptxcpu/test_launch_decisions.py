"""Comparisons that depend only on the sizes of a launch are found, with their results."""

import pytest

from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.analysis.ranges import LaunchDecisions
from harness.ptxcpu.arguments import ParameterKind
from harness.ptxcpu.ptx.parser import parse
from tests.ptxcpu.programs import entry

LARGE, SMALL = 8192, 256

DECIDED = {
    "a size": ("setp.gt.s32 %p1, %r1, 1000;", [True], [False]),
    "two sizes": ("mul.wide.s32 %rd2, %r1, %r1; setp.lt.s64 %p1, %rd2, 1000000;", [False], [True]),
    "what is left of a division": (
        "div.s32 %r2, %r1, 1000; rem.s32 %r3, %r2, 8; setp.eq.s32 %p1, %r3, 0;",
        [True],
        [True],
    ),
    "negative numbers": (
        "neg.s32 %r2, %r1; shr.s32 %r3, %r2, 4; setp.lt.s32 %p1, %r3, -100;",
        [True],
        [False],
    ),
    "the grid": ("mov.u32 %r2, %nctaid.x; setp.hs.u32 %p1, %r2, 512;", [True], [False]),
    "the alignment of a pointer": (
        "and.b64 %rd2, %rd1, 15; setp.eq.s64 %p1, %rd2, 0;",
        [True],
        [True],
    ),
    "two comparisons in one": (
        "setp.gt.s32 %p2, %r1, 1000; setp.eq.and.s32 %p1, %r1, 8192, %p2;",
        [True, True],
        [False, False],
    ),
    "what is reached by one way alone": (
        "setp.gt.s32 %p1, %r1, 1000;@%p1 bra END; setp.gt.s32 %p2, %r1, 100;",
        [True],
        [False, True],
    ),
    "a value that one way alone gives": (
        "mov.u32 %r2, 1; setp.gt.s32 %p1, %r1, 1000; @%p1 mov.u32 %r2, 1;setp.eq.s32 %p2, %r2, 1;",
        [True, True],
        [False, True],
    ),
    "a value of two": (
        "mov.u32 %r4, %tid.x; setp.eq.s32 %p3, %r4, 0; mov.u32 %r2, 1; @%p3 mov.u32 %r2, 2;"
        "setp.eq.s32 %p2, %r2, 1;",
        [],
        [],
    ),
    "a thread": ("mov.u32 %r2, %tid.x; setp.lt.s32 %p1, %r2, %r1;", [], []),
    "a block": ("mov.u32 %r2, %ctaid.x; setp.lt.s32 %p1, %r2, %r1;", [], []),
    "data": ("ld.global.u32 %r2, [%rd1]; setp.eq.s32 %p1, %r2, 0;", [], []),
    "a loop": (
        "mov.u32 %r2, 0; AGAIN: add.s32 %r2, %r2, 16; setp.lt.s32 %p1, %r2, %r1; @%p1 bra AGAIN;",
        [],
        [],
    ),
}


@pytest.mark.parametrize("name", DECIDED)
def test_comparisons_that_a_launch_determines(name: str) -> None:
    body, large, small = DECIDED[name]
    text = entry(
        "u64 A, u32 n",
        f"""
ld.param.u64 %rd1, [A]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r1, [n];
{body} @%p1 bra END;
END: ret;""",
    )
    kinds = (ParameterKind.READ_ONLY, ParameterKind.NUMBER)
    kernel = inline(parse(text), "litmus", 0, kinds=kinds)
    for size, expected in ((LARGE, large), (SMALL, small)):
        found = LaunchDecisions(kernel, (16, 16, 1)).of((size // 16, 1, 1), (size,))
        assert list(found.values()) == expected
