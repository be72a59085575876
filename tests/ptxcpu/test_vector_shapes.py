"""The divergence analysis of the vector path, on small pieces of PTX."""

from __future__ import annotations

import pytest

from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.vector.shapes import Shape, ShapeAnalysis, join, uniform, varying

LANES = 32
TILE = (16, 16, 1)

MODULE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<20>;
.reg .f32 %f<9>;
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %tid.y;
mad.lo.s32 %r4, %r3, 16, %r2;
{body}
ret;
}}"""


def analysis(body: str, block: tuple[int, int, int] = TILE) -> ShapeAnalysis:
    return ShapeAnalysis(inline(parse(MODULE.format(body=body)), "k", 0), block, LANES)


def shape(name: str, body: str, block: tuple[int, int, int] = TILE) -> Shape:
    return analysis(body, block).shape(name)


def affine(stride: int) -> Shape:
    return Shape(1, tuple(stride * lane for lane in range(LANES)))


def test_parameters_and_block_indices_are_uniform() -> None:
    found = analysis("mov.u32 %r5, %ctaid.x; add.s32 %r6, %r5, %r1;")
    assert found.shape("%r1").is_uniform
    assert found.shape("%r6").is_uniform


def test_thread_indices_follow_the_shape_of_the_block() -> None:
    found = analysis("")
    assert found.shape("%r2").offsets == (*range(16), *range(16))
    assert found.shape("%r3").offsets == (0,) * 16 + (1,) * 16
    assert found.shape("%r4") == affine(1)
    assert shape("%r2", "", (64, 1, 1)) == affine(1)
    assert shape("%r3", "", (64, 4, 1)).is_uniform
    assert shape("%r2", "", (24, 4, 1)).is_varying


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("add.s32 %r9, %r4, %r1;", affine(1)),
        ("shl.b32 %r9, %r4, 2;", affine(4)),
        ("mul.lo.s32 %r9, %r4, 12;", affine(12)),
        ("mad.lo.s32 %r9, %r4, -4, %r1;", affine(-4)),
        ("sub.s32 %r9, %r1, %r4;", affine(-1)),
        ("shr.u32 %r9, %r4, 3;", Shape(1, tuple(lane // 8 for lane in range(LANES)))),
        ("and.b32 %r9, %r4, 7;", Shape(1, tuple(lane % 8 for lane in range(LANES)))),
        ("xor.b32 %r9, %r4, 1;", Shape(1, tuple((lane ^ 1) - 1 for lane in range(LANES)))),
        ("and.b32 %r8, %r4, -32; sub.s32 %r9, %r4, %r8;", affine(1)),
        ("mul.lo.s32 %r9, %r3, %r1;", uniform(LANES).split(2)),
        ("mul.lo.s32 %r9, %r2, %r1;", varying(LANES)),
        ("shr.u32 %r9, %r1, 3; add.s32 %r9, %r9, %r4;", varying(LANES)),
        ("setp.lt.s32 %p1, %r4, %r1; selp.b32 %r9, 1, 2, %p1;", varying(LANES)),
    ],
)
def test_integer_arithmetic_keeps_offsets_known(body: str, expected: Shape) -> None:
    assert shape("%r9", body) == expected


def test_addresses_are_affine_through_widening() -> None:
    body = "mul.wide.s32 %rd2, %r4, 4; cvta.to.global.u64 %rd3, %rd1; add.s64 %rd4, %rd3, %rd2;"
    found = analysis(body)
    assert found.shape("%rd4") == affine(4)
    kernel = found.kernel.body
    assert not any(found.widened(item) for item in kernel if hasattr(item, "opcode"))


def test_widening_that_may_wrap_around_is_reported() -> None:
    found = analysis("add.s32 %r5, %r4, %r1; mul.wide.s32 %rd2, %r5, 4;")
    (item,) = [i for i in found.kernel.body if getattr(i, "opcode", "") == "mul.wide.s32"]
    ((_, lanes, signed),) = found.widened(item)  # type: ignore[arg-type]
    assert lanes.shape == affine(1)
    assert signed


def test_a_loop_keeps_the_shape_of_its_pointer() -> None:
    body = """mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; mov.u32 %r5, 0;
    $L1: ld.global.f32 %f1, [%rd3]; add.s64 %rd3, %rd3, 128; add.s32 %r5, %r5, 1;
    setp.lt.s32 %p1, %r5, %r1; @%p1 bra $L1;"""
    found = analysis(body)
    assert found.shape("%rd3") == affine(4)
    assert found.shape("%r5").is_uniform
    assert found.shape("%p1").is_uniform
    assert found.shape("%f1").is_varying


def test_a_load_is_as_uniform_as_its_address() -> None:
    body = """ld.global.f32 %f1, [%rd1]; mul.wide.u32 %rd2, %r3, 64; add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3+8];"""
    found = analysis(body)
    assert found.shape("%f1").is_uniform
    assert found.shape("%f2") == uniform(LANES).split(2)


def test_join_splits_groups_until_both_agree() -> None:
    halves = Shape(1, (0,) * 16 + (1,) * 16)
    assert join(affine(4), affine(4)) == affine(4)
    assert join(uniform(LANES), halves) == uniform(LANES).split(2)
    assert join(uniform(LANES), affine(4)).is_varying


def test_masks_of_a_register_that_changes_are_not_trusted() -> None:
    body = """and.b32 %r5, %r4, -32;
    $L1: add.s32 %r4, %r4, %r1; sub.s32 %r9, %r4, %r5; setp.lt.s32 %p1, %r9, %r1; @%p1 bra $L1;"""
    found = analysis(body)
    assert found.registers["%r9"].maybe == (1 << 32) - 1
