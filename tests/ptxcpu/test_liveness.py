"""Which registers may be read before they are written, and which stores nothing reads."""

from __future__ import annotations

from harness.ptxcpu.codegen.liveness import Liveness, liveness


def analysed(text: str) -> Liveness:
    return liveness([line if line.endswith(":") else "  " + line for line in text.splitlines()])


def unwritten(text: str) -> frozenset[str]:
    return analysed(text).unwritten


def test_a_register_that_is_written_first_is_excluded() -> None:
    assert unwritten("store i32 1, ptr %r0\n%v1 = load i32, ptr %r0") == frozenset()
    assert unwritten("%v1 = load i32, ptr %r0\nstore i32 1, ptr %r0") == {"%r0"}


def test_one_path_that_does_not_write_it_is_enough() -> None:
    text = """br i1 %v0, label %some, label %join
some:
store <2 x half> %v1, ptr %r0
br label %join
join:
%v2 = load <2 x half>, ptr %r0"""
    assert unwritten(text) == {"%r0"}
    assert unwritten("store <2 x half> %v9, ptr %r0\n" + text) == frozenset()


def test_a_register_that_is_read_in_the_next_iteration() -> None:
    """An iteration reads a register that only the previous one writes."""
    text = """br label %loop
loop:
%v1 = load i64, ptr %r1
store i64 %v1, ptr %r2
store i64 7, ptr %r1
%v2 = load i64, ptr %r2
br i1 %v3, label %loop, label %end
end:
ret void"""
    assert unwritten(text) == {"%r1"}


def test_all_paths_after_a_wait_are_considered() -> None:
    text = """switch i8 %v1, label %end [i8 0, label %on i8 1, label %end]
on:
%v2 = load float, ptr %r3
br label %exit"""
    assert unwritten(text) == {"%r3"}


def test_a_store_is_dead_unless_something_may_read_it() -> None:
    text = """store i32 1, ptr %r0
store i32 2, ptr %r0
store i32 3, ptr %r1
br i1 %v0, label %loop, label %exit
loop:
%v1 = load i32, ptr %r0
store i32 4, ptr %r2
store i32 5, ptr %r0
br label %loop"""
    assert analysed(text).dead == {0, 2, 6}
