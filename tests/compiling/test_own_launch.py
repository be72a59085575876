"""What a file's own host code launches, read as far as it is written in numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tree_sitter import Node

from harness.compiling import own_launch
from harness.compiling.own_launch import MAX_LAUNCHES
from harness.compiling.source import parse
from tests.compiling.test_source import KERNEL

UNREAD = "cannot read the block size of the file's own launch; the judge launches 16×16"


def warnings(launch: str, before: str = "") -> list[str]:
    found = parse(f"{before}\n{KERNEL}\nvoid solve(int n) {{ {launch} }}\n").warnings
    assert all(each.severity == "warning" and each.line == 6 for each in found)
    return [each.message for each in found]


def blocks_of(shown: str) -> str:
    return (
        f"the file's own host code launches blocks of {shown} threads; the judge always launches "
        "16×16, for which the kernel has to be rewritten"
    )


CALL = "matrix_multiplication_kernel<<<1, block>>>();"


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ("dim3 block(32, 8);", "32×8"),
        ("dim3 block{32, 8};", "32×8"),
        ("dim3 block = {8, 8, 4};", "8×8×4"),
        ("dim3 block(256);", "256×1"),
        ("dim3 block = dim3(16, 8);", "16×8"),
        ("dim3 block(100000000000);", "100000000000×1"),
        ("dim3 block(T, U);", "16×8"),
        ("dim3 block = /* for a tile */ dim3(/* columns */ 16, /* rows */ 8);", "16×8"),
    ],
)
def test_a_block_of_another_size_is_warned_of(block: str, shown: str) -> None:
    before = "#define FLAG\n#define T 16" if "T" in block else "\n"
    block = f"const int U = 8; {block}"
    assert warnings(block + CALL, before) == [blocks_of(shown)]


@pytest.mark.parametrize("size", ["256", "(256)"])
def test_a_block_can_be_a_number(size: str) -> None:
    launch = f"matrix_multiplication_kernel<<<1, {size}>>>();"
    assert warnings(launch, "\n") == [blocks_of("256×1")]


@pytest.mark.parametrize("block", ["dim3 block(n, 16);", "dim3 block(1000000000000, 1);", ""])
def test_what_cannot_be_read_is_said(block: str) -> None:
    assert warnings(block + CALL, "\n") == [UNREAD]


def test_a_launch_without_a_block_is_the_compilers_to_explain() -> None:
    assert warnings("matrix_multiplication_kernel<<<1>>>();", "\n") == [UNREAD]


def test_a_comment_in_a_launch_is_no_part_of_it() -> None:
    launch = "<<</* grid */ 1, dim3(16, 16) /* block */, 0 /* nothing more */>>>"
    assert warnings(f"matrix_multiplication_kernel{launch}();", "\n") == []


@pytest.mark.parametrize("name", ["", "<16>", "<float, 4>"])
def test_the_rules_block_is_not_warned_of(name: str) -> None:
    for where in ("", "gemm::", "::a::b::"):
        launch = f"dim3 block(16, 16); {where}matrix_multiplication_kernel{name}<<<1, block>>>();"
        assert warnings(launch, "\n") == []


def test_other_kernels_are_named_up_to_a_limit() -> None:
    others = "".join(f"other{n}<<<1, 1>>>();" for n in range(MAX_LAUNCHES + 4))
    assert warnings(others, "\n") == [
        f"the file's own host code also launches `other{n}`; the judge does not"
        for n in range(MAX_LAUNCHES)
    ]


TILES = "#define BM 64\n#define BN (2 * BM)"


@pytest.mark.parametrize(
    ("grid", "tile"),
    [
        ("dim3 grid((K + BN - 1) / BN, (M + BM - 1) / BM);", "64x128"),
        ("dim3 grid(ceil_div(K, BN), ceil_div(M, 32), 1);", "32x128"),
        ("dim3 grid = dim3((K + 15) / 16, M / 64);", "64x16"),
        ("dim3 grid((K + 15) / 16, (M + 15) / 16);", None),
        ("dim3 grid(8, 8);", None),
        ("dim3 grid(K / n, M / n);", None),
        ("dim3 grid(K / 64, M / n);", None),
        ("dim3 grid(K / n, M / 64);", None),
        ("dim3 grid(K / 64);", None),
        ("dim3 grid(M * K, M % 64);", None),
        ("int grid = K / 64;", None),
    ],
)
def test_a_tile_that_the_launch_line_does_not_say_is_warned_of(grid: str, tile: str | None) -> None:
    call = f"{grid} matrix_multiplication_kernel<<<grid, dim3(16, 16)>>>();"
    said = (
        [
            f"the file's own host code launches a block for every {tile.replace('x', '×')} elements"
            f" of C, the judge for every 16×16; write `// solve: tile={tile}`"
        ]
        if tile
        else []
    )
    assert _with_tiles(call) == said
    assert _with_tiles(call, "// solve: tile=64x64") == []


def _with_tiles(call: str, line: str = "") -> list[str]:
    found = parse(f"{line}\n{TILES}\n{KERNEL}\nvoid solve(int M, int K) {{ {call} }}\n").warnings
    return [each.message for each in found]


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        ("4096", "4096"),
        ("2 * T * T * sizeof(float)", "2048"),
        ("bytes", "4096"),
        ("n", "BYTES"),
        ("LOOP", "BYTES"),
        ("9 " + "+ 9" * 100, "BYTES"),
        ("1000" + "+9" * 98, "1882"),
        ("10000" + "+9" * 98, "BYTES"),
        ("(" * 90 + "1" + ")" * 90, "1"),
        ("0", None),
    ],
)
def test_shared_memory_that_the_launch_line_does_not_say_is_warned_of(
    shared: str, said: str | None
) -> None:
    text = (
        f"#define T 16\n#define LOOP LOOP + 1\n{KERNEL}\nvoid solve(int n) {{ int bytes = 1024 * 4;"
        f" matrix_multiplication_kernel<<<1, dim3(16, 16), {shared}>>>(); }}\n"
    )
    expected = [] if said is None else [f"write `// solve: shared_memory={said}`"]
    assert [each.message.partition("; ")[2] for each in parse(text).warnings] == expected
    assert parse(f"// solve: shared_memory=8192\n{text}").warnings == ()


def test_a_file_is_searched_once_for_all_of_its_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte with many launches held the compiler for two minutes."""
    roots: list[object] = []
    search = own_launch.descendants

    def counted(node: Node) -> Iterator[Node]:
        roots.append(node.parent is None)
        return search(node)

    monkeypatch.setattr(own_launch, "descendants", counted)
    parse(f"{KERNEL}\nvoid solve(int a) {{ dim3 block(a); {CALL * 9} }}\n")
    assert roots.count(True) == 1


@pytest.mark.parametrize(
    ("launches", "instance"),
    [
        ("X<16><<<1, 1>>>();", "X<16>"),
        (
            "a::X<float, B<2>, (3 > 2)><<<1, 1>>>(); X2<8><<<1, 1>>>();",
            "a::X<float, B<2>, (3 > 2)>",
        ),
        ("X<16><<<1, 1>>>(); X<16><<<2, 2>>>();", "X<16>"),
        ("X<16><<<1, 1>>>(); X<32><<<1, 1>>>();", None),
        ("X<16>(); auto f = X<64>; X<32><<<1, 1>>>();", "X<32>"),
        ("X<<<1, 1>>>();", None),
        ("X<\n16><<<1, 1>>>();", None),
        ("X<sizeof(__TIME__[7])><<<1, 1>>>();", None),
        ('X<sizeof("a")><<<1, 1>>>();', None),
    ],
)
def test_the_instance_of_a_template_is_the_one_that_the_file_launches(
    launches: str, instance: str | None
) -> None:
    """Unless there are two, or it is more than a name: the compiler reads it."""
    launches = launches.replace("X", "matrix_multiplication_kernel")
    expected = instance and instance.replace("X", "matrix_multiplication_kernel")
    solve = f"void solve() {{ {launches} }}\n"
    assert parse(f"template <int T>\n{KERNEL}\n{solve}").instance == expected
    assert parse(f"{KERNEL}\n{solve}").instance is None
