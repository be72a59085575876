"""Integer arithmetic."""

from __future__ import annotations

from harness.devices.cpu.forms import Form, instruction, value
from harness.devices.cpu.ir import Value, constant
from harness.devices.cpu.translate import Translator
from harness.devices.cpu.types import TYPES

WORDS = ("s32", "u32", "s64", "u64")
INTEGERS = ("s16", "u16", *WORDS)


@value("add.type d, a, b", type=INTEGERS)
def add(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.op("add", a, b)


@value("sub.type d, a, b", type=INTEGERS)
def sub(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.op("sub", a, b)


@value("add.sat.type d, a, b", type=("s32",))
def add_saturated(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.intrinsic("sadd.sat", a, b)


@value("sub.sat.type d, a, b", type=("s32",))
def sub_saturated(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.intrinsic("ssub.sat", a, b)


# ---- products


def _wide_product(t: Translator, f: Form, a: Value, b: Value) -> Value:
    double = f"i{2 * f.type.bits}"
    return t.op("mul", *(t.resize(x, double, f.type.is_signed) for x in (a, b)))


@value("mul.lo.type d, a, b", type=INTEGERS)
def mul_lo(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.op("mul", a, b)


@value("mul.hi.type d, a, b", type=INTEGERS)
def mul_hi(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.resize(t.op("lshr", _wide_product(t, f, a, b), f.type.bits), f.type.llvm)


@value("mul.wide.type d, a, b", type=("s16", "u16", "s32", "u32"))
def mul_wide(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return _wide_product(t, f, a, b)


@value("mad.lo.type d, a, b, c", type=INTEGERS)
def mad_lo(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    return t.op("add", t.op("mul", a, b), c)


@value("mad.hi.type d, a, b, c", type=INTEGERS)
def mad_hi(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    return t.op("add", mul_hi(t, f, a, b), c)


@instruction("mad.wide.type d, a, b, c", type=("s16", "u16", "s32", "u32"))
def mad_wide(t: Translator, f: Form) -> None:
    product = _wide_product(t, f, *(t.read(f.operands[x], f.type) for x in ("a", "b")))
    c = t.read(f.operands["c"], TYPES[f"{f.type.name[0]}{2 * f.type.bits}"])
    t.write(f.operands["d"], t.op("add", product, c))


# ---- sums of several words; the carry is a register of its own


def _with_carry(t: Translator, f: Form, name: str, carry_in: bool, carry_out: bool) -> None:
    """a ± b, or the product of a and b + c, as one word of a longer number."""
    wide = f"i{f.type.bits + 1}"
    a, b = (t.read(f.operands[x], f.type) for x in ("a", "b"))
    if f["half"]:
        product = mul_hi(t, f, a, b) if f["half"] == "hi" else t.op("mul", a, b)
        a, b = product, t.read(f.operands["c"], f.type)
    total = t.op(name, t.resize(a, wide), t.resize(b, wide))
    if carry_in:
        total = t.op(name, total, t.resize(t.carry(), wide))
    if carry_out:
        t.set_carry(t.resize(t.op("lshr", total, f.type.bits), "i1"))
    t.write(f.operands["d"], t.resize(total, f.type.llvm))


@instruction("add.cc.type d, a, b", type=(*WORDS, "b32", "b64"))
def add_carry_out(t: Translator, f: Form) -> None:
    _with_carry(t, f, "add", carry_in=False, carry_out=True)


@instruction("addc{.cc}.type d, a, b", type=WORDS)
def add_carry_in(t: Translator, f: Form) -> None:
    _with_carry(t, f, "add", carry_in=True, carry_out=bool(f["cc"]))


@instruction("sub.cc.type d, a, b", type=WORDS)
def sub_borrow_out(t: Translator, f: Form) -> None:
    _with_carry(t, f, "sub", carry_in=False, carry_out=True)


@instruction("subc{.cc}.type d, a, b", type=WORDS)
def sub_borrow_in(t: Translator, f: Form) -> None:
    _with_carry(t, f, "sub", carry_in=True, carry_out=bool(f["cc"]))


@instruction("mad.half.cc.type d, a, b, c", half=("lo", "hi"), type=WORDS)
def mad_carry_out(t: Translator, f: Form) -> None:
    _with_carry(t, f, "add", carry_in=False, carry_out=True)


@instruction("madc.half{.cc}.type d, a, b, c", half=("lo", "hi"), type=WORDS)
def mad_carry_in(t: Translator, f: Form) -> None:
    _with_carry(t, f, "add", carry_in=True, carry_out=bool(f["cc"]))


# ---- products of parts


def _24_bits(t: Translator, f: Form, x: Value) -> Value:
    return t.op("ashr" if f.type.is_signed else "lshr", t.op("shl", x, 8), 8)


@value("mul24.half.type d, a, b", half=("lo", "hi"), type=("s32", "u32"))
def mul24(t: Translator, f: Form, a: Value, b: Value) -> Value:
    product = _wide_product(t, f, _24_bits(t, f, a), _24_bits(t, f, b))
    return t.resize(t.op("lshr", product, 16 if f["half"] == "hi" else 0), "i32")


@value("mad24.half.type d, a, b, c", half=("lo", "hi"), type=("s32", "u32"))
def mad24(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    return t.op("add", mul24(t, f, a, b), c)


@instruction("dp4a.type.btype d, a, b, c", type=("s32", "u32"), btype=("s32", "u32"))
def dp4a(t: Translator, f: Form) -> None:
    """c + the dot product of four bytes."""
    total = t.read(f.operands["c"], f.type)
    b_type = TYPES[f["btype"]]
    a, b = t.read(f.operands["a"], f.type), t.read(f.operands["b"], b_type)
    for i in range(4):
        x, y = (t.resize(t.op("lshr", v, 8 * i), "i8") for v in (a, b))
        x, y = t.resize(x, "i32", f.type.is_signed), t.resize(y, "i32", b_type.is_signed)
        total = t.op("add", total, t.op("mul", x, y))
    t.write(f.operands["d"], total)


# ---- division: PTX leaves x/0 open but never traps; here it gives all ones, as NVIDIA GPUs do


def _quotient(t: Translator, f: Form, a: Value, b: Value, name: str) -> tuple[Value, Value, Value]:
    """The quotient or remainder, whether b is 0 and whether it is -1 (where x86 may trap)."""
    zero = t.compare("eq", b, 0)
    minus_one = t.compare("eq", b, -1) if f.type.is_signed else constant("i1", 0)
    safe = t.select(t.op("or", zero, minus_one), constant(b.type, 1), b)
    return t.op(("s" if f.type.is_signed else "u") + name, a, safe), zero, minus_one


@value("div.type d, a, b", type=INTEGERS)
def div(t: Translator, f: Form, a: Value, b: Value) -> Value:
    quotient, zero, minus_one = _quotient(t, f, a, b, "div")
    return t.select(zero, constant(a.type, -1), t.select(minus_one, t.negate(a), quotient))


@value("rem.type d, a, b", type=INTEGERS)
def rem(t: Translator, f: Form, a: Value, b: Value) -> Value:
    remainder, zero, minus_one = _quotient(t, f, a, b, "rem")
    return t.select(zero, a, t.select(minus_one, constant(a.type, 0), remainder))


# ---- the rest


@value("abs.type d, a", type=("s16", "s32", "s64"))
def absolute(t: Translator, f: Form, a: Value) -> Value:
    return t.intrinsic("abs", a, constant("i1", 0))


@value("neg.type d, a", type=("s16", "s32", "s64"))
def neg(t: Translator, f: Form, a: Value) -> Value:
    return t.negate(a)


def _sign(f: Form) -> str:
    return "s" if f.type.is_signed else "u"


@value("min.type d, a, b", type=INTEGERS)
def minimum(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.intrinsic(_sign(f) + "min", a, b)


@value("max.type d, a, b", type=INTEGERS)
def maximum(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return t.intrinsic(_sign(f) + "max", a, b)


@value("sad.type d, a, b, c", type=INTEGERS)
def sad(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    """c + |a - b|"""
    less = t.compare(_sign(f) + "lt", a, b)
    distance = t.select(less, t.op("sub", b, a), t.op("sub", a, b))
    return t.op("add", c, distance)


# ---- two 16-bit integers in one register


def _in_pairs(t: Translator, name: str, a: Value, b: Value) -> Value:
    result = constant("i32", 0)
    for shift in (0, 16):
        x, y = (t.resize(t.op("lshr", v, shift), "i16") for v in (a, b))
        part = t.op(name, x, y) if name == "add" else t.intrinsic(name, x, y)
        result = t.op("or", result, t.op("shl", t.resize(part, "i32"), shift))
    return result


@value("add.kind d, a:b32, b:b32", kind=("u16x2", "s16x2"))
def add_pairs(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return _in_pairs(t, "add", a, b)


@value("min.kind d, a:b32, b:b32", kind=("u16x2", "s16x2"))
def min_pairs(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return _in_pairs(t, f["kind"][0] + "min", a, b)


@value("max.kind d, a:b32, b:b32", kind=("u16x2", "s16x2"))
def max_pairs(t: Translator, f: Form, a: Value, b: Value) -> Value:
    return _in_pairs(t, f["kind"][0] + "max", a, b)


# ---- counting and moving bits


@value("popc.type d, a", type=("b32", "b64"))
def popc(t: Translator, f: Form, a: Value) -> Value:
    return t.resize(t.intrinsic("ctpop", a), "i32")


@value("clz.type d, a", type=("b32", "b64"))
def clz(t: Translator, f: Form, a: Value) -> Value:
    return t.resize(t.intrinsic("ctlz", a, constant("i1", 0)), "i32")


@value("bfind{.shiftamt}.type d, a", type=WORDS)
def bfind(t: Translator, f: Form, a: Value) -> Value:
    """The position of the highest bit that is not a copy of the sign; all ones if there is none."""
    if f.type.is_signed:
        a = t.op("xor", a, t.op("ashr", a, f.type.bits - 1))
    zeros = t.resize(t.intrinsic("ctlz", a, constant("i1", 0)), "i32")
    found = zeros if f["shiftamt"] else t.op("sub", constant("i32", f.type.bits - 1), zeros)
    return t.select(t.compare("eq", a, 0), constant("i32", -1), found)


@value("brev.type d, a", type=("b32", "b64"))
def brev(t: Translator, f: Form, a: Value) -> Value:
    return t.intrinsic("bitreverse", a)


def _field(t: Translator, position: Value, length: Value, width: int) -> tuple[Value, Value, Value]:
    """Position, length and a mask of that many ones, in an integer twice as wide."""
    double = f"i{2 * width}"

    def clamped(x: Value) -> Value:
        low = t.op("and", x, 255)
        return t.resize(t.intrinsic("umin", low, constant("i32", width)), double)

    start, count = clamped(position), clamped(length)
    mask = t.op("sub", t.op("shl", constant(double, 1), count), 1)
    return start, count, mask


@value("bfe.type d, a, b:u32, c:u32", type=WORDS)
def bfe(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    """c bits of a from bit b on, extended by the sign of a's type."""
    width = f.type.bits
    start, count, mask = _field(t, b, c, width)
    wide = t.resize(a, start.type, f.type.is_signed)
    found = t.op("and", t.op("ashr" if f.type.is_signed else "lshr", wide, start), mask)
    if f.type.is_signed:
        room = t.op("sub", constant(wide.type, 2 * width), count)
        room = t.select(t.compare("eq", count, 0), constant(wide.type, 0), room)
        found = t.op("ashr", t.op("shl", found, room), room)
    return t.resize(found, f.type.llvm)


@value("bfi.type d, a, b, c:u32, e:u32", type=("b32", "b64"))
def bfi(t: Translator, f: Form, a: Value, b: Value, c: Value, e: Value) -> Value:
    """b with e bits from bit c on replaced by the low bits of a."""
    start, _, mask = _field(t, c, e, f.type.bits)
    inserted = t.op("shl", t.op("and", t.resize(a, mask.type), mask), start)
    hole = t.invert(t.op("shl", mask, start))
    merged = t.op("or", t.op("and", t.resize(b, mask.type), hole), inserted)
    return t.resize(merged, f.type.llvm)
