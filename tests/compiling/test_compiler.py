"""Compilation: what kernel files may use, and the messages about mistakes."""

import re
import resource
from pathlib import Path

import pytest

from harness.compiling import disassembly, ptxas
from harness.compiling.compiler import disassemble_kernel
from harness.compiling.ptxas import assemble
from harness.protocol.compiler import Disassemble
from harness.protocol.report import Badge, Diagnostic, Stage
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.printer import canonical
from tests.compiled import compiled, disassembled, refused, warnings
from tests.sources import NAME, PARAMETERS, kernel


def test_an_error_has_its_line_and_column() -> None:
    error = refused(kernel("  float x = y;"))
    assert error.stage is Stage.COMPILE
    assert error.diagnostics == (
        Diagnostic(severity="error", message='identifier "y" is undefined', line=3, column=13),
    )
    assert error.message.startswith("line 3: ")
    found = refused(kernel("C[0] = A[0] \u00d7 B[0];")).diagnostics
    assert sum("U+00D7" in each.message for each in found) == 1, "not of each byte"


def test_warnings_reach_the_user() -> None:
    (warning,) = warnings('#define ONE \\\n 1\n#include "my_utils.h"\n' + kernel("C[0] = 1;"))
    assert '"my_utils.h"' in warning.message and warning.line == 3
    (warning,) = warnings(kernel("int unused = 1; C[0] = 1;"))
    assert warning.severity == "warning" and warning.line == 3 and "unused" in warning.message


def test_what_only_host_code_uses_is_not_called_unused() -> None:
    host = "void solve(const float* A) { int bytes = 4 * TILE; helper(bytes); }"
    source = "const int TILE = 16, SPARE = 1; static __device__ void helper(int) {} "
    (warning,) = warnings(f"{source} {kernel('C[0] = 1;')} {host}")
    assert '"SPARE" was declared but never referenced' in warning.message


def test_wgmma_that_is_serialised_is_warned_of() -> None:
    product = """asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(0ull));"""
    fence = 'asm volatile("wgmma.fence.sync.aligned;");'
    end = """asm volatile("wgmma.commit_group.sync.aligned;");
        asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]) :: "memory"); C[0] = d[0];"""
    begin = f"float d[4] = {{A[0], A[1], A[2], A[3]}}; {fence} {product}"
    assert warnings(kernel(f"{begin} {product} {end}")) == ()
    used_too_early = kernel(f"{begin} C[1] = d[0]; {product} {end}")
    (warning,) = warnings(used_too_early)
    assert "wgmma.mma_async instructions are serialized" in warning.message


@pytest.mark.parametrize(
    ("code", "use", "told"),
    [
        ("int f() {\nreturn 1; }", "f()", 'identifier "f" is undefined: line 1 defines it'),
        ("int TILE = 16;", "TILE", 'identifier "TILE" is undefined: line 1 defines it'),
        ("struct S {\nint at(int c) { return c; }\n};", "S{}.at(1)", '"at": line 2 defines it'),
        ("int f(int c) { return c; }", "c", 'identifier "c" is undefined'),
    ],
)
def test_a_use_of_host_code_is_reported_at_its_line(code: str, use: str, told: str) -> None:
    message = refused(f"{code}\n{kernel(f'C[0] = {use};')}").message
    assert told in message and message.endswith("`constexpr` before it") is ("defines" in told)


def template(instance: str, before: str = "") -> str:
    definition = f"template <int T>\n{kernel('C[0] = T;')}"
    return f"{definition}\nvoid solve() {{ {before} {instance}<<<1, dim3(16, 16)>>>(); }}\n"


def test_a_template_is_the_instance_that_the_file_launches() -> None:
    one, other = (compiled(template(f"{NAME}<{number}>")) for number in (16, 32))
    assert one.facts.program_sha256 != other.facts.program_sha256
    several = refused(template(f"{NAME}<16><<<1, 1>>>(); {NAME}<32>"))
    assert "host code launches with several arguments (<16>, <32>)" in several.message
    unknown = refused(template(f"{NAME}<n>", "int n = f();"))
    assert unknown.message.startswith(f"line 3: {NAME} is a template, and the file has no instance")


USE = kernel("S y; C[0] = y.x;")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"struct S {{ missing x; }};\n{USE}", 'line 1: identifier "missing" is undefined'),
        (f"struct S {{ int x }};\n{USE}", "line 1: expected a"),
        (f"class H {{ FILE* file; }};\nS s;\n{USE}", 'line 5: identifier "S"'),
        ("__device__ int x;", "no kernel named matrix_multiplication_kernel"),
        (f"namespace a {{{kernel('')}}}\n{kernel('')}", "2 kernels are named"),
        (f"template <int T>\n{kernel('')}", "line 3: matrix_multiplica"),
        (kernel("") + kernel(""), "already been defined"),
        (kernel("") + f"__global__ void {NAME}(float* A) {{}}", "takes (float*)"),
    ],
)
def test_files_without_exactly_one_correct_kernel_are_refused(source: str, message: str) -> None:
    assert message in refused(source).message


def test_resources_and_occupancy() -> None:
    source = "// solve: tile=32x32 shared_memory=4096\n" + kernel(
        "__shared__ float s[512]; s[threadIdx.x] = A[0]; __syncthreads(); C[0] = s[M];"
    )
    facts = compiled(source).facts
    assert facts.resources.static_shared_bytes == 2048
    assert facts.resources.dynamic_shared_bytes == 4096
    assert 0 < facts.resources.registers < 32
    assert facts.occupancy.blocks == 8 and facts.occupancy.fraction == 1
    assert facts.arch == "sm_90a"
    known = disassembled(source)
    assert known.badges == (Badge.CUDA_CORES, Badge.DECLARED_LAUNCH)
    assert known.instructions["LDS"] >= 1
    assert dict(facts).items() <= dict(known).items()


@pytest.mark.parametrize("called", [False, True], ids=["its own", "of what it calls"])
def test_spills_are_reported(called: bool) -> None:
    unroll = '_Pragma("unroll") for (int i = 0; i < 140; i++)'
    body = (
        f"float x[140]; {unroll} x[i] = A[i * M];\n"
        f"for (int k = 0; k < N; k++) {unroll} x[i] = x[i] * B[k] + k;\n"
        f"{unroll} C[i * K] = x[i];"
    )
    before = ""
    if called:
        before = f"__device__ __noinline__ void products({PARAMETERS}) {{\n{body}\n}}\n"
        body = "products(A, B, C, M, N, K);"
    source = kernel(body, before, "__launch_bounds__(256, 4)")
    resources = compiled(source).facts.resources
    assert resources.registers <= 64
    assert min(resources.spill_store_bytes, resources.spill_load_bytes) > 0
    assert resources.stack_bytes >= 4 * (140 - 64)


def test_loops_and_lines_are_read_from_the_machine_code() -> None:
    body = """float sum = 0;
    for (int i = 0; i < N; ++i)
        sum += A[i] * B[i];
    C[threadIdx.x] = sum;"""
    source = kernel(body)
    facts = disassembled(source)
    product = next(i for i, text in enumerate(source.splitlines(), 1) if "sum +=" in text)
    assert facts.loops, "a loop over N remains a loop"
    for loop in facts.loops:
        assert loop.first_line <= product <= loop.last_line
        assert 2 * loop.opcodes["FFMA"] == loop.opcodes["LDG.E"]
    line = next(line for line in facts.lines if line.line == product)
    assert line.opcodes["FFMA"] == facts.instructions["FFMA"]
    assert len(line.instructions) == min(16, sum(line.opcodes.values()))
    assert any(re.match(r"LDG\.E R\d+, desc", each) for each in line.instructions)
    # A loop that multiplies on a condition computes, too.
    body = """float sum = 0;
    for (int i = 0; i < N; ++i) sum += threadIdx.x < i ? A[i] * B[i] : 0.0f;
    C[threadIdx.x] = sum;"""
    facts = disassembled(kernel(body))
    assert facts.loops
    for loop in facts.loops:
        assert loop.opcodes["FMUL"] == loop.opcodes["FADD"]


MMA = Path(__file__).with_name("mma.cu.in").read_text()


@pytest.mark.parametrize(
    "source",
    [
        kernel(
            "pick[M & 1](C);",
            f"__device__ __noinline__ void f(float* C) {{ {MMA} }}\n"
            "__device__ __noinline__ void g(float* C) { C[0] = 1; }\n"
            "__device__ void (*const pick[])(float*) = {f, g};",
        ),
        kernel(
            'unsigned long long at; asm("mov.u64 %0, other;" : "=l"(at)); C[0] = at;',
            f'extern "C" __global__ void other(float* C) {{ {MMA} }}',
        ),
    ],
    ids=["called by address", "kernel referred to"],
)
def test_every_function_of_the_machine_code_counts_for_the_badge(source: str) -> None:
    facts = disassembled(source)
    assert facts.badges == (Badge.TENSOR_CORES, Badge.DEFAULT_LAUNCH)


def test_disassembling_needs_no_memory_for_large_variables() -> None:
    source = kernel("C[0] = A[0] * scratch[M];", "__device__ float scratch[1 << 29];")
    cubin = compiled(source).cubin
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    (code,) = disassembly.disassemble(cubin, "kernel.cu").values()
    assert "FMUL" in {each.name for each in code}
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert kilobytes <= max(before, 1 << 20)


def test_unreadable_machine_code_has_no_badge_for_its_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disassembly, "disassemble", lambda cubin, file_name: {})
    answer = disassemble_kernel(Disassemble(kernel=compiled(kernel("C[0] = 1;"))))
    assert answer.kernel.badges == (Badge.DEFAULT_LAUNCH,)
    assert "could not be disassembled" in answer.warnings[0].message
    monkeypatch.undo()
    assert disassembly.disassemble(b"no machine code", "kernel.cu") == {}


SCALED = kernel("float sum = A[0]; C[0] = sum + scale;", "__device__ float scale;")
SAME = [
    SCALED,
    kernel("/* a */ float s = A[0]; // b\n\nC[0] = s + factor;", "__device__ float factor;"),
    "\n\n" + SCALED.replace("scale;", "scale; /* c */"),
]
OTHER = [
    SCALED.replace("float scale;", "float scale = 1;"),
    SCALED.replace("A[0]", "A[1]"),
    SCALED.replace("float scale;", "float scale[2];").replace("+ scale", "+ scale[1]"),
    f"// solve: tile=32x32\n{SCALED}",
]


def test_one_program_has_one_hash_and_no_other_has_it() -> None:
    def identity(source: str) -> str | None:
        return compiled(source).facts.program_sha256

    (same,) = {identity(source) for source in SAME}
    others = [identity(source) for source in OTHER]
    assert len({same, *others}) == 1 + len(OTHER) and same is not None


def test_the_machine_code_comes_from_the_reported_ptx() -> None:
    made = compiled(kernel('asm volatile("// hidden\\n"); C[0] = 1;'))
    assert made.ptx == canonical(parse(made.ptx)) and "hidden" not in made.ptx
    assert assemble(made.ptx, "sm_90a", lambda: None)[0] == made.cubin


def test_a_kernel_that_is_never_launched_lends_no_badge() -> None:
    other = f"__global__ void other(float* C) {{ {MMA} }}\n"
    facts = disassembled(other + kernel("C[0] = 1;"))
    assert Badge.CUDA_CORES in facts.badges and "HMMA" not in facts.instructions


def test_only_a_crash_of_ptxas_blames_the_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ptxas"
    monkeypatch.setattr(ptxas, "program", lambda: str(program))
    program.write_text("#!/bin/sh\nkill -SEGV $$\n")
    program.chmod(0o700)
    assert refused(kernel("C[0] = A[0];")).message == "ptxas crashed on this program (SIGSEGV)"
    program.write_text("#!/bin/sh\nkill -KILL $$\n")
    with pytest.raises(RuntimeError, match="ended by SIGKILL"):
        refused(kernel("C[0] = A[0];"))
