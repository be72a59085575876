"""CUDA source is read: LeetGPU files, launch lines, and files that cannot be a submission."""

import csv
import re
import time
from pathlib import Path

import pytest

from harness.compiling import lexical
from harness.compiling.source import SourceError, parse, parse_launch_line
from problem.launcher import LaunchLine

KERNEL = """\
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M,
                                             int N, int K) { C[0] = A[0] * B[0]; }
"""

LEETGPU = Path(__file__).with_name("leetgpu.cu").read_text(encoding="utf-8")


def test_host_code_is_set_aside_and_lines_stay() -> None:
    code = parse(LEETGPU).device_code
    assert len(code.splitlines()) == len(LEETGPU.splitlines())
    for gone in ("cudaMalloc", "cudaDeviceSynchronize", "<<<", "blocks(int"):
        assert gone not in code
    for kept in ("twice(float x)", "square(int x)", "both(int x)", "matrix_multiplication_kernel"):
        assert kept in code
    assert "__hdconst int square" in code
    lines = dict(zip(LEETGPU.splitlines(), code.splitlines(), strict=True))
    assert next(left for line, left in lines.items() if line.startswith("template")).strip() == ";"
    assert "twice(A[0])" in next(left for line, left in lines.items() if "twice(A" in line)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", LaunchLine()),
        ("tile=128x256", LaunchLine(128, 256)),
        ("shared_memory=74496 tile=200x128", LaunchLine(200, 128, 74496)),
    ],
)
def test_launch_lines(words: str, line: LaunchLine) -> None:
    assert parse_launch_line(words) == line
    assert parse(f"// solve: {words}\n" + KERNEL).launch == line


with Path(__file__).with_name("launch_lines.csv").open(newline="") as file:
    BAD_LAUNCH_LINES = [(row["words"], row["message"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("words", "message"), BAD_LAUNCH_LINES)
def test_bad_launch_lines_are_one_sentence_with_an_example(words: str, message: str) -> None:
    with pytest.raises(SourceError, match="launch line") as error:
        parse(f"\n// solve: {words}\n" + KERNEL)
    assert message in str(error.value) and "tile=128x256" in str(error.value)
    assert (error.value.diagnostic.line, error.value.diagnostic.column) == (2, 1)
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    "comment",
    [
        "//solve: tile=32x64",
        "//solve : tile=32x64",
        "// Solve: tile=32x64",
        "// SOLVE: tile=32x64",
        "// solve tile=32x64",
        "/// solve: tile=32x64",
        "//   solve: tile=32x64",
        "/* solve: tile=32x64 */",
        "/**\n * solve: tile=32x64\n */",
    ],
)
def test_a_near_miss_of_a_launch_line_gets_a_warning(comment: str) -> None:
    source = parse(f"{comment}\n{KERNEL}")
    (warning,) = source.warnings
    assert source.launch.is_default
    assert "not a launch line" in warning.message
    assert "`// solve: tile=32x64 shared_memory=8192`" in warning.message
    assert warning.line == (2 if comment.startswith("/**") else 1)


@pytest.mark.parametrize(
    "text",
    [
        *("// we solve: tile=32x64", "// solves the problem", "// How to solve: tiles"),
        '__constant__ char s[] = "// solve: tile=32x32";',
    ],
)
def test_prose_and_strings_are_no_launch_lines(text: str) -> None:
    source = parse(f"{text}\n{KERNEL}")
    assert source.launch.is_default and not source.warnings


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ("const double* A, const double* B, double* C, int M, int N, int K", "double*"),
        ("float* A, float* B, float* C, int M, int N", r"float\*, int, int\)"),
        ("int M, int N, int K, float* A, float* B, float* C", r"\(int, int, int, float\*"),
    ],
)
def test_a_wrong_signature_is_shown_with_the_right_one(parameters: str, found: str) -> None:
    with pytest.raises(SourceError, match=found) as error:
        parse(f"__global__ void matrix_multiplication_kernel({parameters}) {{}}")
    assert "const float* A, const float* B, float* C, int M, int N, int K" in str(error.value)
    assert (error.value.diagnostic.line, error.value.diagnostic.column) == (1, 45)


@pytest.mark.parametrize(
    "before",
    [
        "__device__ int one() { return 1; }",
        "__global__ void matrix_multiplication_kernel(real* A, int M) {}",
        "__global__ void matrix_multiplication_kernel(float* A, ), int M) {}",
    ],
)
def test_a_wrong_signature_is_found_behind_an_unreadable_one(before: str) -> None:
    parse(f"{before}\n{KERNEL}")
    with pytest.raises(SourceError, match=r"takes \(float\*\)") as error:
        parse(f"{before}\n__global__ void matrix_multiplication_kernel(float* A) {{}}")
    assert error.value.diagnostic.line == 2


@pytest.mark.parametrize(
    "parameters",
    [
        "const float* __restrict__ A, const float* __restrict__ B, float* C, int M, int N, int K",
        "const float *A, const float *B, float *C, const int M, const int N, const int K",
        "const float A[], const float B[], float C[], int M, int N, int K",
        "real* A, real* B, real* C, int M, int N, int K",
        "float* A, float* B, float* C, unsigned M, unsigned N, unsigned K",
        "float* A, float* B, float* C, int M, int N, int K = 2 * 8",
    ],
)
def test_the_same_signature_in_other_words_passes(parameters: str) -> None:
    parse(f"typedef float real; __global__ void matrix_multiplication_kernel({parameters}) {{}}")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\\\r\r\n", "\\ \v\n", "\\\t\r\n"])
def test_all_line_ends_are_one(end: str) -> None:
    code = parse(f"int a;{end}int b;\n{KERNEL}").device_code
    assert "\r" not in code and not re.search(r"\\[ \t\v\f]+\n", code)


@pytest.mark.parametrize("name", ["__DATE__", "__TIME__", "__TIMESTAMP__"])
def test_macros_of_the_time_are_fixed(name: str) -> None:
    code = parse(f'#define T {name} // {name}\n__device__ char t[] = {name} "{name}";\n{KERNEL}')
    first, second, *_ = code.device_code.splitlines()
    assert first.count(name) == 1 and first.startswith('#define T "')
    assert second.endswith(f'"{name}";') and second.count("1970") + second.count("00:00:00") >= 1
    with pytest.raises(SourceError, match="splice"):
        parse(f"__device__ char t[] = {name[:4]}\\\n{name[4:]};\n{KERNEL}")


def test_a_present_time_is_seen_whatever_hides_its_name() -> None:
    now = time.time()
    lexical.check_for_present_time("nothing", now)
    for shown in ("%H:%M:%S", "%b %d %Y"):
        with pytest.raises(SourceError, match="time of compilation"):
            lexical.check_for_present_time(f'"{time.strftime(shown)}"'.replace(" 0", "  "), now)


with Path(__file__).with_name("statement_expressions.csv").open(newline="") as file:
    STATEMENT_EXPRESSIONS = [(row["written"], row["compiled"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("written", "compiled"), STATEMENT_EXPRESSIONS)
def test_statement_expressions_are_calls_of_lambdas(written: str, compiled: str) -> None:
    """A lambda would catch a `return` that leaves the function around the expression."""
    macros = "#define LEAVE return\n#define JUMP goto end"
    code = f"{macros}\n{KERNEL}\n__device__ void device() {{ {written}; }}"
    assert parse(code).device_code == code.replace(written, compiled)
