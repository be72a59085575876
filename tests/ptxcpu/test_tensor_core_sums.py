"""Tensor cores add random operands as a model does, on the CPU device and with `-m gpu` on a GPU.

The model is that of Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores"
(2021). An H200 gave the same bits as the CPU device for all of these operands.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from harness.compiling.ptxas import assemble
from harness.ptxcpu.arguments import Buffer, ParameterKind
from tests.ptxcpu.programs import entry, kernel_of
from tests.ptxcpu.runner import KERNELS
from tests.sources import named_parts

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint32]

ROWS, COLUMNS, LANES = 16, 8, 32
FRACTION_BITS, LEAST_EXPONENT = 25, {"f16": -14, "bf16": -126, "tf32": -126}
FRACTION = {"f16": 10, "bf16": 7, "tf32": 10}


@dataclass(frozen=True)
class Form:
    """An instruction that multiplies 16 rows by 8 columns. depth: the product's inner dimension."""

    kind: str
    depth: int
    by_warpgroup: bool

    @property
    def each(self) -> int:
        """The number of elements in a word."""
        return 1 if self.kind == "tf32" else 2

    @property
    def words(self) -> int:
        """The number of words of A in a lane. B has half as many."""
        return self.depth // (2 * self.each)

    def __str__(self) -> str:
        return f"{'wgmma' if self.by_warpgroup else 'mma'} {self.kind} k{self.depth}"


FORMS = [
    *(Form("f16", depth, False) for depth in (8, 16)),
    *(Form("bf16", depth, False) for depth in (8, 16)),
    *(Form("tf32", depth, False) for depth in (4, 8)),
    *(Form(kind, 8 if kind == "tf32" else 16, True) for kind in ("f16", "bf16", "tf32")),
]

PARTS = named_parts(KERNELS / "tensor_core_sums.ptx.in")


def program(form: Form) -> str:
    """Return a kernel that multiplies a tile in each warp.

    `a`, `b` and `c` are laid out as [tile][word][lane]. A warpgroup has one tile of `b`.
    """

    def moves(how: str, registers: str, pointer: str, words: int) -> str:
        """Return instructions that move words. %r1 is the tile's number times 32 plus the lane."""
        lines = (
            f"shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31; mad.lo.u32 %r2, %r2, {words * 32}, %r3;"
        )
        lines += f"mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, {pointer}, %rd4;"
        for i in range(words):
            at, register = f"[%rd4+{128 * i}]", f"%{registers}{i}"
            operands = f"{register}, {at}" if how == "ld" else f"{at}, {register}"
            lines += f"{how}.global.{'f32' if registers == 'c' else 'u32'} {operands};"
        return lines

    def vector(registers: str, words: int) -> str:
        return "{" + ",".join(f"%{registers}{i}" for i in range(words)) + "}"

    loads = moves("ld", "a", "%rd1", form.words) + moves("ld", "c", "%rd3", 4)
    if not form.by_warpgroup:
        loads += moves("ld", "b", "%rd2", form.words // 2)
    fields = {
        "BODY": PARTS["wgmma" if form.by_warpgroup else "mma"],
        "LOADS": loads,
        "STORES": moves("st", "c", "%rd3", 4),
        "DEPTH": str(form.depth),
        "KIND": form.kind,
        "A,": vector("a", form.words) + ",",
        "B,": vector("b", form.words // 2) + ",",
        "FLAG": "" if form.kind == "tf32" else ", 0",
    }
    text = PARTS["the kernel"]
    for name, value in fields.items():
        text = text.replace(name, value)
    return entry("u64 a, u64 b, u64 c", text, ".shared .align 128 .b8 tile[256];")


def raw(form: Form, x: Floats) -> Words:
    """Return numbers that are exact in a type as [..., words]."""
    if form.kind == "f16":
        return x.astype(np.float16).view(np.uint32)
    bits = x.astype(np.float32).view(np.uint32)
    if form.kind == "tf32":
        return bits
    halves: Words = np.ascontiguousarray(bits >> 16).astype(np.uint16).view(np.uint32)
    return halves


def packed(form: Form, x: Floats) -> Words:
    """Return [tile][row or column][k] as [tile][word][lane].

    In all lanes together, a word has 8 rows and 16 bytes of depth.
    """
    words = raw(form, x)
    tiles, rows, count = words.shape
    parts = words.reshape(tiles, rows // 8, 8, count // 4, 4).transpose(0, 3, 1, 2, 4)
    return np.ascontiguousarray(parts.reshape(tiles, -1, LANES))


def spread(c: Floats) -> Words:
    """Return [tile][row][column] as [tile][word][lane]."""
    parts = c.astype(np.float32).reshape(-1, 2, 8, 4, 2).transpose(0, 1, 4, 2, 3)
    return np.ascontiguousarray(parts).reshape(-1, 4, LANES).view(np.uint32)


def gathered(words: Words) -> Floats:
    parts = words.view(np.float32).reshape(-1, 2, 2, 8, 4).transpose(0, 1, 3, 4, 2)
    return parts.reshape(-1, ROWS, COLUMNS).astype(np.float64)


Device = Callable[[Form, Floats, Floats, Floats], Floats]
"""A function that adds the products of tiles of A and B to tiles of C.

The four tiles of a warpgroup share the B of the first.
"""


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    def multiply(form: Form, a: Floats, b: Floats, c: Floats) -> Floats:
        tiles_of_block = 4 if form.by_warpgroup else 1
        grid, threads = (len(a) // tiles_of_block, 1, 1), LANES * tiles_of_block
        b_words = packed(form, b[::tiles_of_block])
        operands = packed(form, a), b_words, spread(c)
        if request.param == "cuda":
            return gathered(on_gpu(form, grid, threads, *operands))
        kinds = (ParameterKind.READ_ONLY, ParameterKind.READ_ONLY, ParameterKind.WRITABLE)
        kernel = kernel_of(program(form), kinds, threads)
        buffers = [Buffer(x, writable=i == 2) for i, x in enumerate(operands)]
        result = kernel.run(grid, buffers)
        assert result.fault is None, result.fault
        return gathered(operands[2])

    return multiply


def on_gpu(form: Form, grid: tuple[int, ...], threads: int, *operands: Words) -> Words:
    import cupy

    cubin, _, _ = assemble(program(form), "sm_90a", lambda: None)
    module = cupy.cuda.function.Module()
    module.load(cubin)
    arrays = [cupy.asarray(x) for x in operands]
    module.get_function("litmus")(grid, (threads, 1, 1), tuple(arrays))
    words: Words = cupy.asnumpy(arrays[2])
    return words


def model(form: Form, a: Floats, b: Floats, c: Floats) -> Floats:
    """Return n sums. a and b are [n][depth], and c is [n].

    All products of an instruction are added at once. Of each summand, as many bits below the
    largest exponent are kept; a product's exponent is the sum of its factors'.
    """
    products = a * b  # exact in 53 bits
    least = LEAST_EXPONENT[form.kind]
    summands = np.concatenate([products, c[:, None]], axis=1)
    exponents = np.concatenate(
        [_exponents(a, least) + _exponents(b, least), _exponents(c, -126)[:, None]], axis=1
    )
    unit = 2.0 ** (np.maximum(exponents.max(axis=1), -900) - FRACTION_BITS)
    exact = (np.trunc(summands / unit[:, None])).sum(axis=1)  # integers below 2^53
    digits = np.maximum(np.frexp(exact)[1] - 24, 0)
    cut: Floats = np.trunc(exact / 2.0**digits) * 2.0**digits * unit
    return cut


def _exponents(x: Floats, least: int) -> npt.NDArray[np.int64]:
    exponents = np.maximum(np.frexp(x)[1] - 1, least)
    return np.where(x == 0, -2000, exponents)


def random_numbers(form: Form, style: str, shape: tuple[int, ...], seed: int) -> Floats:
    random = np.random.default_rng(seed)
    scale = 2 ** FRACTION[form.kind]
    significands = random.integers(scale, 2 * scale, shape) / scale
    lowest, highest = {
        "far": (-14, 15) if form.kind == "f16" else (-62, 60),
        "near": (-1, 1),
        "wide": (-12, 12),
        "zeros": (-8, 8),
        "small": (-24, -10),
        "tiny accumulators": (-8, 8),
    }[style]
    x = significands * 2.0 ** random.integers(lowest, highest + 1, shape)
    x *= random.choice([-1.0, 1.0], shape)
    if style in ("zeros", "tiny accumulators"):
        x[random.random(shape) < 0.5] = 0
    if style == "small" and form.kind == "f16":
        x = x.astype(np.float16).astype(np.float64)  # some are subnormal
    return x


@pytest.mark.parametrize("style", ["near", "wide", "zeros", "small", "far", "tiny accumulators"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_random_sums_agree_with_the_model(device: Device, form: Form, style: str) -> None:
    tiles = 64
    a = random_numbers(form, style, (tiles, ROWS, form.depth), 1)
    b = random_numbers(form, style, (tiles, COLUMNS, form.depth), 2)
    b = np.repeat(b[::4], 4, axis=0) if form.by_warpgroup else b
    if style == "tiny accumulators":  # which products of zeros must leave as they are
        a[::2] = 0
    c = np.random.default_rng(3).uniform(-2, 2, (tiles, ROWS, COLUMNS)).astype(np.float32)
    c *= np.float32(2.0) ** np.random.default_rng(4).integers(-20, 4, c.shape)
    c *= np.float32(
        {"small": 2.0**-30, "far": 2.0**119, "tiny accumulators": 2.0**-100}.get(style, 1)
    )
    found = device(form, a, b, c.astype(np.float64)).reshape(-1)
    rows, columns = (x.reshape(-1) for x in np.meshgrid(range(ROWS), range(COLUMNS), indexing="ij"))
    flat_a, flat_b = (x.reshape(-1, form.depth) for x in (a[:, rows], b[:, columns]))
    expected = model(form, flat_a, flat_b, c.astype(np.float64).reshape(-1))
    assert np.array_equal(found, expected), f"{(found == expected).mean():.4f} agree"


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_infinities_and_nan_are_propagated(device: Device, form: Form) -> None:
    a, b = (np.ones((4, n, form.depth)) for n in (ROWS, COLUMNS))
    c = np.ones((4, ROWS, COLUMNS))
    a[0, 1, 0], a[0, 2, :2], a[0, 3, 1] = np.inf, (np.inf, -np.inf), np.nan
    c[1, 4, 5] = -np.inf
    found = device(form, a, b, c)
    assert (found[0, 1] == np.inf).all() and np.isnan(found[0, 2:4]).all()
    assert found[1, 4, 5] == -np.inf
    found[0, 1:4] = found[1, 4, 5] = form.depth + 1
    assert (found == form.depth + 1).all()
