"""Messages about mistakes that a compiler finds have a line, a cause and a cure."""

from pathlib import Path

import pytest

from harness.compiling.compiler import compile_source
from harness.protocol.compiler import Compile
from harness.protocol.report import RuntimeFault
from tests.compiled import compiled, refused
from tests.sources import NAME, PARAMETERS

HEAD = f"__global__ void {NAME}({PARAMETERS}) {{"

MISTAKES = {
    "missing brace": (
        f"{HEAD}\n    if (M) {{\n        C[0] = 1;\n}}\n",
        "line 1: the `{` of line 1 is never closed; a `}` is missing after it",
    ),
    "one brace too many": (
        f"{HEAD}\n    C[0] = 1;\n}}\n}}\n",
        "line 4: expected a declaration; there",
    ),
    "missing semicolon": (
        f"{HEAD}\n    float s = 0\n\n    C[0] = s;\n}}\n",
        'line 4: expected a ";"; write one at the end of line 2',
    ),
    "return in a statement expression": (
        f"{HEAD}\n    C[0] = ({{ if (M) return; 1; }});\n}}\n",
        "line 2: expected an expression; GCC's `({ … })` may not contain `return` or `goto` here",
    ),
    "no value between ? and :": (
        f"{HEAD}\n    C[0] = M ?: 1;\n}}\n",
        "line 2: expected an expression; write the value between `?` and `:`",
    ),
    "function that is not defined": (
        f"__device__ float scaled(float x);\n{HEAD}\n    C[0] = scaled(A[0]);\n}}\n",
        "line 3: `scaled` is called, but the file does not define it",
    ),
    "a mistake next to what only C++20 has": (
        f"{HEAD}\n    auto f = []<class T>(T x) {{ return x; }};\n    C[0] = f(z);\n}}\n",
        'line 3: identifier "z" is undefined',
    ),
    "unknown instruction": (
        f'{HEAD}\n    asm("fmaa.rn.f32 %0, %0, %0, %0;" : "+f"(C[0]));\n}}\n',
        "line 2: ptxas: Not a name of any known instruction: 'fmaa'",
    ),
    "letters of several bytes": (
        f"{HEAD}\n    int é = 1, 矩, 阵 = ;\n}}\n",
        "line 2: unrecognized token U+00E9 (LATIN SMALL LETTER E WITH ACUTE): only comments",
    ),
    "name of a header that is empty": (
        f'#include "tensor.h"\n{HEAD}\n    Tensor a(A);\n}}\n',
        'identifier "Tensor" is undefined; if "tensor.h" (line 1) declares it, write it into',
    ),
    "kernel with a type of a header that is empty": (
        f"#include <curand_kernel.h>\n__global__ void draw(curandState* s) {{}}\n{HEAD}}}\n",
        'line 2: identifier "curandState" is undefined; if "curand_kernel.h" (line 1) declares',
    ),
    "algorithm of Thrust": (
        f"#include <thrust/reduce.h>\n{HEAD}\n    C[0] = thrust::reduce(A, A + 1);\n}}\n",
        "; of Thrust, a kernel can use only tuples, pairs, function objects and iterators",
    ),
    "container of the standard library": (
        f"#include <vector>\n{HEAD}\n    std::vector<float> v;\n}}\n",
        'namespace "std" has no member "vector"; it is for host code only',
    ),
    "Markdown": (
        f"Here it is:\n```cuda\n{HEAD}}}\n```\n",
        "line 2: this is Markdown, not CUDA; keep only the code between",
    ),
    "kernel without __global__": (
        HEAD.removeprefix("__global__ ") + "}\n",
        f"line 1: {NAME} is a host function here; a kernel begins with `__global__`",
    ),
    "parameters of other types": (
        f"{HEAD}}}\n".replace("int M, int N", "long long M,\n int N"),
        f"line 1: {NAME} takes (const float* A, const float* B, float* C, long long M, int N, int",
    ),
    "template without an instance": (
        f"template <typename T, int X> {HEAD}}}\n",
        f"`template __global__ void {NAME}<float, 16>(const float*,",
    ),
    "comment without an end": (
        f"{HEAD}\n    /* about this\n    C[0] = 1;\n}}\n",
        "line 2: comment unclosed at end of file",
    ),
}


@pytest.mark.parametrize(("source", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_has_a_line_a_cause_and_a_cure(source: str, said: str) -> None:
    message = refused(source).message
    assert said in message and "kernel.cu" not in message


def test_only_the_first_unknown_name_has_advice() -> None:
    source = f'#include "tensor.h"\n{HEAD}\n    Tensor a(A), b(B);\n    Tensor c(a);\n}}\n'
    said = ["submission gets only" in each.message for each in refused(source).diagnostics]
    assert said[0] and not any(said[1:]) and len(said) > 1


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("__block_size__((32, 8, 1))", "requires blocks of (32, 8, 1) threads"),
        ("__block_size__((16, 16, 1), (2, 1, 1))", "size clusters by __cluster_dims__ alone"),
        ("__cluster_dims__()", "size clusters by __cluster_dims__ alone"),
    ],
)
def test_a_launch_that_the_judge_does_not_make_is_refused(attribute: str, said: str) -> None:
    source = f"{HEAD} C[0] = 1; }}".replace("void", f"void {attribute}")
    answer = compile_source(Compile(source=source))
    assert isinstance(answer, RuntimeFault) and said in answer.message


def test_letters_of_the_folder_do_not_reach_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "Prüfung"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(folder))
    assert str(tmp_path) not in compiled(f"{HEAD} C[0] = 1; }}").ptx
