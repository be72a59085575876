"""The way from source to machine code, with compilers that say what they are told."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from harness.compiling import compiler, disassembly, machine_code, program, ptxas
from harness.compiling.compiler import (
    FILE_NAME,
    compile_source,
    disassemble_kernel,
    translate_source,
)
from harness.compiling.disassembly import Instruction
from harness.compiling.errors import SourceError
from harness.compiling.headers import PRELUDE_NAME
from harness.compiling.machine_code import EntryPoint, Parameter
from harness.compiling.ptxas import Assembled
from harness.protocol.compiler import (
    Compile,
    Compiled,
    Disassemble,
    Disassembled,
    Kernel,
    PtxProgram,
    Translate,
)
from harness.protocol.report import (
    Badge,
    CodeLine,
    CompileError,
    Diagnostic,
    RuntimeFault,
    Stage,
    Unsupported,
)
from harness.ptxcpu import nvrtc
from harness.ptxcpu.nvrtc import Output, Source
from problem.launcher import LaunchLine

NAME = "matrix_multiplication_kernel"
SIGNATURE = "(const float* A, const float* B, float* C, int M, int N, int K)"
KERNEL = f'extern "C" __global__ void {NAME}{SIGNATURE} {{ C[0] = 1; }}\n'
PARAMETERS = tuple(
    Parameter(at, size) for at, size in ((0, 8), (8, 8), (16, 8), (24, 4), (28, 4), (32, 4))
)


def entry(name: str = NAME, body: str = "ret;", directives: str = "") -> str:
    kinds = ("u64 a", "u64 b", "u64 c", "u32 m", "u32 n", "u32 k")
    parameters = ", ".join(f".param .{kind}" for kind in kinds)
    return f".visible .entry {name}({parameters})\n{directives}\n{{\n{body}\n}}\n"


def ptx(*entries: str) -> str:
    head = '.version 9.0\n.target sm_90a\n.address_size 64\n.file 1 "kernel.cu"\n'
    return head + "".join(entries)


LOG = f"""\
ptxas info    : Compiling entry function '{NAME}' for 'sm_90a'
ptxas info    : Function properties for {NAME}
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, 16 bytes cumulative stack size, 1024 bytes smem
"""


class Tools:
    """NVRTC, ptxas and the disassembler."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.ptx = ptx(entry())
        self.log = ""
        self.included: tuple[str, ...] = ()
        self.assembled = Assembled(b"machine code", LOG)
        self.point = EntryPoint(True, 40, PARAMETERS, 36)
        self.instructions = (Instruction("FFMA", "", None, 3),)
        self.preprocessed = ""
        self.sources: list[Source] = []
        self.options: list[str] = []
        self.asked: list[Any] = []

    def compile_to_ptx(self, source: Source, options: list[str]) -> Output:
        self.sources.append(source)
        self.options = options
        if self.outputs:
            return self.outputs.pop(0)
        return Output(True, self.log, self.ptx, self.included)

    def preprocess(self, source: Source, options: list[str]) -> str:
        assert source is self.sources[-1] and options is self.options
        self.asked.append("preprocessed")
        return self.preprocessed

    def assemble(self, text: str, arch: str) -> Assembled:
        self.asked.append((text, arch))
        return self.assembled

    def entry_point(self, cubin: bytes, name: str) -> EntryPoint:
        self.asked.append((cubin, name))
        return self.point

    def disassemble(self, cubin: bytes, file_name: str) -> Any:
        self.asked.append((cubin, file_name))
        return (disassembly.Function(NAME, self.instructions),) if self.instructions else ()


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    made = Tools()
    monkeypatch.setattr(compiler, "_kept", {})
    monkeypatch.setattr(nvrtc, "compile_to_ptx", made.compile_to_ptx)
    monkeypatch.setattr(nvrtc, "preprocess", made.preprocess)
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(program, "assemble", made.assemble)
    monkeypatch.setattr(machine_code, "entry_point", made.entry_point)
    monkeypatch.setattr(disassembly, "disassemble", made.disassemble)
    return made


def compiled(source: str = KERNEL, arch: str = "sm_90a") -> Compiled:
    found = compile_source(Compile(source=source, arch=arch))
    assert isinstance(found, Compiled), found
    return found


def disassembled(kernel: Kernel) -> Disassembled:
    return disassemble_kernel(Disassemble(kernel=kernel))


def refused(source: str = KERNEL, arch: str = "sm_90a") -> CompileError:
    found = compile_source(Compile(source=source, arch=arch))
    assert isinstance(found, CompileError), found
    return found


def test_a_kernel_is_known_by_what_every_tool_says_of_it(tools: Tools) -> None:
    source = f'#include "mine.h"\n// solve: tile=32x16 shared_memory=100\n{KERNEL}'
    made = compiled(source)
    kernel, facts = made.kernel, made.kernel.facts
    assert made.nvrtc == "13.0"
    assert (kernel.entry, kernel.cubin) == (NAME, b"machine code")
    assert kernel.launch == LaunchLine(32, 16, 100)
    taken = facts.resources
    assert (taken.registers, taken.stack_bytes, taken.static_shared_bytes) == (40, 16, 1024)
    assert (taken.spill_store_bytes, taken.spill_load_bytes) == (4, 8)
    assert taken.dynamic_shared_bytes == 100 and facts.occupancy.blocks == 6
    assert facts.arch == "sm_90a"
    (given,) = tools.sources
    assert given.name == FILE_NAME and given.headers["mine.h"] == "#pragma once\n"
    assert "--gpu-architecture=compute_90a" in tools.options and "-lineinfo" in tools.options
    assert f"--pre-include={PRELUDE_NAME}" in tools.options
    assert any(option.startswith("--include-path=/") for option in tools.options)
    assert tools.asked == [(kernel.ptx, "sm_90a"), (b"machine code", NAME)]


def test_its_machine_code_is_read_when_somebody_asks(tools: Tools) -> None:
    made = compiled(f"// solve: tile=32x16\n{KERNEL}").kernel
    found = disassembled(made)
    assert tools.asked[-1] == (b"machine code", FILE_NAME) and found.warnings == ()
    known = found.kernel
    assert dict(known) == dict(made.facts) | {
        "badges": (Badge.CUDA_CORES, Badge.DECLARED_LAUNCH),
        "instructions": {"FFMA": 1},
        "lines": (CodeLine(line=3, opcodes={"FFMA": 1}),),
        "loops": (),
    }


def test_machine_code_that_nobody_can_read_has_no_badge_for_its_cores(tools: Tools) -> None:
    tools.instructions = ()
    found = disassembled(compiled().kernel)
    assert found.kernel.badges == (Badge.DEFAULT_LAUNCH,) and found.kernel.instructions == {}
    (warning,) = found.warnings
    assert (warning.severity, warning.message) == (
        "warning",
        "the machine code could not be disassembled: the kernel has no badge for its cores, and "
        "no rank among those that have",
    )


def test_machine_code_is_made_of_the_ptx_that_was_handed_out_and_of_none_older(
    tools: Tools,
) -> None:
    request = Translate(source=KERNEL)
    program = translate_source(request)
    assert isinstance(program, PtxProgram) and program.launch == LaunchLine()
    made = compiled(KERNEL)
    assert (made.kernel.ptx, made.kernel.entry) == (program.ptx, program.entry)
    assert len(tools.sources) == 1
    assert compiled(KERNEL) == made and len(tools.sources) == 2
    translate_source(request)
    compiled(f"{KERNEL} ")
    assert len(tools.sources) == 4


def test_what_is_refused_is_refused_before_there_is_machine_code(tools: Tools) -> None:
    tools.ptx = ptx(entry("another"))
    found = translate_source(Translate(source=KERNEL))
    assert isinstance(found, CompileError) and found == refused()


def test_all_warnings_reach_the_user_in_the_order_of_the_story(tools: Tools) -> None:
    tools.ptx = ptx(entry("_Z5otherPf"), entry())
    tools.log = "kernel.cu(3): warning #177-D: unused\n  x\n  ^\n"
    warned = f"ptxas kernel.ptx, line 5; warning : slow\n{LOG}"
    tools.assembled = replace(tools.assembled, log=warned)
    found = compiled(f'#include "mine.h"\n{KERNEL}')
    assert [each.message for each in found.warnings] == [
        'header "mine.h" is not available to a submission; it was taken as empty',
        "unused",
        "kernel `other` is never launched by the judge",
        "ptxas: slow",
    ]
    assert {each.severity for each in found.warnings} == {"warning"}
    assert "other" not in found.kernel.ptx


def test_its_loops_and_its_clusters_are_known(tools: Tools) -> None:
    tools.ptx = ptx(entry(directives=".explicitcluster\n.reqnctapercluster 2, 1, 1"))
    tools.instructions = (*tools.instructions, Instruction("BRA", "0x0", None, 4))
    kernel = compiled().kernel
    (loop,) = disassembled(kernel).kernel.loops
    assert (loop.first_line, loop.last_line) == (3, 4)
    assert kernel.launch.cluster == (2, 1, 1)


def test_tensor_cores_are_a_badge(tools: Tools) -> None:
    tools.instructions = (Instruction("HMMA.16816", "", None, 3),)
    known = disassembled(compiled().kernel).kernel
    assert known.badges == (Badge.TENSOR_CORES, Badge.DEFAULT_LAUNCH)


def test_a_source_that_cannot_be_a_submission_is_refused_while_reading(tools: Tools) -> None:
    found = refused(f"// solve: tile=0x16\n{KERNEL}")
    assert found.stage is Stage.READ and found.message.startswith("launch line: ")
    assert found.diagnostics[0].line == 1 and tools.sources == []


def test_what_follows_is_imported_once_while_the_compiler_is_at_work(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silently: what NVRTC opens is read where warnings would be written to."""
    begun: list[Callable[[], None]] = []

    def begin(work: Callable[[], None]) -> Future[None]:
        begun.append(work)
        work()
        return done

    def find_ptxas() -> None:
        warnings.warn("an old name", stacklevel=1)
        monkeypatch.setitem(sys.modules, program.__name__, program)

    done = Future[None]()
    done.set_result(None)
    monkeypatch.setattr(compiler.background, "begin", begin)
    monkeypatch.setattr(ptxas, "program", find_ptxas)
    compiled()
    assert begun == []
    monkeypatch.delitem(sys.modules, program.__name__)
    with warnings.catch_warnings(action="error"):
        compiled()
        compiled()
    assert len(begun) == 1


# ----------------------------------------------------------------------------------- templates

TEMPLATE = f"template <int T>\n__global__ void {NAME}{SIGNATURE} {{ C[0] = T; }}\n"


def test_a_template_without_an_instance_is_refused_with_its_line(tools: Tools) -> None:
    tools.ptx = ptx()
    found = refused(f"\n{TEMPLATE}")
    (diagnostic,) = found.diagnostics
    assert (diagnostic.severity, diagnostic.line) == ("error", 3)
    assert diagnostic.message.startswith(f"{NAME} is a template, and the file has no instance of")
    assert found.message == f"line 3: {diagnostic.message}"


# -------------------------------------------------------------------------------------- errors

FAILED = "kernel.cu(3): error: no such thing\n  x\n   ^\nkernel.cu(4): error: nor this\n"


def test_the_first_error_says_what_is_wrong(tools: Tools) -> None:
    tools.outputs = [Output(False, FAILED)]
    found = refused()
    assert found.stage is Stage.COMPILE
    assert found.message == "line 3: no such thing (and 1 more)"
    assert found.diagnostics == (
        Diagnostic(severity="error", message="no such thing", line=3, column=2),
        Diagnostic(severity="error", message="nor this", line=4),
    )
    assert len(tools.sources) == 1


def test_of_the_first_errors_those_that_last_are_told(tools: Tools) -> None:
    other = "kernel.cu(5): error: what follows\n"
    both = Output(False, FAILED + "kernel.cu(6): error: in the kernel\n")
    tools.outputs = [both, Output(False, f"{other}kernel.cu(6): error: in the kernel\n")]
    assert refused("int a;\n" * 4 + KERNEL).message == "line 6: in the kernel"
    tools.outputs = [both, Output(False, other)]
    assert refused("int a;\n" * 4 + KERNEL).message == "line 3: no such thing (and 2 more)"


def test_a_single_error_is_alone(tools: Tools) -> None:
    tools.outputs = [Output(False, "kernel.cu(0): error: no such thing\n")]
    assert refused().message == "no such thing"


def test_a_failure_without_a_message_shows_the_end_of_the_log(tools: Tools) -> None:
    tools.outputs = [Output(False, "something\nout of luck\n")]
    found = refused()
    assert found.message == "out of luck"
    assert found.diagnostics == (Diagnostic(severity="error", message="out of luck"),)


HOST = "A function of no space is considered a host function, and host functions are refused"


def about_host(line: int) -> Output:
    return Output(False, f"kernel.cu({line}): error: {HOST}\n")


def test_what_a_kernel_lacks_is_said_to_be_defined_for_the_host_alone(tools: Tools) -> None:
    functions = "int f() {\n    return 1;\n}\nint S = 1;\n"
    for name, line in (("f", 1), ("S", 4)):
        unknown = Output(False, f'kernel.cu(5): error: identifier "{name}" is undefined\n')
        tools.outputs = [about_host(4), unknown]
        assert refused(functions + KERNEL).message == (
            f'line 5: identifier "{name}" is undefined: line {line} defines it for the host; '
            "write `__device__` or `constexpr` before it"
        )


def test_a_file_of_the_machine_that_was_opened_is_refused(tools: Tools) -> None:
    tools.included = (PRELUDE_NAME, "/etc/passwd")
    message = "an #include reaches a file that is neither CUDA's own nor a stand-in"
    assert refused() == CompileError(stage=Stage.COMPILE, message=message)
    tools.included = ()
    tools.outputs = [Output(False, FAILED, included=("/etc/passwd",))]
    assert refused().message == message


def test_the_time_is_looked_for_where_it_could_be_hidden(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[tuple[str, float]] = []

    def check(preprocessed: str, started: float) -> None:
        checked.append((preprocessed, started))
        raise SourceError("the time")

    monkeypatch.setattr(compiler.lexical, "check_for_present_time", check)
    monkeypatch.setattr(compiler.time, "time", lambda: 1234.5)
    tools.preprocessed = "all of it"
    compiled()
    assert checked == []
    assert refused(f"#define PASTE(a, b) a##b\n{KERNEL}").message == "the time"
    assert checked == [("all of it", 1234.5)]


def test_assembly_that_the_judge_cannot_read_has_its_line(tools: Tools) -> None:
    tools.ptx = ptx(entry(body=".loc 1 7 5\n.surprise 4;\nret;"))
    found = refused()
    assert found.message == (
        "line 7: assembly that this judge cannot read: unknown PTX directive '.surprise'"
    )
    assert found.stage is Stage.COMPILE and found.diagnostics[0].line == 7
    tools.ptx = ptx(entry(body=".surprise 4;\nret;"))
    assert refused().diagnostics[0].line is None


def test_what_the_program_lacks_is_said(tools: Tools) -> None:
    tools.ptx = ptx(entry("other"))
    found = refused()
    assert found.message.startswith("no kernel named") and found.stage is Stage.COMPILE
    tools.ptx = ptx(entry(body=".reg .b64 %rd1;\n.loc 1 7 5\ndiscard.global.L2 [%rd1], 128;\nret;"))
    assert refused().message.startswith("line 7: `discard.global.L2` leaves memory undefined")


def test_too_much_device_memory_is_refused_before_it_is_assembled(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program.entries, "memory_problem", lambda program: "too much")
    assert compile_source(Compile(source=KERNEL)) == RuntimeFault(
        stage=Stage.COMPILE, message="too much"
    )
    assert tools.asked == []


def test_what_ptxas_refuses_is_on_the_line_of_the_source(tools: Tools) -> None:
    tools.ptx = ptx(entry(body=".loc 1 7 5\nret;"))
    number = canonical_line("ret;", tools.ptx)
    log = f"ptxas kernel.ptx, line {number}; error   : not here\n"
    tools.assembled = Assembled(b"", log)
    assert refused().message == "line 7: ptxas: not here"
    tools.assembled = Assembled(b"", "out of luck")
    assert refused().message == "out of luck"


def canonical_line(statement: str, text: str) -> int:
    """Where a statement stands in the canonical text."""
    printed = program.canonical(program.parse_ptx(text))
    return printed.splitlines().index(statement) + 1


def test_machine_code_that_cannot_be_launched_is_refused(tools: Tools) -> None:
    tools.point = replace(tools.point, is_visible=False)
    assert refused().message.startswith(
        "matrix_multiplication_kernel is not visible outside its file, so"
    )
    tools.point = EntryPoint(True, 40, PARAMETERS[:-1], 32)
    assert refused().message.startswith(f"the parameters of {NAME} are not")


def test_a_launch_that_a_gpu_would_refuse_is_a_runtime_error(tools: Tools) -> None:
    tools.ptx = ptx(entry(directives=".maxntid 128, 1, 1"))
    found = compile_source(Compile(source=KERNEL))
    assert isinstance(found, RuntimeFault) and found.stage is Stage.COMPILE
    assert "allow 128 threads" in found.message
    tools.ptx = ptx(entry())
    source = f"// solve: shared_memory=70000\n{KERNEL}"
    found = compile_source(Compile(source=source, arch="sm_75"))
    assert isinstance(found, Unsupported) and "sm_75 gives a block at most" in found.message
    assert found.message.endswith("sm_90a, sm_100a, sm_103a, sm_120a")


# ------------------------------------------------------------------------------------ identity


def test_a_program_is_known_by_its_instructions_and_its_launch(tools: Tools) -> None:
    def identity(text: str, source: str = KERNEL) -> str | None:
        tools.ptx = text
        return compiled(source).kernel.facts.program_sha256

    one = identity(ptx(entry()))
    assert one == identity(ptx(entry(body=".loc 1 9 5\nret;")))
    assert one == identity(ptx(entry("_Z5otherPf"), entry()))
    others = {
        identity(ptx(entry(body=".reg .b32 %r1;\nmov.u32 %r1, 1;\nret;"))),
        identity(ptx(entry()), f"// solve: tile=32x16\n{KERNEL}"),
    }
    assert len({one, *others}) == 3


def test_a_program_has_the_identity_under_which_boards_know_it(tools: Tools) -> None:
    identity = compiled().kernel.facts.program_sha256
    assert identity is not None and identity[:16] == "56bf9cbd94d17f4d"


def test_which_of_two_kernels_is_launched_is_part_of_a_program(tools: Tools) -> None:
    """Both stay, because each refers to the other."""
    body = ".reg .b64 %rd1;\nmov.u64 %rd1, {};\nret;"
    first, second = entry(body=body.format("aside")), entry("aside", body.format(NAME))
    tools.ptx = ptx(first, second)
    one = compiled().kernel.facts.program_sha256
    renamed = tools.ptx.replace(NAME, "x").replace("aside", NAME).replace("x(", "aside(")
    tools.ptx = renamed.replace(", x;", ", aside;")
    assert compiled().kernel.facts.program_sha256 != one
