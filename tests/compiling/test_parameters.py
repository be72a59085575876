"""A kernel reads what is in its parameters, and nothing around them."""

from __future__ import annotations

import pytest

from harness.compiling.parameters import misuse
from harness.ptxcpu.ptx.parser import parse

PROGRAM = """.version 9.0
.target sm_90a
.address_size 64
.func (.param .b32 result) f(.param .align 4 .b8 both[8]) {{
.reg .b32 %r<4>; .reg .b64 %a;
{function}
ret;
}}
.visible .entry k(.param .u64 C, .param .u32 N) {{
.reg .b32 %r<4>; .reg .b64 %a;
{kernel}
ret;
}}
"""

HONEST = {
    "a load": "ld.param.u64 %a, [C]; ld.param.u32 %r1, [N+0];",
    "half a parameter": "ld.param.u32 %r1, [C+4]; ld.param.v2.u32 {%r1, %r2}, [C];",
    "by its newer name": "ld.param::entry.u32 %r1, [N];",
    "a call": "{ .param .b8 p[8]; .param .b32 d; st.param.v2.b32 [p], {%r1, %r2}; "
    "call.uni (d), f, (p); ld.param.b32 %r1, [d]; }",
    "a question about an address": "{ .reg .pred p; isspacep.param p, %a; }",
}

BEYOND = {
    "behind the last": "ld.param.u32 %r1, [N+4];",
    "over the end": "ld.param.u64 %a, [N];",
    "over the end, as a vector": "ld.param.v2.u32 {%r1, %r2}, [N];",
    "from one into the next": "ld.param.u64 %a, [C+4];",
    "before the first": "ld.param.u32 %r1, [C-4];",
    "by an address": "mov.u64 %a, C; ld.param.u32 %r1, [%a+64];",
    "by an address from nowhere": "mov.u64 %a, 600; ld.param.u32 %r1, [%a];",
    "by a generic address": "mov.u64 %a, 600; cvta.param.u64 %a, %a; ld.u32 %r1, [%a];",
    "by a number": "ld.param.u32 %r1, [4096];",
    "by a name that is none": "ld.param.u32 %r1, [nobody];",
    "a byte by a name that is none": "ld.param.u8 %r1, [nobody];",
    "a byte behind the last": "ld.param.u8 %r1, [N+4];",
    "without a place": "ld.param.u32;",
    "by a prefetch": "prefetch.param.L1 [N];",
    "by another load": "ldu.param.u32 %r1, [N];",
    "by a load with an order": "ld.weak.param.u32 %r1, [N+64];",
    "by modifiers apart": "ld .param .u32 %r1, [N+64];",
    "of a size of 5000 digits": f"ld.param.u{'1' * 5000} %r1, [N];",
    "as a value to store": "{ .param .b64 p; st.param.b64 [p], C; }",
    "as an argument": "call.uni f, (C);",
    "in a pair": "mov.b64 %a|N, C;",
    "of what it gives to others": "{ .param .b8 p[4]; ld.param.u64 %a, [p+32]; }",
    "a store there": "{ .param .b8 p[4]; st.param.u64 [p+4096], %a; }",
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST.keys())
def test_what_is_in_a_parameter_is_read(body: str) -> None:
    assert misuse(parse(PROGRAM.format(function="", kernel=body))) is None


@pytest.mark.parametrize("body", BEYOND.values(), ids=BEYOND.keys())
def test_what_lies_around_a_parameter_is_not(body: str) -> None:
    found = misuse(parse(PROGRAM.format(function="", kernel=body)))
    assert found is not None and "does not stay inside a parameter" in found.message


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("ld.param.b32 %r1, [both+4]; st.param.b32 [result], %r1;", True),
        ("ld.param.b32 %r1, [both+8];", False),
        ("st.param.b32 [result+4], %r1;", False),
        ("ld.param.b32 %r1, [N];", False),
        ("mov.b64 %a, both;", True),
    ],
)
def test_functions_are_held_to_the_same(body: str, stays: bool) -> None:
    assert (misuse(parse(PROGRAM.format(function=body, kernel=""))) is None) is stays


def test_the_line_of_the_source_is_said() -> None:
    text = PROGRAM.format(function="", kernel=".loc 1 7 5\nld.param.u32 %r1, [N+4];")
    text = text.replace(".func", '.file 1 "kernel.cu"\n.func', 1)
    for program, line in ((text, 7), (text.replace(".loc 1 7 5", ""), None)):
        found = misuse(parse(program))
        assert found is not None and found.line == line
