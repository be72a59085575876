"""The host code of a file is compared with the judge's launch."""

import csv
from pathlib import Path

import pytest

from harness.compiling.source import parse
from tests.compiling.test_source import KERNEL


def warnings(launch: str, before: str = "") -> list[str]:
    found = parse(f"{before}\n{KERNEL}\nvoid solve(int n) {{ {launch} }}\n").warnings
    assert all(each.severity == "warning" and each.line == 6 for each in found)
    return [each.message for each in found]


CALL = "matrix_multiplication_kernel<<<1, block>>>();"
OTHER = "matrix_multiplication_kernel<<<1, n>>>();"


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ("dim3 block(32, 8);", "32×8"),
        ("dim3 block{32U, 8};", "32×8"),
        ("dim3 block = {8, 8, 4};", "8×8×4"),
        ("dim3 block(256);", "256×1"),
        ("dim3 block(1024);", "1024×1"),
        ("dim3 block = dim3(16, 8);", "16×8"),
        ("dim3 block(T, U);", "16×8"),
        ("dim3 block = /* for a tile */ dim3(/* columns */ 16, /* rows */ 8);", "16×8"),
    ],
)
def test_the_first_block_of_another_size_is_warned_of(block: str, shown: str) -> None:
    before = "#define FLAG\n#define T 16" if "T" in block else "\n"
    assert warnings(f"const int U{{8}}; {block} {OTHER} {CALL} {CALL}", before) == [
        f"the file's own host code launches blocks of {shown} threads, but the judge always "
        "launches blocks of 16×16: `threadIdx.x` and `threadIdx.y` are below 16"
    ]


@pytest.mark.parametrize(
    "block",
    [
        "dim3 block(16, 16);",
        "dim3 block(n, 16);",
        "dim3 block(9**9, 1);",
        "{ dim3 block(8, 8); } dim3 block(16, 16);",
        "",
    ],
)
@pytest.mark.parametrize("name", ["", "<16>", "<float, 4>"])
def test_no_warning_without_a_known_wrong_block_size(block: str, name: str) -> None:
    for where in ("", "gemm::", "::a::b::"):
        launch = f"{block} {where}matrix_multiplication_kernel{name}<<<1, block>>>();"
        assert warnings(launch, "\n") == []
    assert warnings(f"{block} other<<<1, 32>>>();", "\n") == []
    launch = "<<</* grid */ 1, dim3(16, 16) /* block */, 0 /* nothing more */>>>"
    assert warnings(f"matrix_multiplication_kernel{launch}();", "\n") == []


P = "(void (*)(const float*, const float*, float*, int, int, int))"


with Path(__file__).with_name("instances.csv").open(encoding="utf-8", newline="") as file:
    INSTANCES = [(row["host"], row["first"].replace("{P}", P)) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("host", "first"), INSTANCES)
def test_the_instance_of_a_template_is_found_in_host_code(host: str, first: str) -> None:
    name = "matrix_multiplication_kernel"
    found = parse(f"template <int T>\n{KERNEL}\n{host}\n".replace("X", name)).instances
    assert found[:1] == ((first.replace("X", name),) if first else ())


def test_an_instance_is_named_with_its_namespace() -> None:
    found = parse(f"namespace a {{ namespace b {{\ntemplate <int T>\n{KERNEL}}} }}").instances
    assert found[0] == f"{P}a::b::matrix_multiplication_kernel"
