"""Decisions that hang on the machine are found; those of correct kernels are not."""

import pytest

from harness.ptxcpu.analysis.taint import Dependence, machine_dependent
from harness.ptxcpu.ptx.parser import parse
from tests.ptxcpu.programs import entry

BRANCH = "setp.gt.u64 %p1, %rd2, 5; @%p1 bra END;"
DEPENDS = {
    "a timer": ("mov.u64 %rd2, %globaltimer;" + BRANCH, "%globaltimer"),
    "a clock": ("mov.u64 %rd2, %clock64;" + BRANCH, "%clock"),
    "a clock that is computed with": (
        "mov.u64 %rd2, %clock64; xor.b64 %rd2, %rd2, 7;" + BRANCH,
        "%clock",
    ),
    "a multiprocessor": ("mov.u32 %r1, %smid; cvt.u64.u32 %rd2, %r1;" + BRANCH, "%smid"),
    "the number of multiprocessors": (
        "mov.u32 %r1, %nsmid; setp.eq.u32 %p1, %r1, 1; @!%p1 bra END;",
        "%nsmid",
    ),
    "a grid": ("mov.u64 %rd2, %gridid;" + BRANCH, "%gridid"),
    "a selection": (
        "mov.u32 %r1, %smid; setp.eq.u32 %p1, %r1, 0; selp.b32 %r2, 1, 2, %p1;",
        "%smid",
    ),
    "a value in memory": (
        "mov.u32 %r1, %smid; st.shared.u32 [s], %r1; ld.shared.u32 %r2, [s];"
        "setp.eq.u32 %p1, %r2, 3; @%p1 bra END;",
        "%smid",
    ),
    "a value under a predicate": (
        "mov.u32 %r1, %smid; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, 1;"
        "setp.eq.u32 %p2, %r2, 1; @%p2 bra END;",
        "%smid",
    ),
    "a value in memory, by a generic address": (
        "mov.u32 %r1, %smid; st.u32 [%rd1], %r1; ld.global.u32 %r2, [%rd1];"
        "setp.eq.u32 %p1, %r2, 3; @%p1 bra END;",
        "%smid",
    ),
    "a jump table": ("mov.u32 %r1, %smid; T: .branchtargets END; brx.idx %r1, T;", "%smid"),
    "a bit of a pointer above its alignment": (
        "and.b64 %rd2, %rd1, 256;" + BRANCH,
        "the bits of a pointer",
    ),
    "the window of a pointer": ("shr.u64 %rd2, %rd1, 40;" + BRANCH, "the bits of a pointer"),
    "a pointer's number": ("mov.u64 %rd2, %rd1;" + BRANCH, "the bits of a pointer"),
}


def dependences(body: str) -> dict[str, Dependence]:
    text = entry(
        "u64 A, u64 B, u32 n",
        f"""ld.param.u64 %rd1, [A]; cvta.to.global.u64 %rd1, %rd1; ld.param.u64 %rd8, [B];
{body}
END:""",
        ".shared .align 4 .b8 s[16];",
    )
    return {each.source: each for each in machine_dependent(parse(text), "litmus")}


@pytest.mark.parametrize("name", DEPENDS)
def test_a_branch_that_depends_on_the_machine_is_found(name: str) -> None:
    body, source = DEPENDS[name]
    assert source in dependences(body)


ORDINARY = {
    "thread": "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;",
    "number": "ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0;",
    "input": "ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;",
    "alignment": "and.b64 %rd2, %rd1, 15; setp.ne.s64 %p1, %rd2, 0;",
    "the largest alignment": "and.b64 %rd2, %rd1, 255; setp.ne.s64 %p1, %rd2, 0;",
    "narrow alignment": "cvt.u32.u64 %r1, %rd1; and.b32 %r1, %r1, 15; setp.ne.s32 %p1, %r1, 0;",
    "two alignments": "or.b64 %rd2, %rd1, %rd8; and.b64 %rd2, %rd2, 15; setp.ne.s64 %p1, %rd2, 0;",
    "end": "add.s64 %rd2, %rd1, 64; setp.lt.u64 %p1, %rd1, %rd2;",
    "null": "setp.eq.s64 %p1, %rd1, 0;",
    "stored clock": "mov.u64 %rd2, %clock64; st.global.u64 [%rd1], %rd2; setp.eq.s64 %p1, %rd1, 0;",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_branch_is_not_reported(name: str) -> None:
    assert not dependences(f"{ORDINARY[name]} @%p1 bra END;")


def test_a_dependence_names_the_line_that_reads_the_source() -> None:
    body = """.loc 1 3 0
mov.u64 %rd2, %gridid;
.loc 1 4 0
setp.gt.u64 %p1, %rd2, 5; @%p1 bra END;
.loc 1 5 0
setp.gt.u64 %p1, %rd2, 6; @%p1 ret;"""
    assert dependences(body) == {"%gridid": Dependence("%gridid", line=3, branches=2)}
