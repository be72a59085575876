"""The host code of a file is compared with the judge's launch."""

from __future__ import annotations

import pytest

from harness.compiling.host_launch import MAX_LAUNCHES
from harness.compiling.source import parse
from tests.compiling.test_source import KERNEL


def warnings(launch: str, before: str = "") -> list[str]:
    found = parse(f"{before}\n{KERNEL}\nvoid solve(int n) {{ {launch} }}\n").warnings
    assert all(each.severity == "warning" and each.line == 6 for each in found)
    return [each.message for each in found]


def blocks_of(shown: str, tile: str = "the kernel's tile size") -> str:
    cure = f"set {tile} to 16, or compute several elements per thread"
    if shown.endswith("×1"):
        cure = "number the threads of a block by `threadIdx.y * 16 + threadIdx.x`"
        cure += "" if shown == "256×1" else ", of which there are 256"
    return (
        f"the file's own host code launches blocks of {shown} threads, but the judge always "
        f"launches 16×16: {cure}"
    )


CALL = "matrix_multiplication_kernel<<<1, block>>>();"


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ("dim3 block(32, 8);", "32×8"),
        ("dim3 block{32, 8};", "32×8"),
        ("dim3 block = {8, 8, 4};", "8×8×4"),
        ("dim3 block(256);", "256×1"),
        ("dim3 block(1024);", "1024×1"),
        ("dim3 block = dim3(16, 8);", "16×8"),
        ("dim3 block(T, U);", "16×8"),
        ("dim3 block = /* for a tile */ dim3(/* columns */ 16, /* rows */ 8);", "16×8"),
    ],
)
def test_a_block_of_another_size_is_warned_of(block: str, shown: str) -> None:
    before = "#define FLAG\n#define T 16" if "T" in block else "\n"
    block = f"const int U = 8; {block}"
    tile = "`T` and `U`" if "T" in block else "the kernel's tile size"
    assert warnings(block + CALL, before) == [blocks_of(shown, tile)]


@pytest.mark.parametrize("block", ["dim3 block(n, 16);", "dim3 block(9**9, 1);", ""])
def test_a_block_size_that_cannot_be_read_gets_no_warning(block: str) -> None:
    assert warnings(block + CALL, "\n") == []


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
def test_a_tile_missing_from_the_launch_line_is_warned_of(grid: str, tile: str | None) -> None:
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
        ("9**9**9", "BYTES"),
        ("0", None),
    ],
)
def test_shared_memory_missing_from_the_launch_line_is_warned_of(
    shared: str, said: str | None
) -> None:
    text = (
        f"#define T 16\n#define LOOP LOOP + 1\n{KERNEL}\nvoid solve(int n) {{ int bytes = 1024 * 4;"
        f" matrix_multiplication_kernel<<<1, dim3(16, 16), {shared}>>>(); }}\n"
    )
    expected = [] if said is None else [f"write `// solve: shared_memory={said}`"]
    assert [each.message.partition("; ")[2] for each in parse(text).warnings] == expected
    assert parse(f"// solve: shared_memory=8192\n{text}").warnings == ()


P = "(void (*)(const float*, const float*, float*, int, int, int))"


@pytest.mark.parametrize(
    ("host", "first"),
    [
        ("void solve() { X<16><<<1, 1>>>(); }", "X<16>"),
        ("void solve() { X<16><<<1, 1>>>(); X<16><<<2, 2>>>(); }", "X<16>"),
        ("void solve() { X<16><<<1, 1>>>(); X<32><<<1, 1>>>(); }", None),
        ("void solve() { auto f = X<64>; f<<<1, 1>>>(); }", "X<64>"),
        ("void solve() { void (*f)(int) = &X<64>; f<<<1, 1>>>(); }", "X<64>"),
        ("void solve() { cudaLaunchKernel((void*)X<64>, 1, 1, 0, 0, 0); }", "X<64>"),
        ("auto f = X<64>;", "X<64>"),
        ("void solve() { const int T = 16; X<T><<<1, 1>>>(); }", "X<16>"),
        ("void solve() { constexpr int T = 4 * U; X<T><<<1, 1>>>(); }", "X<(4 * U)>"),
        ("template <int T> void f() { X<T><<<1, 1>>>(); }\nvoid g() { f<32>(); }", "X<32>"),
        ("template <int T = 8> void f() { X<T><<<1, 1>>>(); }\nvoid g() { f<>(); }", "X<8>"),
        ("void solve() { X<<<1, 1>>>(); }", f"{P}X"),
        ("void solve() { X<><<<1, 1>>>(); }", f"{P}X"),
        ("", f"{P}X"),
        ("template __global__ void X<16>(const float*);", None),
        ("void f() { X<*__TIME__><<<1, 1>>>(); }", 'X<*"00:00:00">'),
    ],
)
def test_the_instance_of_a_template_is_found_in_host_code(host: str, first: str | None) -> None:
    name = "matrix_multiplication_kernel"
    found = parse(f"template <int T>\n{KERNEL}\n{host}\n".replace("X", name)).instances
    assert found[:1] == ((first.replace("X", name),) if first else ())


def test_an_instance_is_named_with_its_namespace() -> None:
    found = parse(f"namespace a {{ namespace b {{\ntemplate <int T>\n{KERNEL}}} }}").instances
    assert found[0] == f"{P}a::b::matrix_multiplication_kernel"
