"""No submission and no answer of a worker causes a traceback or a hang."""

import contextlib
import json
import os
import struct
from multiprocessing import Pipe
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from harness.compiling.lexical import normalised
from harness.compiling.source import SourceError, parse, parse_launch_line
from harness.devices.cuda.findings import Placement, read_xml
from harness.judge.workers import channel
from harness.judge.workers.session import Session
from harness.protocol.compiler import Compile, Compiled
from harness.protocol.device import Finished, Load, Ready
from harness.protocol.report import CompileError, RuntimeFault, Tool, Unsupported
from harness.protocol.request import Fault
from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.parser import parse as parse_ptx
from problem.cases import Shape
from problem.launcher import LaunchLine
from problem.problem import MATRIX_MULTIPLICATION
from tests.compiled import compiled

ROOT = Path(__file__).resolve().parent.parent.parent
XML = sorted((ROOT / "tests" / "devices" / "cuda" / "xml").glob("*.xml"))
SOURCES = [
    path
    for path in sorted((ROOT / "tests" / "submissions").glob("*/*.cu"))
    if path.parent.name != "time-limit"  # bombs stay bombs, and cost their minute each time
]
SLOW = settings(max_examples=max(15, settings().max_examples // 4))
"""For what a worker does: a tenth of a second each."""

C_WORDS = (
    *("#include", "#define", "#if", "#endif", "#embed", "%:", "??=", "\\\n", "/*", "*/", "//"),
    *('"', "'", 'R"(', ')"', "<", ">", "(", ")", "{", "}", "[", "]", ";", ",", "*", "=", "\0"),
    *("__has_include", "defined", "__global__", "__device__", "void", "float", "int", "const"),
    *("matrix_multiplication_kernel", "A", "B", "C", "M", "N", "K", "extern", "template"),
    *('extern "C"', "namespace", "asm", "volatile", "<<<", ">>>", "// solve: tile=16x16", "\r"),
    *("/etc/passwd", "float*", "\n", " ", "0", "1e9", "__FILE__", "é", "\ufeff", "\u2028"),
)


def spliced(texts: list[str]) -> st.SearchStrategy[str]:
    """A text with pieces of itself and of others cut out, doubled and put elsewhere."""

    @st.composite
    def build(draw: st.DrawFn) -> str:
        text = draw(st.sampled_from(texts))
        for _ in range(draw(st.integers(1, 4))):
            start = draw(st.integers(0, len(text)))
            end = draw(st.integers(start, min(len(text), start + 200)))
            other = draw(st.sampled_from(texts))
            at = draw(st.integers(0, len(other)))
            piece = draw(
                st.one_of(
                    st.just(""),
                    st.just(text[start:end] * 2),
                    st.just(other[at : at + draw(st.integers(0, 100))]),
                    st.sampled_from(C_WORDS),
                    st.text(max_size=8),
                )
            )
            text = text[:start] + piece + text[end:]
        return text

    return build()


def source_text() -> st.SearchStrategy[str]:
    words = st.lists(st.sampled_from(C_WORDS), max_size=60).map(" ".join)
    glued = st.lists(st.sampled_from(C_WORDS), max_size=60).map("".join)
    return st.one_of(st.text(max_size=300), words, glued, spliced(_read(SOURCES)))


def _read(paths: list[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in paths]


LINE_WORDS = (
    *("tile=", "tile=16x32", "shared_memory=", "shared_memory=4096", "x", "=", " ", "\t"),
    *("0", "-1", "9" * 20, "0x10", "1e3", "٣", "é"),
)


@given(st.text(max_size=80) | st.lists(st.sampled_from(LINE_WORDS), max_size=12).map("".join))
def test_launch_lines(words: str) -> None:
    with contextlib.suppress(SourceError):
        line = parse_launch_line(words)
        assert isinstance(line, LaunchLine)
        columns, rows, one = line.grid(8192, 4096)
        assert columns >= 1 and rows >= 1 and one == 1


@given(source_text())
def test_sources(text: str) -> None:
    try:
        source = parse(text)
    except SourceError as error:
        assert "\n" not in str(error) and error.diagnostic.message
    else:
        assert source.device_code.count("\n") == normalised(text).count("\n")


PTX = Path(__file__).with_name("kernel.ptx").read_text(encoding="utf-8")


@given(st.one_of(st.text(max_size=200), spliced([PTX])))
def test_ptx(text: str) -> None:
    with contextlib.suppress(PtxError):
        parse_ptx(text)


PLACES = [
    Placement(
        arguments=MATRIX_MULTIPLICATION.arguments(Shape(17, 33, 18)),
        addresses=(1 << 40, (1 << 40) + 4096, (1 << 40) + 8192),
    )
]


@given(st.one_of(st.binary(max_size=300), spliced(_read(XML)).map(lambda text: text.encode())))
def test_sanitizer_xml(xml: bytes) -> None:
    for tool in Tool:
        with contextlib.suppress(ValueError):
            for finding in read_xml(xml, tool, PLACES):
                assert finding.message


def test_sanitizer_xml_does_not_explode() -> None:
    laughs = b"".join(
        b'<!ENTITY e%d "%s">' % (i, (b"&e%d;" % (i - 1)) * 10 if i else b"ha") for i in range(12)
    )
    for bomb in (
        b"<!DOCTYPE x [" + laughs + b"]><ComputeSanitizerOutput>&e11;</ComputeSanitizerOutput>",
        b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        b"<ComputeSanitizerOutput>&f;</ComputeSanitizerOutput>",
    ):
        with pytest.raises(ValueError, match="XML"):
            read_xml(bomb, Tool.MEMCHECK, PLACES)


ANSWER: TypeAdapter[Finished | Fault] = TypeAdapter(Finished | Fault)


def received(raw: bytes) -> None:
    """Let the judge read these bytes from a worker."""
    ours, theirs = Pipe()
    try:
        os.write(theirs.fileno(), raw)
        theirs.close()
        with contextlib.suppress(EOFError, OSError, ValueError):
            channel.receive(ours, lambda _: ANSWER)
    finally:
        ours.close()


def framed(body: bytes) -> bytes:
    return struct.pack("!i", len(body)) + body


@given(st.binary(max_size=200))
def test_a_worker_that_sends_anything(raw: bytes) -> None:
    received(raw)


@given(
    st.lists(st.lists(st.integers(-5, 1 << 40) | st.none(), max_size=3), max_size=4),
    st.text(max_size=30) | st.just('{"seconds":1,"output":0}'),
    st.lists(st.binary(max_size=64), max_size=3),
)
def test_a_worker_that_announces_other_matrices(
    shapes: list[object], body: str, matrices: list[bytes]
) -> None:
    header = json.dumps({"name": "Finished", "body": body, "shapes": shapes}).encode()
    received(framed(header) + b"".join(matrices))


@given(st.integers(0, 1 << 63))
def test_a_worker_that_announces_a_huge_message(size: int) -> None:
    received(struct.pack("!i", -1) + struct.pack("!Q", size) + b"{}")


@SLOW
@given(text=source_text())
def test_the_compiler_takes_anything(text: str, cpu_session: Session) -> None:
    answer = cpu_session.compiler.ask(Compile(source=text))
    assert isinstance(answer, Compiled | CompileError | RuntimeFault)
    assert "root:x" not in answer.model_dump_json()


@SLOW
@given(data=st.data())
def test_the_cpu_device_takes_any_ptx(data: st.DataObject, cpu_session: Session) -> None:
    kernel = compiled((ROOT / "solutions" / "02_shared_tile.cu").read_text(encoding="utf-8"))
    ptx = data.draw(spliced([kernel.ptx, PTX]))
    answer = cpu_session.device.ask(Load(kernel=kernel.model_copy(update={"ptx": ptx})))
    assert isinstance(answer, Ready | Unsupported), answer
