"""PTX is read whole, printed as it was read, and refused by name where it is not known."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.lexer import joined, tokens
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.printer import canonical, fingerprint
from harness.ptxcpu.ptx.syntax import Instruction, Integer, Register
from tests.ptxcpu.runner import KERNELS
from tests.sources import named_parts

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"


def module(body: str, outside: str = "") -> str:
    entry = ".visible .entry k(.param .u64 A)"
    return f"{HEAD}{outside}\n{entry}\n{{\n.reg .b32 %r<9>;\n{body}\nret;\n}}\n"


WRITTEN = module(
    """.loc 1 7 5 /* a comment
.loc 1 8 5 */
.loc 1 9 5, function_name $info, inlined_at 1 3 4 add.s32 %r1,%r2 , - 4;
{ .reg .b32 t;mov.u32 t, 1 ;
st .global/**/.u32 [ %r1 + 4 ], t; }; // mov.u32 %r1, 2;
X: @ ! %p bra X;""",
    '.file 1 "/home/somebody/kernel.cu"\n.section .debug_str { $info: .b8 107,0 }',
).replace(".reg .b32 %r<9>;", ".reg .b32 %r<9>;.reg .pred %p;")

PRINTED = (KERNELS / "printed.ptx").read_text()


def test_one_statement_a_line_and_no_comment() -> None:
    program = parse(WRITTEN)
    assert canonical(program) == PRINTED
    body = [i for i in program.functions["k"].body if isinstance(i, Instruction)]
    assert (body[2].opcode, body[2].line) == ("st.global.u32", 9)
    assert program.line_of(16) == 9 and program.line_of(1) is None and program.line_of(99) is None


def test_repeated_code_of_a_header_has_the_line_of_its_call() -> None:
    inlined = "function_name $info, inlined_at"
    body = f""".loc 1 7 5
.loc 2 10 1, {inlined} 1 7 5
.loc 3 20 1, {inlined} 2 10 1
mov.u32 %r1, 1;
.loc 1 8 5
mov.u32 %r2, 2;
.loc 3 20 1, {inlined} 2 10 1
mov.u32 %r3, 3;"""
    files = "".join(f'.file {n} "{n}.h"\n' for n in (1, 2, 3))
    program = parse(module(body, files + ".section .debug_str { $info: .b8 107,0 }"))
    items = [i for i in program.functions["k"].body if isinstance(i, Instruction)]
    assert [item.line for item in items[:3]] == [7, 8, 7]


def test_what_is_printed_is_read_as_the_same_program() -> None:
    again = parse(PRINTED)
    assert canonical(again) == PRINTED and fingerprint(again) == fingerprint(parse(WRITTEN))


WORDS = ["a", "%r1", "0x1F", ".b32", "[", "]", "+", "-", ",", "{", "}", "@", "!"]


@given(st.lists(st.sampled_from(WORDS)))
def test_tokens_survive_printing(words: list[str]) -> None:
    assert tokens(joined(words)) == words


def test_blanks_and_comments_leave_nothing_behind() -> None:
    assert tokens(" ") == tokens("// x") == tokens("/* x */\n") == []
    assert tokens("a// x\n") == tokens("\na /**/") == ["a"]


@pytest.mark.parametrize("rest", ["#a b", "/* b", '"b', "\u0440"])
def test_what_cannot_be_read_is_quoted_from_there_on(rest: str) -> None:
    with pytest.raises(PtxError, match="unreadable PTX: '" + re.escape(rest)):
        tokens(f"a {rest}\nc {rest}")


REFUSED = named_parts(KERNELS / "refused_programs.ptx.in") | {
    "a number of 5000 digits": module(f"mov.u32 %r1, {'1' * 5000};"),
    "an array of 5000 digits": HEAD + f".global .b8 x[{'1' * 5000}];",
    "a line of 5000 digits": module(f".loc 1 {'1' * 5000} 0"),
    "a float of 5000 digits": module(f"mov.f64 %rd1, {'1' * 5000}.0;"),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(PtxError):
        parse(text)


def test_what_is_wrong_is_said_shortly() -> None:
    with pytest.raises(PtxError) as wrong:
        parse(module(f"mov.u32 {'x' * 100_000}.y, 1;"))
    assert len(wrong.value.reason) <= 200 >= len(wrong.value.instruction)


@pytest.mark.parametrize(
    ("value", "distance"),
    [
        *(("x", 0), ("generic(x)", 0), ("x+4", 4), ("generic(x)+4", 4)),
        *(("generic(x)+16-8", 8), ("x-4", -4), ("x+2*4", 8)),
    ],
)
def test_a_variable_may_begin_with_an_address_inside_another(value: str, distance: int) -> None:
    text = f"{HEAD}.global .b8 x[16];\n.global .u64 p[2] = {{7, {value}}};\n"
    variable = parse(text).variables["p"]
    assert variable.pointees == ((8, "x", distance),)
    assert variable.image[:8] == (7).to_bytes(8, "little")
    assert canonical(parse(text)).replace(" ", "").count(f"{{7,{value}}}") == 1


def test_a_number_has_64_bits() -> None:
    text = module("mov.u64 %r1, 0xFFFFFFFFFFFFFFFF; mov.s64 %r1, -9223372036854775808;")
    first, second, *_ = parse(text).functions["k"].body
    assert isinstance(first, Instruction) and first.operands[1] == Integer(2**64 - 1)
    assert isinstance(second, Instruction) and second.operands[1] == Integer(-(2**63))


def test_scopes_of_one_depth_do_not_share_names() -> None:
    body = "{ .reg .b32 x; { .reg .b32 y; } .reg .b32 z; } { .reg .f32 x; } { .reg .b64 z; }"
    registers = parse(module(body)).functions["k"].registers
    assert len([name for name in registers if name[0] in "xyz"]) == 5


def test_a_name_means_what_was_declared_last() -> None:
    body = "mov.u32 %r1, 1; { mov.u32 %r1, 2; .reg .f32 %r1; mov.f32 %r1, 0f00000000; }"
    function = parse(module(body)).functions["k"]
    written = [i.operands[0] for i in function.body[:3] if isinstance(i, Instruction)]
    assert written[0] == written[1] != written[2]
    assert isinstance(written[2], Register) and function.registers[written[2].name].is_float


def test_a_range_in_a_scope_is_printed_one_by_one() -> None:
    """ptxas takes `x11` for the twelfth of `x<30>` before it looks for the second of `x1<5>`."""
    body = ".reg .b32 x<30>; { .reg .b32 x1<2>, y; mov.u32 x11, 5; } mov.u32 %r1, x11;"
    assert ".reg .b32 x10, x11, y;\n" in canonical(parse(module(body)))


def test_ranges_do_not_make_two_programs_one() -> None:
    def found(name: str) -> str:
        inner = f"{{ .reg .b32 x<3>; mov.u32 {name}, 7; }}"
        return fingerprint(parse(module(f".reg .b32 x<5>; {inner} mov.u32 %r1, {name};")))

    assert found("x1") != found("x4"), "the second is the outer range's in both places"


def test_names_are_numbered_in_a_fingerprint_and_nothing_else_is() -> None:
    def found(name: str, number: int) -> str:
        body = f"mov.u32 %r1, {name}; mov.u32 %r2, {number};"
        return fingerprint(parse(module(body, f".global .u32 {name};")))

    assert found("a", 1) == found("b", 1) != found("a", 2)


@pytest.mark.parametrize(
    ("template", "one", "other"),
    [
        (".global .u32 NAME;BODY NAME; END", "ret", "trap"),
        (".extern .func NAME(.param .b64 p);BODY call NAME, (%rd); END", "free", "cudaFree"),
    ],
    ids=["an instruction's name", "a function of somebody else's"],
)
def test_names_that_mean_something_tell_programs_apart(template: str, one: str, other: str) -> None:
    def found(name: str) -> str:
        outside, body = template.replace("NAME", name).replace("END", "").split("BODY")
        return fingerprint(parse(module(".reg .b64 %rd;" + body, outside)))

    assert found(one) != found(other)
