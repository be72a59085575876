"""Matrix instructions: ldmatrix, mma.sync, wmma, wgmma. The runtime (tensor.cu) computes them."""

import re

from harness.ptxcpu.codegen.instructions.memory import space
from harness.ptxcpu.codegen.llvm_ir import IrValue
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.operands import MatrixProduct
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Integer, Operand, Vector, elements
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime.layout import Collective

TABLE = InstructionTable()

B32, B64 = TYPES["b32"], TYPES["b64"]
KINDS = ("tf32", "f16", "bf16")
BYTES = ("s8", "u8")
SHARED = ("shared", "shared::cta")


def _words(t: Translator, operand: Operand) -> list[IrValue]:
    return [t.read(x, B32) for x in elements(operand)]


def _need(operand: Operand, count: int) -> None:
    if not isinstance(operand, Vector) or len(operand.items) != count:
        if count == 1 and not isinstance(operand, Vector):
            return
        raise CannotTranslate(f"a vector of {count} registers is needed")


# ---- 8x8 matrices between shared memory and registers

_MATRICES = {"x1": 1, "x2": 2, "x4": 4}


@TABLE.instruction(
    "ldmatrix.sync.aligned.m8n8.number{.trans}{.space}.b16 d, a",
    number=tuple(_MATRICES),
    space=SHARED,
)
def ldmatrix(t: Translator, m: MatchedInstruction) -> None:
    variant, where = _matrices(t, m, "d")
    t.load_matrices(m.index, variant, elements(m.operands["d"]), where)


@TABLE.instruction(
    "stmatrix.sync.aligned.m8n8.number{.trans}{.space}.b16 a, b",
    number=tuple(_MATRICES),
    space=SHARED,
)
def stmatrix(t: Translator, m: MatchedInstruction) -> None:
    variant, where = _matrices(t, m, "b")
    words = t.halves(where) + _words(t, m.operands["b"])
    t.collective(m.index, Collective.STORE_MATRIX, words, argument=variant)


def _matrices(t: Translator, m: MatchedInstruction, data: str) -> tuple[int, IrValue]:
    """Count a move of matrices. Return its variant, and the address of a row."""
    matrices = _MATRICES[m["number"]]
    _need(m.operands[data], matrices)
    where = t.generic(m.operands["a"], space(m))
    t.count_matrices(m.index, where, matrices)
    return matrices << 1 | int(bool(m["trans"])), where


# ---- mma.sync: D = A·B + C, the fragments spread over the lanes as the PTX manual shows

_MMA = {  # (shape, kind): registers of A
    ("m16n8k4", "tf32"): 2,
    ("m16n8k8", "tf32"): 4,
    ("m16n8k8", "f16"): 2,
    ("m16n8k16", "f16"): 4,
    ("m16n8k8", "bf16"): 2,
    ("m16n8k16", "bf16"): 4,
    ("m16n8k16", "s8"): 2,
    ("m16n8k32", "s8"): 4,
    ("m16n8k16", "u8"): 2,
    ("m16n8k32", "u8"): 4,
}


@TABLE.instruction(
    "mma.sync.aligned.shape.row.col.f32.atype.btype.f32 d, a, b, c",
    shape=("m16n8k4", "m16n8k8", "m16n8k16"),
    atype=KINDS,
    btype=KINDS,
)
@TABLE.instruction(
    "mma.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32 d, a, b, c",
    shape=("m16n8k16", "m16n8k32"),
    atype=BYTES,
    btype=BYTES,
)
def mma(t: Translator, m: MatchedInstruction) -> None:
    a_words = _MMA.get((m["shape"], m["atype"]))
    if a_words is None or (m["atype"] != m["btype"] and m["atype"] in KINDS):
        raise CannotTranslate("a combination of shape and types that no GPU has")
    for name, count in (("a", a_words), ("b", a_words // 2), ("c", 4), ("d", 4)):
        _need(m.operands[name], count)
    d, c, a, b = (elements(m.operands[name]) for name in "dcab")
    kinds = (*KINDS, *BYTES)
    variant = kinds.index(m["atype"]) | kinds.index(m["btype"]) << 3
    variant |= int(bool(m["satfinite"])) << 6 | a_words << 7
    t.multiply(m.index, MatrixProduct(variant, d, c, a, b))


_DOUBLE_SHAPES = ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")


@TABLE.instruction(
    "mma.sync.aligned.shape.row.col{.rn}.f64.f64.f64.f64 d, a, b, c", shape=_DOUBLE_SHAPES
)
def mma_double(t: Translator, m: MatchedInstruction) -> None:
    rows, _, k = _sizes(m["shape"])
    counts = {"a": rows * k // 32, "b": k // 4, "c": rows // 4, "d": rows // 4}
    for name, count in counts.items():
        _need(m.operands[name], count)
    given = [item for name in "abc" for item in elements(m.operands[name])]
    words = [half for item in given for half in t.halves(t.read(item, B64))]
    results = t.collective(
        m.index, Collective.MMA_DOUBLE, words, 2 * counts["d"], argument=k // 4 << 2 | rows // 8
    )
    for i, item in enumerate(elements(m.operands["d"])):
        low, high = (t.resize(half, "i64") for half in results[2 * i : 2 * i + 2])
        t.write(item, t.op("or", low, t.op("shl", high, 32)))


# ---- wmma: whole matrices of a warp; only the device knows which lane holds what

_SHAPES = ("m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8")
_LAYOUT = ("row", "col")
_SPACES = ("global", *SHARED)


def _sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = (int(x) for x in re.findall(r"\d+", shape))
    return m, n, k


def _kind_fits(shape: str, kind: str) -> None:
    if (shape == "m16n16k8") != (kind == "tf32"):
        raise CannotTranslate("a combination of shape and types that no GPU has")


def _used_words(m: MatchedInstruction, which: str, kind: str) -> int:
    """Return the 32-bit registers of a fragment that are used; `.f16` fragments have more."""
    rows, columns, k = _sizes(m["shape"])
    elements = {"a": rows * k, "b": k * columns}.get(which, rows * columns) // 32
    return elements // 2 if kind in ("f16", "bf16") else elements


@TABLE.instruction(
    "wmma.load.which.sync.aligned.layout.shape{.space}.kind d, a, stride?",
    which=("a", "b"),
    layout=_LAYOUT,
    shape=_SHAPES,
    space=_SPACES,
    kind=KINDS,
)
@TABLE.instruction(
    "wmma.load.which.sync.aligned.layout.shape{.space}.kind d, a, stride?",
    which=("c",),
    layout=_LAYOUT,
    shape=_SHAPES,
    space=_SPACES,
    kind=("f32",),
)
def wmma_load(t: Translator, m: MatchedInstruction) -> None:
    used = _used_words(m, m["which"], m["kind"])
    items = elements(m.operands["d"])
    if m["kind"] != "f32":
        _kind_fits(m["shape"], m["kind"])
    if len(items) < used:
        raise CannotTranslate(f"a fragment of {len(items)} registers")
    words = [*t.halves(t.generic(m.operands["a"], space(m))), _stride(t, m, m["which"])]
    variant = _variant(m, m["which"], m["kind"])
    results = t.collective(m.index, Collective.WMMA_LOAD, words, used, argument=variant)
    for i, item in enumerate(items):
        t.write(item, results[i % used])


@TABLE.instruction(
    "wmma.store.d.sync.aligned.layout.shape{.space}.f32 a, b, stride?",
    layout=_LAYOUT,
    shape=_SHAPES,
    space=_SPACES,
)
def wmma_store(t: Translator, m: MatchedInstruction) -> None:
    _need(m.operands["b"], _used_words(m, "c", "f32"))
    words = [
        *t.halves(t.generic(m.operands["a"], space(m))),
        _stride(t, m, "c"),
        *_words(t, m.operands["b"]),
    ]
    t.collective(m.index, Collective.WMMA_STORE, words, argument=_variant(m, "c", "f32"))


def _stride(t: Translator, m: MatchedInstruction, which: str) -> IrValue:
    """Return the elements between two rows (or columns); by default they are contiguous."""
    height, width, k = _sizes(m["shape"])
    rows, columns = {"a": (height, k), "b": (k, width)}.get(which, (height, width))
    side_by_side = Integer(columns if m["layout"] == "row" else rows)
    return t.read(m.operands.get("stride", side_by_side), B32)


def _variant(m: MatchedInstruction, which: str, kind: str) -> int:
    return (
        _SHAPES.index(m["shape"])
        | "abc".index(which) << 2
        | int(m["layout"] == "col") << 4
        | int(kind in ("f16", "bf16")) << 5
    )


@TABLE.instruction(
    "wmma.mma.sync.aligned.alayout.blayout.shape.f32.f32 d, a, b, c",
    alayout=_LAYOUT,
    blayout=_LAYOUT,
    shape=_SHAPES,
)
@TABLE.instruction(
    "wmma.mma.sync.aligned.alayout.blayout.shape.f32.atype.btype.f32 d, a, b, c",
    alayout=_LAYOUT,
    blayout=_LAYOUT,
    shape=_SHAPES,
    atype=("tf32", "bf16"),
    btype=("tf32", "bf16"),
)
def wmma(t: Translator, m: MatchedInstruction) -> None:
    kind = m["atype"] or "f16"
    _kind_fits(m["shape"], kind)
    if m["atype"] != m["btype"]:
        raise CannotTranslate("a combination of types that no GPU has")
    used = {which: _used_words(m, which, kind) for which in "ab"}
    used["c"] = _used_words(m, "c", "f32")
    _need(m.operands["c"], used["c"])
    _need(m.operands["d"], used["c"])
    words = []
    for which, count in used.items():
        fragment = _words(t, m.operands[which])
        if len(fragment) < count:
            raise CannotTranslate(f"a fragment of {len(fragment)} registers")
        words += fragment[:count]
    variant = _SHAPES.index(m["shape"]) | KINDS.index(kind) << 2
    results = t.collective(m.index, Collective.WMMA, words, used["c"], argument=variant)
    for item, x in zip(elements(m.operands["d"]), results, strict=True):
        t.write(item, x)


# ---- wgmma: four warps, B (and perhaps A) in shared memory. Computed where it is issued; racecheck
# knows that it may read until its group was waited for.

_WGMMA_SHAPES = tuple(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16))


@TABLE.instruction("wgmma.what.sync.aligned", what=("fence", "commit_group"))
def wgmma_order(t: Translator, m: MatchedInstruction) -> None:
    is_fence = m["what"] == "fence"
    which = Collective.WGMMA_FENCE if is_fence else Collective.WGMMA_COMMIT
    t.collective(m.index, which, [])


@TABLE.instruction("wgmma.wait_group.sync.aligned n")
def wgmma_wait(t: Translator, m: MatchedInstruction) -> None:
    """Wait for products. Their reads are complete for every lane, whichever lane waits."""
    groups = t.resize(t.read(m.operands["n"], B32), "i64")
    t.collective(m.index, Collective.WGMMA_WAIT, [], argument=groups)


@TABLE.instruction(
    "wgmma.mma_async.sync.aligned.shape.f32.atype.btype d, a, b, scale, a_sign, b_sign",
    shape=_WGMMA_SHAPES,
    atype=("tf32",),
    btype=("tf32",),
)
@TABLE.instruction(
    "wgmma.mma_async.sync.aligned.shape.f32.atype.btype "
    "d, a, b, scale, a_sign, b_sign, transpose, b_transpose?",
    shape=_WGMMA_SHAPES,
    atype=("f16", "bf16"),
    btype=("f16", "bf16"),
)
def wgmma(t: Translator, m: MatchedInstruction) -> None:
    """D = A·B + D, or A·B where `scale` is false."""
    _, n, k = _sizes(m["shape"])
    if m["atype"] != m["btype"] or k != (8 if m["atype"] == "tf32" else 16):
        raise CannotTranslate("a combination of shape and types that no GPU has")
    registers = isinstance(m.operands["a"], Vector)
    # A from registers cannot be transposed: then the only flag is B's.
    flags = [_flag(m, name, (0, 1)) for name in ("transpose", "b_transpose")]
    a_transposed, b_transposed = (0, flags[0]) if registers else (flags[0], flags[1])
    signs = [_flag(m, name, (1, -1)) for name in ("a_sign", "b_sign")]
    variant = a_transposed << 7 | b_transposed << 8 | int(signs[0] != signs[1]) << 9
    _wgmma(t, m, n, variant)


_WGMMA_INTEGER_SHAPES = tuple(f"m64n{n}k32" for n in (8, 24, *range(16, 257, 16)))


@TABLE.instruction(
    "wgmma.mma_async.sync.aligned.shape{.satfinite}.s32.atype.btype d, a, b, scale",
    shape=_WGMMA_INTEGER_SHAPES,
    atype=BYTES,
    btype=BYTES,
)
def wgmma_integer(t: Translator, m: MatchedInstruction) -> None:
    """The same for 8-bit integers with 32-bit sums, which wrap or saturate."""
    _, n, _ = _sizes(m["shape"])
    _wgmma(t, m, n, variant=int(bool(m["satfinite"])) << 10)


def _wgmma(t: Translator, m: MatchedInstruction, n: int, variant: int) -> None:
    """Multiply accumulators, A (or its descriptor) and the descriptor of B as lanes bring them."""
    d, a, b = (m.operands[name] for name in "dab")
    registers = isinstance(a, Vector)
    _need(d, n // 2)
    if registers:
        _need(a, 4)
    kinds = (*KINDS, *BYTES)
    variant |= kinds.index(m["atype"]) | kinds.index(m["btype"]) << 3
    variant |= int(registers) << 6 | n << 11
    sums, scale = elements(d), m.operands["scale"]
    t.multiply(m.index, MatrixProduct(variant, sums, sums, elements(a), elements(b), scale))


def _flag(m: MatchedInstruction, name: str, allowed: tuple[int, int]) -> int:
    operand = m.operands.get(name, Integer(allowed[0]))
    if not isinstance(operand, Integer) or operand.value not in allowed:
        raise CannotTranslate(f"a constant {allowed[0]} or {allowed[1]} is needed")
    return operand.value
