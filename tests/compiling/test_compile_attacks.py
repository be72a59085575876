"""Compilation as an attack: too large to keep as files, or in need of a secret to look for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compiling import compiler
from harness.grade import GradingOptions, grade
from harness.protocol.compiler import Compile, Compiled
from harness.report import Outcome, Report
from harness.stages.compile import compile_kernel
from harness.submission import Unreadable, read
from harness.workers.session import Session

SECRET = "XYZZY7341"
KERNEL = """
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
"""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that a compiler would show in an error, by content and by diagnostics."""
    path = tmp_path / "secret.h"
    path.write_text(f"{SECRET} token;\n#error {SECRET}\n")
    return path


def graded(source: str, folder: Path, session: Session) -> Report:
    path = folder / "attack.cu"
    path.write_text(source, newline="")
    return grade(read(path), session, GradingOptions(quick=True))


def compiled(
    source: str, folder: Path, session: Session, seconds: float = 60
) -> Compiled | Outcome:
    """The first stages of a grading: no later one reads a file."""
    path = folder / "attack.cu"
    path.write_text(source, newline="")
    submission = read(path)
    if isinstance(submission, Unreadable):
        return submission.error
    return compile_kernel(session.compiler, submission.source, session.info.arch, seconds)


def told(answer: Compiled | Outcome) -> str:
    """All that anybody sees of it, machine code included."""
    code = answer.kernel.cubin.decode(errors="replace") if isinstance(answer, Compiled) else ""
    return answer.model_dump_json() + code


def verdict(answer: Compiled | Outcome) -> str:
    return "compiled" if isinstance(answer, Compiled) else answer.verdict


INCLUDES = {
    "by path": '#include "{path}"\n',
    "in angle brackets": "#include <{path}>\n",
    "by relative path": '#include "secret.h"\n#include "./secret.h"\n',
    "by relative path through its folder": '#include "../{name}/secret.h"\n',
    "through CUDA's own folder": '#include "cuda/../../../../../../../../../../../..{path}"\n',
    "with two slashes": '#include "/{path}"\n',
    "by macro": '#define F "{path}"\n#include F\n',
    "by macro of a macro": "#define Q(x) #x\n#define P(x) Q(x)\n#include P({path})\n",
    "by digraph": '#define F "{path}"\n%:include F\n',
    "by trigraph": '#define F "{path}"\n??=include F\n',
    "by line splice": '#define F "{path}"\n#inc\\\nlude F\n',
    "by line splice with space": '#define F "{path}"\n#inc\\  \nlude F\n',
    "by line splice with carriage returns": '#define F "{path}"\n#inc\\\r\r\nlude F\n',
    "by line splice with a lone carriage return": '#define F "{path}"\n#inc\\\rlude F\n',
    "by line splice with a vertical tab": '#define F "{path}"\n#inc\\ \v\nlude F\n',
    "by pasted name": '#define P(a, b) a##b\n#define F "{path}"\n#include P(,F)\n',
    "by a way up from CUDA's": "#include <cuda/std/../../../../../../../../../../..{path}>\n",
    "by splice in the name": '#include "{half}\\\n{rest}"\n',
    "behind a comment": '#define F "{path}"\n/* */ # /* \n */ include /* */ F\n',
    "behind a string that looks like a comment": (
        '__device__ const char s[] = "/*";\n#define F "{path}"\n#include F\n// */\n'
    ),
    "behind a raw string": (
        'const char* r = R"(\n)" "/*";\n#define F "{path}"\n#include F\nconst char* t = "*/";\n'
    ),
    "behind a carriage return": '\r#include "{path}"\r\n',
    "behind a form feed": '\f#include "{path}"\n',
    "behind a byte order mark": '\ufeff#include "{path}"\n',
    "next": '#include_next "{path}"\n',
    "import": '#import "{path}"\n',
    "module": 'import "{path}";\n',
    "embed": '__device__ const char s[] = {{\n#embed "{path}"\n}};\n',
    "pragma": '#pragma include "{path}"\n_Pragma("include \\"{path}\\"")\n',
    "pragma alias": '#pragma include_alias("a.h", "{path}")\n#include "a.h"\n',
    "line": '#line 1 "{path}"\nthis is an error;\n',
    "assembler include": '__device__ void f() {{ asm("\\n.include \\"{path}\\"\\n"); }}\n',
    "assembler preprocessor": '__device__ void f() {{ asm("\\n#include \\"{path}\\"\\n"); }}\n',
    "assembler incbin": '__device__ void f() {{ asm("\\n.incbin \\"{path}\\"\\n"); }}\n',
    "assembler file": '__device__ void f() {{ asm("\\n.file 9 \\"{path}\\"\\n"); }}\n',
}


def attack(name: str, path: Path) -> str:
    text = str(path)
    return KERNEL.join(
        (
            INCLUDES[name].format(path=text, name=path.parent.name, half=text[:-4], rest=text[-4:]),
            "",
        )
    )


@pytest.mark.parametrize("name", INCLUDES)
def test_no_byte_of_a_host_file_is_told(name: str, secret: Path, cpu_session: Session) -> None:
    answer = compiled(attack(name, secret), secret.parent, cpu_session)
    assert verdict(answer) in ("compiled", "compile-error"), answer
    assert SECRET not in told(answer)


@pytest.mark.parametrize("name", INCLUDES)
def test_nor_would_it_be_if_the_system_held_nobody_to_anything(name: str, secret: Path) -> None:
    """The same without confinement: this process can read the file."""
    assert SECRET not in told(compiler.compile_source(Compile(source=attack(name, secret))))


def test_a_symlink_beside_the_submission_is_not_followed(
    secret: Path, cpu_session: Session
) -> None:
    (secret.parent / "mine.h").symlink_to(secret)
    answer = compiled(f'#include "mine.h"\n{KERNEL}', secret.parent, cpu_session)
    assert verdict(answer) == "compiled" and SECRET not in told(answer)


@pytest.mark.parametrize(
    "question",
    [
        '#if __has_include("{path}")\n',
        "#if __has_include(<{path}>)\n",
        '#define Q __has_include\n#if Q("{path}")\n',
        '#define P(a, b) a##b\n#define Q(a, b) P(a, b)\n#if Q(__has_, include)("{path}")\n',
        '#define P(a, b) a%:%:b\n#define C(f) f(__has_, include)\n#if 1 && /*\n*/ C(P)("{path}")\n',
        '#define Q /*\n// */ __has_include\n#if Q("{path}")\n',
    ],
)
def test_what_exists_on_the_machine_cannot_be_asked(question: str, secret: Path) -> None:
    def answer(path: str) -> str:
        source = question.format(path=path) + "#error yes\n#else\n#error no\n#endif\n" + KERNEL
        found = compiler.compile_source(Compile(source=source))
        return str(getattr(found, "message", found))

    assert answer(str(secret)) == answer("/no/such/file")


# --------------------------------------------------------------------------------------- bombs


def test_a_hundred_thousand_lines(tmp_path: Path, cpu_session: Session) -> None:
    answer = compiled("// a line\n" * 100_000 + KERNEL, tmp_path, cpu_session)
    assert verdict(answer) == "compiled"


def test_a_file_that_is_too_large(tmp_path: Path, cpu_session: Session) -> None:
    report = graded("// a line\n" * 200_000, tmp_path, cpu_session)
    assert report.verdict == "compile-error"
    assert "larger than 1 MiB" in getattr(report.outcome, "message", "")
    assert len(report.submission.source) == 0


@pytest.mark.parametrize(
    "source",
    ["#warning hello\n" * 40_000 + KERNEL, "#error " + "x" * 900_000, "int x = y;\n" * 50_000],
    ids=["warnings", "one long error", "errors"],
)
def test_what_the_compiler_says_is_bounded(
    source: str, tmp_path: Path, cpu_session: Session
) -> None:
    report = graded(source, tmp_path, cpu_session)
    said = report.model_copy(
        update={"submission": report.submission.model_copy(update={"source": ""})}
    )
    assert len(said.model_dump_json()) < 100_000


@pytest.mark.parametrize(
    "source",
    [
        "(" * 200_000,
        "{" * 200_000,
        "namespace a {" * 20_000,
        "/*\n" * 300_000,
        "/**/" * 200_000 + "x",
        "#if 1\n" * 100_000,
        "__has_include" * 50_000,
        "a" * 1_000_000,
        "// solve: " + "tile=1x1 " * 100_000,
        'R"' + "(" * 100_000,
        "#define A A A\n" + "A " * 400_000,
    ],
    ids=lambda source: source[:12].strip(),
)
def test_deep_and_long_sources_end(source: str, tmp_path: Path, cpu_session: Session) -> None:
    answer = compiled(source + "\n" + KERNEL, tmp_path, cpu_session, seconds=3)
    assert verdict(answer) in ("compile-error", "time-limit", "compiled"), answer
