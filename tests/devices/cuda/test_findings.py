"""compute-sanitizer's XML (tests/devices/cuda/xml), as version 2025.3.1 wrote it on an H100, unless
a file says otherwise."""

from pathlib import Path

import pytest

from harness.devices.cuda.findings import Placement, read_xml
from harness.protocol.report import Array, Hazard, Place, Tool
from problem.cases import Shape
from problem.problem import MATRIX_MULTIPLICATION

XML = Path(__file__).parent / "xml"
SHAPE = Shape(17, 33, 18)


def xml(name: str) -> bytes:
    return (XML / f"{name}.xml").read_bytes()


def placed(*addresses: int) -> Placement:
    return Placement(arguments=MATRIX_MULTIPLICATION.arguments(SHAPE), addresses=addresses)


def test_a_clean_run_has_no_findings() -> None:
    assert read_xml(xml("good.memcheck"), Tool.MEMCHECK, []) == ()


def test_a_read_behind_A_is_located() -> None:
    end = 0x7FCDB08008C4  # the address in the file: right behind A
    at = placed(end - 17 * 33 * 4, end + 0x1000, end + 0x2000)
    (finding,) = read_xml(xml("oob_read.memcheck"), Tool.MEMCHECK, [at])
    assert finding.hazard is Hazard.OUT_OF_BOUNDS and finding.access == "read"
    assert (finding.array, finding.row, finding.column) == ("A", 17, 0)
    assert finding.bytes_outside == 0 and finding.size == 4 and finding.shape == SHAPE
    assert finding.at == Place(line=5, thread=(0, 1, 0), block=(0, 1, 0))
    assert finding.occurrences == 4
    assert finding.message == "line 5: read of 4 bytes at A[17][0], 0 bytes outside"


def test_a_read_before_B_is_located() -> None:
    address = 0x7FCDB08008C4
    at = placed(0x1000, address + 8, address + 0x10000)
    (finding,) = read_xml(xml("oob_read.memcheck"), Tool.MEMCHECK, [at])
    assert (finding.array, finding.row, finding.column) == ("B", -1, 16)
    assert finding.bytes_outside == 7


@pytest.mark.parametrize(
    ("name", "hazard", "line", "facts"),
    [
        ("shared_oob", Hazard.OUT_OF_BOUNDS, 3, {"array": Array.SHARED, "access": "write"}),
        ("race", Hazard.RACE, 4, {"other": Place(line=5), "occurrences": 4096}),
        ("uninit", Hazard.UNINITIALISED, 6, {}),
        ("diverge", Hazard.DIVERGENT_BARRIER, 3, {}),
    ],
)
def test_each_tool_names_its_hazard_and_line(
    name: str, hazard: Hazard, line: int, facts: dict[str, object]
) -> None:
    (file,) = XML.glob(f"{name}.*.xml")
    (finding,) = read_xml(file.read_bytes(), Tool(file.stem.partition(".")[2]), [])
    assert (finding.hazard, finding.at.line) == (hazard, line)
    assert {each: getattr(finding, each) for each in facts} == facts
    assert (f"line {line} and line 5" in finding.message) is (hazard is Hazard.RACE)


def test_a_race_in_a_header_names_the_function() -> None:
    kernel = b"<func>matrix_multiplication_kernel</func>\n          <path>kernel.cu</path>"
    header = b"<func>cp_async</func><path>cuda_pipeline_helpers.h</path>"
    (finding,) = read_xml(xml("race.racecheck").replace(kernel, header, 1), Tool.RACECHECK, [])
    where = "`cp_async` in cuda_pipeline_helpers.h and line 5"
    assert finding.message == f"race on shared memory between {where}, with no barrier between them"
    assert finding.at.line is None and finding.other == Place(line=5)


def test_an_error_without_an_address_quotes_the_tool() -> None:
    (finding,) = read_xml(xml("stack_overflow.memcheck"), Tool.MEMCHECK, [])
    assert finding.message == "line 1: stack overflow" and finding.at.line == 1


def test_a_call_that_reports_a_failed_kernel_is_no_finding() -> None:
    assert read_xml(xml("failed_call.memcheck"), Tool.MEMCHECK, []) == ()


@pytest.mark.parametrize("text", [b"", b"<", b"<html/>", b"\xff\xfe", b"<a></b>"])
def test_other_xml_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="not compute-sanitizer's XML"):
        read_xml(text, Tool.MEMCHECK, [])


def test_uninitialised_shared_memory_is_named_without_copies_by_the_host() -> None:
    (finding,) = read_xml(xml("shared_uninit.initcheck"), Tool.INITCHECK, [])
    assert finding.hazard is Hazard.UNINITIALISED and finding.array == Array.SHARED
    assert finding.at.line == 7 and finding.at.thread == (32, 0, 0)
    assert finding.message == "line 7 reads shared memory, which is uninitialised"
