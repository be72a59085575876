"""Hostile PTX always gives a typed answer: a refusal or a fault, never a traceback."""

import numpy as np
import pytest

from harness.protocol.device import Ready, Run, Sanitized
from harness.protocol.report import Unsupported
from harness.protocol.request import Fault
from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.codegen.instructions import INSTRUCTIONS
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Mode, Translator
from harness.ptxcpu.errors import CannotTranslate, InternalError
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.runtime.layout import WINDOWS, Window, base_of
from problem.cases import Shape
from problem.launcher import BLOCK, LaunchLine
from tests.ptxcpu.programs import HEAD
from tests.ptxcpu.runner import KERNELS, Runner, inputs
from tests.requests import inputs_of, sanitize_on
from tests.sources import named_parts

ENTRY = (
    ".visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C, "
    ".param .u32 M, .param .u32 N, .param .u32 K)"
)


def module(body: str, outside: str = "") -> str:
    registers = (
        ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .b16 %h<9>;"
    )
    return f"{HEAD}{outside}\n{ENTRY}\n{{\n{registers}\nld.param.u64 %rd1, [C];\n{body}\nret;\n}}\n"


REFUSED = named_parts(KERNELS / "refused.ptx.in") | {
    "deep braces": "{" * 200 + "}" * 200,
    "deep vectors": "mov.b64 %rd1, " + "{" * 5000 + "}" * 5000 + ";",
}


@pytest.mark.parametrize("error", [KeyError("x"), AssertionError(), CannotTranslate("a limit")])
def test_a_bug_is_not_reported_as_a_limit(error: Exception) -> None:
    broken = InstructionTable()

    @broken.instruction("frobnicate.b32 d, a")
    def frobnicate(t: Translator, m: MatchedInstruction) -> None:
        raise error

    kernel = inline(parse(module("frobnicate.b32 %r1, %r2;")), "k", 0)
    translator = Translator(kernel, InstructionTable(INSTRUCTIONS, broken), BLOCK, Mode.RUN)
    expected = CannotTranslate if isinstance(error, CannotTranslate) else InternalError
    with pytest.raises(expected):
        translator.module()


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_refused(cpu: Runner, body: str) -> None:
    answer = cpu.device.load_ptx(module(body), "k")
    assert isinstance(answer, Unsupported), answer
    assert "\n" not in answer.message and "cannot run this kernel" in answer.message


OUTSIDE = {
    "200 GB of variables": ".global .align 4 .b8 x[200000000000];",
    "many variables": "\n".join(f".global .align 4 .b8 x{i}[100000000];" for i in range(30)),
    "a million registers": f"{ENTRY.replace(' k(', ' other(')} {{ .reg .b32 %x<9999999>; ret; }}",
    "an odd alignment": ".global .align 3 .b8 x[4];",
    "exponential calls": ".func f0() { ret; }\n"
    + "\n".join(
        f".func f{i}() {{ call.uni f{i - 1}; call.uni f{i - 1}; ret; }}" for i in range(1, 31)
    ),
    "mutual recursion": ".func g(); .func f() { call.uni g; ret; } .func g() { call.uni f; ret; }",
}


@pytest.mark.parametrize("outside", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_refused_outside_the_kernel(
    cpu: Runner, outside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.ptxcpu.analysis.inline.MAX_INSTRUCTIONS", 30_000)
    name = "f30" if "f30" in outside else "f" if ".func f()" in outside else None
    body = f"call.uni {name};" if name else ""
    answer = cpu.device.load_ptx(module(body, outside), "k")
    assert isinstance(answer, Unsupported), answer
    assert ("with its calls inlined" in answer.message) is (name == "f30")


@pytest.mark.parametrize(
    "text", ["", "nonsense", HEAD, "\0\0", "{}", HEAD + ENTRY, ";" * 100, "." * 100]
)
def test_refused_text(cpu: Runner, text: str) -> None:
    assert isinstance(cpu.device.load_ptx(text, "k"), Unsupported)


def test_too_much_text(cpu: Runner) -> None:
    assert isinstance(cpu.device.load_ptx(module("// " + "x" * (17 << 20)), "k"), Unsupported)


SHAPE = Shape(16, 16, 16)


def run(cpu: Runner, body: str, seconds: float = 10.0, shared: int = 0) -> object:
    ready = cpu.device.load_ptx(module(body), "k", LaunchLine(shared_memory=shared))
    assert isinstance(ready, Ready), ready
    A, B = inputs(SHAPE)
    return cpu.device.run(Run(inputs=inputs_of(SHAPE, A, B), seconds=seconds))


def test_division_by_zero_and_overflow_do_not_stop_the_processor(cpu: Runner) -> None:
    body = """mov.u32 %r2, 0; mov.u32 %r3, 0x80000000; mov.u32 %r4, -1; mov.u64 %rd3, 0;
    div.s32 %r5, %r3, %r2; div.s32 %r6, %r3, %r4; rem.s32 %r7, %r3, %r4; rem.u32 %r8, %r3, %r2;
    div.u64 %rd4, %rd3, %rd3;
    st.global.u32 [%rd1], %r5; st.global.u32 [%rd1+4], %r6; st.global.u32 [%rd1+8], %r7;
    st.global.u32 [%rd1+12], %r8; st.global.u64 [%rd1+16], %rd4;"""
    result = run(cpu, body)
    assert not isinstance(result, Fault)
    words = result.output.view(np.uint32)[0, :6].tolist()  # type: ignore[index]
    assert words == [0xFFFFFFFF, 0x80000000, 0, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFF]


POINTERS = [
    *(0, 1, -1, -4, (1 << 63) - 4, 1 << 63),
    *(base_of(x) for x in (Window.NONE, Window.MODULE, Window.LOCAL, Window.SHARED, WINDOWS - 1)),
    *(base_of(Window.BUFFER) - 4, base_of(Window.BUFFER + 2) + 4 * SHAPE.M * SHAPE.K),
]
"""Addresses outside every array; the last two are before the first and behind the last one."""


@pytest.mark.parametrize("space", [".global", "", ".shared", ".local"])
@pytest.mark.parametrize("address", POINTERS)
def test_stray_pointers(cpu: Runner, address: int, space: str) -> None:
    result = run(
        cpu, f"mov.u64 %rd2, {address}; st{space}.u32 [%rd2], 7; ld{space}.u32 %r1, [%rd2+4];"
    )
    assert isinstance(result, Fault) and result.cause == "memory", result
    answer = cpu.device.sanitize(sanitize_on(SHAPE, seconds=20))
    assert isinstance(answer, Sanitized) and answer.findings


FAULTS = named_parts(KERNELS / "faults.ptx.in")


@pytest.mark.parametrize("name", FAULTS)
def test_faults(cpu: Runner, name: str) -> None:
    cause, body = FAULTS[name].removeprefix("// ").split("\n", 1)
    seconds = 0.3 if cause == "time-limit" else 10
    result = run(cpu, body, seconds, shared=4096)
    assert isinstance(result, Fault) and result.cause == cause, result


def test_many_copies_in_flight_arrive_all_the_same(cpu: Runner) -> None:
    body = """mov.u32 %r1, 0; mov.u32 %r2, 0; ld.param.u64 %rd2, [A];
    X: cp.async.ca.shared.global [%r1], [%rd2], 4;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 5000; @%p1 bra X;
    cp.async.wait_all; ld.shared.f32 %f1, [%r1]; st.global.f32 [%rd1], %f1;"""
    result = run(cpu, body, shared=64)
    assert not isinstance(result, Fault)
    assert result.output[0, 0] == inputs(SHAPE)[0][0, 0]  # type: ignore[index]


def test_a_refused_kernel_leaves_none_loaded(cpu: Runner) -> None:
    cpu.load_file("naive")
    cpu.refusal("recursion")
    with pytest.raises(RuntimeError, match="no kernel"):
        cpu.run(SHAPE)
