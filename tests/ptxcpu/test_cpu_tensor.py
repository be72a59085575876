"""Matrix instructions, compared with NumPy: every shape, type and layout in shared memory."""

import itertools
from typing import Any

import numpy as np
import pytest

from harness.protocol.report import Hazard
from problem.cases import Matrix, Shape
from tests.ptxcpu.runner import KERNELS, Runner
from tests.sources import named_parts


def small_integers(shape: Shape) -> tuple[Matrix, Matrix]:
    """Return integers that are exact in f16, bf16 and tf32, and whose sums are exact, too."""
    random = np.random.default_rng(7)
    A = random.integers(-8, 9, (shape.M, shape.N)).astype(np.float32)
    B = random.integers(-8, 9, (shape.N, shape.K)).astype(np.float32)
    return A, B


def exact(cpu: Runner, shape: Shape) -> None:
    A, B = small_integers(shape)
    result = cpu.multiply(shape, A, B)
    assert np.array_equal(result, A @ B)


PACK = {
    "tf32": 'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));',
    "f16": 'asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));',
    "bf16": 'asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));',
}


PARTS = named_parts(KERNELS / "tensor_parts.cu.in")

WMMA = [
    ("__half", "__half", (16, 16, 16)),
    ("__half", "__half", (8, 32, 16)),
    ("__half", "__half", (32, 8, 16)),
    ("__nv_bfloat16", "__nv_bfloat16", (16, 16, 16)),
    ("__nv_bfloat16", "__nv_bfloat16", (8, 32, 16)),
    ("__nv_bfloat16", "__nv_bfloat16", (32, 8, 16)),
    ("float", "wmma::precision::tf32", (16, 16, 8)),
]


def wmma_source(element: str, precision: str, tile: tuple[int, int, int], padding: int) -> str:
    """Return a kernel whose rows in shared memory have some elements of padding."""
    m, n, k = tile
    source = (KERNELS / "wmma.cu.in").read_text()
    fields = {"ELEMENT": element, "PRECISION": precision, "TM": m, "TN": n, "TK": k}
    for name, text in {**fields, "PADDING": padding, "KIND": precision, "SHAPE": tile}.items():
        source = source.replace(name, str(text))
    return f"// solve: tile={m}x{n}\n" + source


@pytest.mark.parametrize(("element", "precision", "tile"), WMMA)
def test_wmma(cpu: Runner, element: str, precision: str, tile: tuple[int, int, int]) -> None:
    m, n, _ = tile
    cpu.load(wmma_source(element, precision, tile, padding=8))
    exact(cpu, Shape(64, 32, 64))
    assert cpu.findings(Shape(2 * m, 32, 2 * n)) == ()


@pytest.mark.parametrize("element", ["__half", "__nv_bfloat16"])
def test_fragments_of_16_bit_elements_need_aligned_rows(cpu: Runner, element: str) -> None:
    cpu.load(wmma_source(element, element, (8, 32, 16), padding=4))
    findings = cpu.findings(Shape(8, 16, 32))
    assert {x.hazard for x in findings} == {Hazard.MISALIGNED}
    assert all("pad the leading dimension of 16-bit fragments" in x.message for x in findings)


MMA_FORMS = [(rows, k, "f64", "f64") for rows, k in ((8, 4), (16, 4), (16, 8), (16, 16))]
MMA_FORMS += [(16, k, a, b) for k in (16, 32) for a in ("s8", "u8") for b in ("s8", "u8")]


@pytest.mark.parametrize(("rows", "k", "one", "other"), MMA_FORMS)
def test_mma(cpu: Runner, rows: int, k: int, one: str, other: str) -> None:
    is_double = one == "f64"
    each, sum_, letter = (1, "f64", "d") if is_double else (4, "s32", "r")
    counts = {"d": rows // 4, "a": rows * k // 32 // each, "b": k // 4 // each}
    names = [f"{x}[{i}]{'' if x == 'd' else '.word'}" for x in counts for i in range(counts[x])]
    places = iter(range(len(names)))
    lists = ["{" + ",".join(f"%{next(places)}" for _ in range(n)) + "}" for n in counts.values()]
    sums = ", ".join(f'"+{letter}"({name})' for name in names[: counts["d"]])
    words = ("word", "element", "sum"), ("unsigned", "signed char", "int")
    fields = {
        "opcode": f"m{rows}n8k{k}.row.col.{sum_}.{one}.{other}.{sum_}",
        "lists": ", ".join([*lists, lists[0]]),
        "operands": f"{sums} : " + ", ".join(f'"{letter}"({x})' for x in names[counts["d"] :]),
    }
    fields |= dict.fromkeys(words[0], "double") if is_double else dict(zip(*words, strict=True))
    cpu.load(PARTS["mma"] % {"each": each, "rows": rows, **counts, **fields})
    A, B = small_integers(Shape(rows, k, 8))
    A, B = (np.abs(x) if kind == "u8" else x for x, kind in ((A, one), (B, other)))
    assert np.array_equal(cpu.multiply(Shape(rows, k, 8), A, B), A @ B)


WGMMA = (KERNELS / "wgmma.cu.in").read_text()
"""A is 64 x DEPTH, B is DEPTH x WIDTH."""
ELEMENTS = {"tf32": "float", "f16": "__half", "bf16": "__nv_bfloat16"}
MODES = {0: 0, 128: 1, 64: 2, 32: 3}


def wgmma_source(
    kind: str,
    width: int,
    swizzle: int,
    a_registers: bool,
    trans_a: bool,
    trans_b: bool,
    *,
    saturates: bool = False,
    start: int | None = None,
) -> tuple[str, Shape]:
    """Return a kernel of one warpgroup, and the shape it multiplies.

    kind: the type of A and B, or such as s8.u8 for integers. start: what the accumulators hold
    before, if it counts.
    """
    is_integer = kind not in ELEMENTS
    size = 1 if is_integer else 4 if kind == "tf32" else 2
    step, depth = 32 // size, (swizzle or 64) // size
    depth = max(depth, 2 * step if is_integer else step)
    atom = swizzle or 16

    def strides(transposed: bool, extent: int) -> tuple[int, int]:
        """Leading and stride byte offsets, as the manual names them for each layout."""
        across = (
            8 * atom * ((depth if transposed else extent) // 8)
        )  # to the next atom side by side
        down = 8 * atom  # to the next 8 rows below
        if transposed and not swizzle:
            return down, across
        return across, down

    registers = width // 2
    after_a = registers + (4 if a_registers else 1)
    transposes = ""
    if size == 2:  # the other types cannot be transposed
        transposes = f", {int(trans_b)}" if a_registers else f", {int(trans_a)}, {int(trans_b)}"
    from_registers = "bytes of A in registers" if is_integer else "A in registers"
    letter = "r" if is_integer else "f"
    fields = {
        "INCLUDES": "" if is_integer else "#include <cuda_fp16.h>\n#include <cuda_bf16.h>",
        "CONVERTED": "(char)(int)" if is_integer else "(T)",
        "SUM": "int" if is_integer else "float",
        "START": 100 if start is None else start,
        "KEEPS": int(start is not None),
        "STORED": "__int_as_float(d[i])" if is_integer else "d[i]",
        "A_OPERANDS": PARTS[from_registers if a_registers else "A in shared memory"],
        "PACK": "" if is_integer else PACK[kind].replace('"=r"(w)', '"=r"(a[w])'),
        "D_LIST": ", ".join(f'"+{letter}"(d[{i}])' for i in range(registers)),
        "A_LIST": ", ".join(f'"r"(a[{i}])' for i in range(4)) if a_registers else '"l"(a)',
        "A_REGS": "{" + ",".join(f"%{registers + i}" for i in range(4)) + "}"
        if a_registers
        else f"%{registers}",
        "%B_REG": f"%{after_a}",
        "%SCALE": f"%{after_a + 1}",
        "FINITE": ".satfinite" if saturates else "",
        "TYPES": f"s32.{kind}" if is_integer else f"f32.{kind}.{kind}",
        "FLAGS": "" if is_integer else f", 1, 1{transposes}",
        "D_REGS": ",".join(f"%{i}" for i in range(registers)),
        "A_LEADING": strides(trans_a, 64)[0],
        "A_STRIDE": strides(trans_a, 64)[1],
        "B_LEADING": strides(trans_b, width)[0],
        "B_STRIDE": strides(trans_b, width)[1],
        "A_BYTES": 64 * depth * size,
        "TRANS_A": str(trans_a).lower(),
        "TRANS_B": str(trans_b).lower(),
        "SWIZZLE": swizzle,
        "MODE": MODES[swizzle],
        "ELEMENT": ELEMENTS.get(kind, "char"),
        "WIDTH": width,
        "DEPTH": depth,
        "STEP": step,
        "EACH": 4 // size,
    }
    source = WGMMA
    for name, text in fields.items():
        source = source.replace(name, str(text))
    shared = (64 + width) * depth * size
    return f"// solve: tile=64x{width} shared_memory={shared}\n{source}", Shape(64, depth, width)


WGMMA_FORMS = [
    *(("f16", width, 128, False, False, False) for width in (8, 24, 256)),
    # each type and each layout, with A in shared memory and in registers alternately
    *(
        (kind, 16, swizzle, swizzle in ((0, 64) if kind == "f16" else (32, 128)), False, False)
        for kind in ("tf32", "f16", "bf16")
        for swizzle in MODES
    ),
    *(
        ("f16", 64, swizzle, False, trans_a, trans_b)
        for swizzle in MODES
        for trans_a, trans_b in ((True, False), (False, True), (True, True))
    ),
]


@pytest.mark.parametrize("form", WGMMA_FORMS, ids=str)
def test_wgmma(cpu: Runner, form: tuple[str, int, int, bool, bool, bool]) -> None:
    source, shape = wgmma_source(*form)
    cpu.load(source)
    exact(cpu, shape)


TWICE = {
    "one guarded": "@q FIRST SECOND",
    "one jumped over": "@!q bra OVER; FIRST OVER: SECOND",
    "a shuffle between": "FIRST shfl.sync.bfly.b32 x, %0, 1, 31, -1; SECOND",
}


@pytest.mark.parametrize("form", TWICE.values(), ids=TWICE)
def test_wgmma_adds_to_the_present_values_of_registers(cpu: Runner, form: str) -> None:
    """Each product twice into the same registers, to one of which one is added before; but for the
    first of one product, which may be left out."""
    source, shape = wgmma_source("f16", 16, 128, False, False, False)
    lines = source.splitlines()
    at = next(i for i, line in enumerate(lines) if "wgmma.mma_async" in line)
    product = "".join(line.strip().strip('"') for line in lines[at : at + 2]).removesuffix(" }")
    twice = form.replace("FIRST", product).replace("SECOND", product)
    lines[at : at + 2] = [f'"add.f32 %1, %1, 0f3F800000; {twice} }}"']
    source = "\n".join(lines)
    source = source.replace(".reg .pred p;", ".reg .pred p, q; .reg .b32 x; setp.ne.b32 q, %11, 0;")
    source = source.replace('"r"(scale));', '"r"(scale), "r"(int(k != 32)));')
    cpu.load(source)
    A, B = small_integers(shape)
    result = cpu.multiply(shape, A, B)
    left_out = 32 if "q" in form else None
    expected = sum(
        (1 if k in (0, left_out) else 2) * (A[:, k : k + 16] @ B[k : k + 16])
        for k in range(0, 64, 16)
    )
    expected.reshape(4, 16, 16)[:, :8, 1:8:2] += 3  # behind the first, which starts from nothing
    assert np.array_equal(result, expected)


INTEGER_FORMS: list[dict[str, Any]] = [
    *({"width": width} for width in (8, 24, 48, 256)),
    *(
        {"width": 16, "a_type": a, "b_type": b, "a_registers": a_registers}
        for a, b, a_registers in itertools.product(("s8", "u8"), ("s8", "u8"), (False, True))
    ),
    *({"width": 24, "swizzle": swizzle} for swizzle in (32, 64, 128)),
    *(
        {"width": 16, "start": start, "saturates": saturates}
        for start in (2**31 - 1000, -(2**31) + 1000)
        for saturates in (False, True)
    ),
]
"""start: what the accumulators hold before, if it counts."""


@pytest.mark.parametrize("form", INTEGER_FORMS, ids=str)
def test_integer_wgmma(cpu: Runner, form: dict[str, Any]) -> None:
    width, saturates, start = form["width"], form.get("saturates", False), form.get("start")
    a_type, b_type = form.get("a_type", "s8"), form.get("b_type", "s8")
    source, shape = wgmma_source(
        f"{a_type}.{b_type}",
        width,
        form.get("swizzle", 64),
        form.get("a_registers", False),
        trans_a=False,
        trans_b=False,
        saturates=saturates,
        start=start,
    )
    cpu.load(source)
    depth = shape.N
    random = np.random.default_rng(width)
    limits = {"s8": (-128, 128), "u8": (0, 256)}
    A = random.integers(*limits[a_type], (64, depth))
    B = random.integers(*limits[b_type], (depth, width))
    A[:2], B[:, :2] = limits[a_type][0], limits[b_type][0]  # the largest sums there are
    A[2:4], B[:, 2:4] = limits[a_type][1] - 1, limits[b_type][1] - 1
    expected = np.full((64, width), start or 0)
    for k in range(0, depth, 32):
        expected += A[:, k : k + 32] @ B[k : k + 32]
        if saturates:
            expected = expected.clip(-(2**31), 2**31 - 1)
    result = cpu.multiply(shape, A.astype(np.float32), B.astype(np.float32))
    assert np.array_equal(result.view(np.int32), expected.astype(np.int32))
