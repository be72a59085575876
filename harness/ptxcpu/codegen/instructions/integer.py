"""Integer arithmetic."""

import functools
from collections.abc import Callable, Iterator, Sequence

from harness.ptxcpu.codegen.llvm_ir import FALSE, IrValue, constant, llvm_type
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.ptx.types import TYPES, Type

TABLE = InstructionTable()

WORDS = ("s32", "u32", "s64", "u64")
INTEGERS = ("s16", "u16", *WORDS)


TABLE.operation("mul.lo.type d, a, b", "mul", type=INTEGERS)
for _name in ("add", "sub"):
    TABLE.operation(f"{_name}.type d, a, b", _name, type=INTEGERS)
    TABLE.intrinsic(f"{_name}.sat.type d, a, b", f"s{_name}.sat", type=("s32",))


# ---- products


def _wide_product(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    double = f"i{2 * m.type.bits}"
    return t.op("mul", *(t.resize(x, double, m.type.is_signed) for x in (a, b)))


@TABLE.value("mul.hi.type d, a, b", type=INTEGERS)
def mul_hi(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    return t.resize(t.op("lshr", _wide_product(t, m, a, b), m.type.bits), llvm_type(m.type))


TABLE.value("mul.wide.type d, a, b", type=("s16", "u16", "s32", "u32"))(_wide_product)


@TABLE.value("mad.half.type d, a, b, c", half=("lo", "hi"), type=INTEGERS)
def mad(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    product = mul_hi(t, m, a, b) if m["half"] == "hi" else t.op("mul", a, b)
    return t.op("add", product, c)


@TABLE.instruction("mad.wide.type d, a, b, c", type=("s16", "u16", "s32", "u32"))
def mad_wide(t: Translator, m: MatchedInstruction) -> None:
    product = _wide_product(t, m, *(t.read(m.operands[x], m.type) for x in ("a", "b")))
    c = t.read(m.operands["c"], TYPES[f"{m.type.name[0]}{2 * m.type.bits}"])
    t.write(m.operands["d"], t.op("add", product, c))


# ---- sums of several words; the carry is a register of its own


@TABLE.instruction("add.cc.type d, a, b", type=(*WORDS, "b32", "b64"))
@TABLE.instruction("addc{.cc}.type d, a, b", type=WORDS)
@TABLE.instruction("sub.cc.type d, a, b", type=WORDS)
@TABLE.instruction("subc{.cc}.type d, a, b", type=WORDS)
@TABLE.instruction("mad.half.cc.type d, a, b, c", half=("lo", "hi"), type=WORDS)
@TABLE.instruction("madc.half{.cc}.type d, a, b, c", half=("lo", "hi"), type=WORDS)
def with_carry(t: Translator, m: MatchedInstruction) -> None:
    """a ± b, or the product of a and b + c, as one word of a longer number."""
    root, *modifiers = m.instruction.opcode.split(".")
    name = "sub" if root.startswith("sub") else "add"
    wide = f"i{m.type.bits + 1}"
    a, b = (t.read(m.operands[x], m.type) for x in ("a", "b"))
    if m["half"]:
        product = mul_hi(t, m, a, b) if m["half"] == "hi" else t.op("mul", a, b)
        a, b = product, t.read(m.operands["c"], m.type)
    total = t.op(name, t.resize(a, wide), t.resize(b, wide))
    if root.endswith("c"):
        total = t.op(name, total, t.resize(t.carry(), wide))
    if "cc" in modifiers:
        t.set_carry(t.resize(t.op("lshr", total, m.type.bits), "i1"))
    t.write(m.operands["d"], t.resize(total, llvm_type(m.type)))


# ---- products of parts


def _24_bits(t: Translator, m: MatchedInstruction, x: IrValue) -> IrValue:
    return t.op("ashr" if m.type.is_signed else "lshr", t.op("shl", x, 8), 8)


@TABLE.value("mul24.half.type d, a, b", half=("lo", "hi"), type=("s32", "u32"))
def mul24(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    product = _wide_product(t, m, _24_bits(t, m, a), _24_bits(t, m, b))
    return t.resize(t.op("lshr", product, 16 if m["half"] == "hi" else 0), "i32")


@TABLE.value("mad24.half.type d, a, b, c", half=("lo", "hi"), type=("s32", "u32"))
def mad24(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    return t.op("add", mul24(t, m, a, b), c)


@TABLE.instruction("dp4a.type.btype d, a, b, c", type=("s32", "u32"), btype=("s32", "u32"))
def dp4a(t: Translator, m: MatchedInstruction) -> None:
    """c + the dot product of four bytes."""
    total = t.read(m.operands["c"], m.type)
    b_type = TYPES[m["btype"]]
    a, b = t.read(m.operands["a"], m.type), t.read(m.operands["b"], b_type)
    for i in range(4):
        x, y = (t.resize(t.op("lshr", v, 8 * i), "i8") for v in (a, b))
        x, y = t.resize(x, "i32", m.type.is_signed), t.resize(y, "i32", b_type.is_signed)
        total = t.op("add", total, t.op("mul", x, y))
    t.write(m.operands["d"], total)


@TABLE.value(
    "dp2a.half.type.btype d, a:b32, b:b32, c:b32",
    half=("lo", "hi"), type=("s32", "u32"), btype=("s32", "u32"),
)  # fmt: skip
def dp2a(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    """c + the dot product of two 16-bit integers with two bytes of the lower or upper half of b."""
    first = 2 if m["half"] == "hi" else 0
    x, y = _lanes(t, m.type, a, 16), _lanes(t, TYPES[m["btype"]], b, 8)[first : first + 2]
    return functools.reduce(lambda total, each: t.op("add", total, t.op("mul", *each)),
                            zip(x, y, strict=True), c)  # fmt: skip


# ---- division: PTX leaves x/0 open but never traps; here it gives all ones, as NVIDIA GPUs do


def _quotient(
    t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, name: str
) -> tuple[IrValue, IrValue, IrValue]:
    """The quotient or remainder, whether b is 0 and whether it is -1 (where x86 may trap)."""
    zero = t.compare("eq", b, 0)
    minus_one = t.compare("eq", b, -1) if m.type.is_signed else constant("i1", 0)
    safe = t.select(t.op("or", zero, minus_one), constant(b.type, 1), b)
    return t.op(("s" if m.type.is_signed else "u") + name, a, safe), zero, minus_one


@TABLE.value("div.type d, a, b", type=INTEGERS)
def div(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    quotient, zero, minus_one = _quotient(t, m, a, b, "div")
    return t.select(zero, constant(a.type, -1), t.select(minus_one, t.negate(a), quotient))


@TABLE.value("rem.type d, a, b", type=INTEGERS)
def rem(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    remainder, zero, minus_one = _quotient(t, m, a, b, "rem")
    return t.select(zero, a, t.select(minus_one, constant(a.type, 0), remainder))


# ---- the rest


SIGNED, BITS = ("s16", "s32", "s64"), ("b32", "b64")
_Unary = Callable[[Translator, MatchedInstruction, IrValue], IrValue]
_UNARY: tuple[tuple[str, tuple[str, ...], _Unary], ...] = (
    ("abs.type d, a", SIGNED, lambda t, m, a: t.intrinsic("abs", a, FALSE)),
    ("neg.type d, a", SIGNED, lambda t, m, a: t.negate(a)),
    ("popc.type d, a", BITS, lambda t, m, a: t.resize(t.intrinsic("ctpop", a), "i32")),
    ("clz.type d, a", BITS, lambda t, m, a: t.resize(t.intrinsic("ctlz", a, FALSE), "i32")),
    ("brev.type d, a", BITS, lambda t, m, a: t.intrinsic("bitreverse", a)),
)
for _form, _types, _computation in _UNARY:
    TABLE.value(_form, type=_types)(_computation)


def _sign(m: MatchedInstruction) -> str:
    return "s" if m.type.is_signed else "u"


def _extreme(name: str, t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    return t.intrinsic(_sign(m) + name, a, b)


@TABLE.value("sad.type d, a, b, c", type=INTEGERS)
def sad(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    """c + |a - b|"""
    less = t.compare(_sign(m) + "lt", a, b)
    distance = t.select(less, t.op("sub", b, a), t.op("sub", a, b))
    return t.op("add", c, distance)


# ---- two 16-bit integers in one register


def _in_pairs(name: str, t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    result = constant("i32", 0)
    for shift in (0, 16):
        x, y = (t.resize(t.op("lshr", v, shift), "i16") for v in (a, b))
        part = t.op(name, x, y) if name == "add" else t.intrinsic(m["kind"][0] + name, x, y)
        result = t.op("or", result, t.op("shl", t.resize(part, "i32"), shift))
    return result


for _name in ("add", "min", "max"):
    _pairs = functools.partial(_in_pairs, _name)
    TABLE.value(f"{_name}.kind d, a:b32, b:b32", kind=("u16x2", "s16x2"))(_pairs)
    if _name != "add":
        TABLE.value(f"{_name}.type d, a, b", type=INTEGERS)(functools.partial(_extreme, _name))


# ---- two or four integers in one register, with a result of 32 bits for each


def _lanes(t: Translator, kind: Type, value: IrValue, bits: int) -> list[IrValue]:
    """Return the integers of so many bits in a register, extended to 32 bits."""
    parts = (t.resize(t.op("lshr", value, at), f"i{bits}") for at in range(0, 32, bits))
    return [t.resize(part, "i32", kind.is_signed) for part in parts]


def _together(
    t: Translator, m: MatchedInstruction, lanes: Sequence[IrValue], c: IrValue
) -> IrValue:
    """Return the sum of the results and c, or the results in one register."""
    if m["add"]:
        return functools.reduce(lambda total, lane: t.op("add", total, lane), lanes, c)
    bits, result = 32 // len(lanes), constant("i32", 0)
    for i, lane in enumerate(lanes):
        part = t.op("and", lane, (1 << bits) - 1)
        result = t.op("or", result, t.op("shl", part, i * bits))
    return result


def _pairs_of_lanes(
    t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue
) -> Iterator[tuple[IrValue, IrValue]]:
    bits = 32 // int(m.instruction.opcode.partition(".")[0][-1])
    types = TYPES[m["atype"]], TYPES[m["btype"]]
    x, y = (_lanes(t, *each, bits) for each in zip(types, (a, b), strict=True))
    return zip(x, y, strict=True)


def _video(
    name: str, t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue
) -> IrValue:
    results = []
    for x, y in _pairs_of_lanes(t, m, a, b):
        if name == "absdiff":
            lane = t.intrinsic("abs", t.op("sub", x, y), constant("i1", 0))
        else:
            lane = t.op(name, x, y) if name in ("add", "sub") else t.intrinsic("s" + name, x, y)
        results.append(lane)
    if m["sat"]:
        bits = 32 // len(results)
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if m.type.is_signed else (0, (1 << bits) - 1)
        )
        bounded = (t.intrinsic("smax", lane, constant("i32", low)) for lane in results)
        results = [t.intrinsic("smin", lane, constant("i32", high)) for lane in bounded]
    return _together(t, m, results, c)


def _video_set(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    sign = "" if m["cmp"] in ("eq", "ne") else "s"
    pairs = _pairs_of_lanes(t, m, a, b)
    return _together(t, m, [t.resize(t.compare(sign + m["cmp"], x, y), "i32") for x, y in pairs], c)


_KINDS = {"atype": ("s32", "u32"), "btype": ("s32", "u32")}
for _count in (2, 4):
    for _name in ("add", "sub", "absdiff", "min", "max"):
        _each = functools.partial(_video, _name)
        _form = f"v{_name}{_count}.type.atype.btype"
        TABLE.value(f"{_form}{{.sat}} d, a:b32, b:b32, c:b32", type=("s32", "u32"), **_KINDS)(_each)
        if _name in ("absdiff", "min", "max"):
            TABLE.value(f"{_form}{{.add}} d, a:b32, b:b32, c:b32", type=("s32", "u32"), **_KINDS)(
                _each
            )
    TABLE.value(
        f"vset{_count}.atype.btype.cmp{{.add}} d, a:b32, b:b32, c:b32",
        cmp=("eq", "ne", "lt", "le", "gt", "ge"), **_KINDS,
    )(_video_set)  # fmt: skip


# ---- counting and moving bits


@TABLE.value("bfind{.shiftamt}.type d, a", type=WORDS)
def bfind(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    """Return the position of the highest bit unlike the sign; all ones if there is no such bit."""
    if m.type.is_signed:
        a = t.op("xor", a, t.op("ashr", a, m.type.bits - 1))
    zeros = t.resize(t.intrinsic("ctlz", a, constant("i1", 0)), "i32")
    found = zeros if m["shiftamt"] else t.op("sub", constant("i32", m.type.bits - 1), zeros)
    return t.select(t.compare("eq", a, 0), constant("i32", -1), found)


def _field(
    t: Translator, position: IrValue, length: IrValue, width: int
) -> tuple[IrValue, IrValue, IrValue]:
    """Position, length and a mask of that many ones, in an integer twice as wide."""
    double = f"i{2 * width}"

    def clamped(x: IrValue) -> IrValue:
        low = t.op("and", x, 255)
        return t.resize(t.intrinsic("umin", low, constant("i32", width)), double)

    start, count = clamped(position), clamped(length)
    mask = t.op("sub", t.op("shl", constant(double, 1), count), 1)
    return start, count, mask


@TABLE.value("bfe.type d, a, b:u32, c:u32", type=WORDS)
def bfe(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    """c bits of a from bit b on, extended by the sign of a's type."""
    width = m.type.bits
    start, count, mask = _field(t, b, c, width)
    wide = t.resize(a, start.type, m.type.is_signed)
    found = t.op("and", t.op("ashr" if m.type.is_signed else "lshr", wide, start), mask)
    if m.type.is_signed:
        room = t.op("sub", constant(wide.type, 2 * width), count)
        room = t.select(t.compare("eq", count, 0), constant(wide.type, 0), room)
        found = t.op("ashr", t.op("shl", found, room), room)
    return t.resize(found, llvm_type(m.type))


@TABLE.value("bfi.type d, a, b, c:u32, e:u32", type=("b32", "b64"))
def bfi(
    t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue, e: IrValue
) -> IrValue:
    """b with e bits from bit c on replaced by the low bits of a."""
    start, _, mask = _field(t, c, e, m.type.bits)
    inserted = t.op("shl", t.op("and", t.resize(a, mask.type), mask), start)
    hole = t.invert(t.op("shl", mask, start))
    merged = t.op("or", t.op("and", t.resize(b, mask.type), hole), inserted)
    return t.resize(merged, llvm_type(m.type))
