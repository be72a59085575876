"""Attacks on the compiler that are too large for a file, or that look for a secret."""

import json
import re
from pathlib import Path

import pytest

from harness.compiling import compiler
from harness.judge.stages.compile import compile_kernel
from harness.judge.stages.outcomes import Ended
from harness.judge.submission import Unreadable, read
from harness.judge.workers.session import Session
from harness.protocol.compiler import Compile, Compiled
from harness.protocol.report import Outcome
from tests.sources import KERNEL, named_parts

SECRET = "XYZZY7341"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return the path of a file whose content a compiler would show in an error."""
    path = tmp_path / "secret.h"
    path.write_text(f"{SECRET} token;\n#error {SECRET}\n")
    return path


def compiled(
    source: str, folder: Path, session: Session, seconds: float = 60
) -> Compiled | Outcome:
    """Run the first stages of a grading. No later stage reads a file."""
    path = folder / "attack.cu"
    path.write_text(source, newline="")
    submission = read(path)
    if isinstance(submission, Unreadable):
        return submission.error
    try:
        request = Compile(source=submission.source, arch=session.info.arch, seconds=seconds)
        return compile_kernel(session.compiler, request)
    except Ended as ended:
        return ended.outcome


def told(answer: Compiled | Outcome) -> str:
    """Return everything that a user can see of an answer, machine code included."""
    code = answer.kernel.cubin.decode(errors="replace") if isinstance(answer, Compiled) else ""
    return answer.model_dump_json() + code


def verdict(answer: Compiled | Outcome) -> str:
    return "compiled" if isinstance(answer, Compiled) else answer.verdict


ATTACKS = json.loads(Path(__file__).with_name("includes.json").read_text())
INCLUDES: dict[str, str] = ATTACKS["includes"]
"""Ways to include a file, by their names."""


def attack(name: str, path: Path) -> str:
    text = str(path)
    pieces = {"name": path.parent.name, "half": text[:-4], "rest": text[-4:]}
    return INCLUDES[name].format(path=text, **pieces) + KERNEL


@pytest.mark.parametrize("name", INCLUDES)
def test_no_byte_of_a_host_file_is_told(name: str, secret: Path) -> None:
    """Even without the system's rules for workers: this process can read the file."""
    answer = compiler.compile_source(Compile(source=attack(name, secret)))
    assert verdict(answer) in ("compiled", "compile-error"), answer
    assert SECRET not in told(answer)


def test_a_symlink_next_to_the_submission_is_not_followed(
    secret: Path, cpu_session: Session
) -> None:
    (secret.parent / "mine.h").symlink_to(secret)
    answer = compiled(f'#include "mine.h"\n{KERNEL}', secret.parent, cpu_session)
    assert verdict(answer) == "compiled" and SECRET not in told(answer)


@pytest.mark.parametrize("question", ATTACKS["questions"])
def test_a_source_cannot_ask_whether_a_file_exists(question: str, secret: Path) -> None:
    def answer(path: str) -> str:
        source = question.format(path=path) + "#error yes\n#else\n#error no\n#endif\n" + KERNEL
        found = compiler.compile_source(Compile(source=source))
        return str(getattr(found, "message", found))

    assert answer(str(secret)) == answer("/no/such/file")


def with_assembly(text: str) -> str:
    """Return the kernel with a string of assembly before its store."""
    escaped = text.replace("\n", "\\n")
    return before_the_store(f'asm volatile("{escaped}");')


def before_the_store(text: str) -> str:
    return KERNEL.replace("    C[", f"    {text}\n    C[")


REFUSED = named_parts(Path(__file__).with_name("refused.cu.in"))


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED.keys())
def test_a_trick_is_refused_by_name(source: str) -> None:
    answer = compiler.compile_source(Compile(source=source))
    assert verdict(answer) == "compile-error", answer
    (said,) = re.findall("^// says: ?(.*)$", source, re.MULTILINE)
    assert said in getattr(answer, "message", "")


HARMLESS = {
    "an escape that is a letter": before_the_store('asm volatile("\\x2f\\x2f trap;\\n");'),
    "an end of a string in it": before_the_store('asm volatile("\\0 trap;");'),
    "a splice that is none": before_the_store('asm volatile("// \\\\\\n");'),
    "a flood of ends": with_assembly(";" * 1000),
    "a name of 100 000 letters": f'extern "C" __device__ int {"x" * 100_000};\n'
    + KERNEL.replace("if (row", f"{'x' * 100_000} = 1; if (row"),
    "a hundred thousand lines": "// a line\n" * 100_000 + KERNEL,
    "assembly outside": 'asm(".global .u32 trap;");\n' + KERNEL,
}


@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS.keys())
def test_a_trick_that_gains_nothing_compiles(source: str) -> None:
    answer = compiler.compile_source(Compile(source=source))
    assert isinstance(answer, Compiled), answer
    assert "trap" not in answer.kernel.ptx


@pytest.mark.parametrize(
    "source",
    [
        "#warning hello\n" * 4_000 + KERNEL,
        "#error " + "x" * 900_000,
        "__device__ int x = y;\n" * 2_000,
    ],
    ids=["warnings", "one long error", "errors"],
)
def test_messages_of_the_compiler_are_bounded(
    source: str, tmp_path: Path, cpu_session: Session
) -> None:
    answer = compiled(source, tmp_path, cpu_session)
    if isinstance(answer, Compiled):
        assert len(str(answer.warnings)) < 100_000
    else:
        assert len(answer.model_dump_json()) < 100_000


@pytest.mark.parametrize(
    "source",
    [
        "(" * 200_000,
        "namespace a {" * 20_000,
        "/*\n" * 300_000,
        "__has_include" * 50_000,
        "a" * 1_000_000,
        'R"' + "(" * 100_000,
    ],
    ids=lambda source: source[:12].strip(),
)
def test_deep_and_long_sources_end(source: str, tmp_path: Path, cpu_session: Session) -> None:
    answer = compiled(source + "\n" + KERNEL, tmp_path, cpu_session, seconds=0.5)
    assert verdict(answer) in ("compile-error", "time-limit", "compiled"), answer
