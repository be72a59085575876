"""Conversions between types."""

from __future__ import annotations

from harness.devices.cpu.errors import CannotTranslate
from harness.devices.cpu.forms import Form, instruction, value
from harness.devices.cpu.instructions.floating import (
    flush,
    narrow,
    narrow_float,
    relu,
    round_directed,
    saturate,
    widen_half,
)
from harness.devices.cpu.ir import Value, constant
from harness.devices.cpu.translate import Translator
from harness.devices.cpu.types import TYPES, Type

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
ROUNDING = ("rn", "rz", "rm", "rp")


def _source(t: Translator, f: Form, type_: Type) -> Value:
    return t.read(f.operands["a"], type_)


@instruction("cvt{.sat}.to.from d, a", to=INTEGERS, **{"from": INTEGERS})
def integer_to_integer(t: Translator, f: Form) -> None:
    to, from_ = TYPES[f["to"]], TYPES[f["from"]]
    wide = t.resize(_source(t, f, from_), "i128", from_.is_signed)
    if f["sat"]:
        low = -(1 << to.bits - 1) if to.is_signed else 0
        high = (1 << to.bits - to.is_signed) - 1
        wide = t.intrinsic("smax", wide, constant("i128", low))
        wide = t.intrinsic("smin", wide, constant("i128", high))
    t.write(f.operands["d"], t.resize(wide, to.llvm), to.is_signed)


@value("cvt.pack.sat.to.from d, a:s32, b:s32", to=("s16", "u16"), **{"from": ("s32",)})
@value("cvt.pack.sat.to.from.b32 d, a:s32, b:s32, c:b32", to=("s8", "u8"), **{"from": ("s32",)})
def pack_integers(t: Translator, f: Form, a: Value, b: Value, *c: Value) -> Value:
    """The low part of c, then a, then b (in the lowest bits), the last two saturated."""
    to = TYPES[f["to"]]
    low, high = -(1 << to.bits - 1) if to.is_signed else 0, (1 << to.bits - to.is_signed) - 1
    result = t.op("shl", c[0], 2 * to.bits) if c else constant("i32", 0)
    for x, shift in ((a, to.bits), (b, 0)):
        least = t.intrinsic("smax", x, constant("i32", low))
        most = t.intrinsic("smin", least, constant("i32", high))
        part = t.op("and", most, (1 << to.bits) - 1)
        result = t.op("or", result, t.op("shl", part, shift))
    return result


@instruction(
    "cvt.how{.ftz}{.sat}.to.from d, a", how=tuple(INTEGRAL), to=INTEGERS, **{"from": FLOATS}
)
def float_to_integer(t: Translator, f: Form) -> None:
    """Values outside the integer's range become its nearest end. NaN becomes 0, or the integer's
    top bit where a 64-bit type takes part."""
    to, from_ = TYPES[f["to"]], TYPES[f["from"]]
    x = flush(t, f, _source(t, f, from_))
    if from_.bits == 16:
        x = widen_half(t, x)
    x = t.intrinsic(INTEGRAL[f["how"]], x)
    name = (
        f"llvm.fpto{'s' if to.is_signed else 'u'}i.sat.{to.llvm}.f{32 if x.type == 'float' else 64}"
    )
    found = t.call(to.llvm, name, x)
    if 64 in (to.bits, from_.bits):
        top = constant(to.llvm, 1 << to.bits - 1)
        found = t.select(t.compare("uno", x, x), top, found)
    t.write(f.operands["d"], found, to.is_signed)


@instruction("cvt.rnd{.sat}.to.from d, a", rnd=ROUNDING, to=FLOATS, **{"from": INTEGERS})
def integer_to_float(t: Translator, f: Form) -> None:
    to, from_ = TYPES[f["to"]], TYPES[f["from"]]
    x = _source(t, f, from_)
    how = "sitofp" if from_.is_signed else "uitofp"
    if f["rnd"] == "rn" and to.bits >= 32:
        result = t.convert(how, x, to.llvm)
    elif from_.bits <= 32:  # exact as a double
        result = _narrow_double(t, f["rnd"], t.convert(how, x, "double"), to)
    else:
        raise CannotTranslate(f"a 64-bit integer as .{to.name} with rounding .{f['rnd']}")
    t.write(f.operands["d"], _saturated(t, f, result))


def _narrow_double(t: Translator, way: str, x: Value, to: Type) -> Value:
    if to.name == "f64":
        return x
    if to.name == "f32":
        if way == "rn":
            return t.convert("fptrunc", x, "float")
        return round_directed(t, way, x, constant("double", 0.0))[0]
    if way != "rn":
        raise CannotTranslate(f"rounding .{way} to .{to.name}")
    return narrow(t, x, None, to.llvm)


def _saturated(t: Translator, f: Form, x: Value) -> Value:
    if not f["sat"]:
        return x
    if x.type in ("half", "bfloat"):
        return narrow_float(t, saturate(t, widen_half(t, x)), x.type)
    return saturate(t, x)


@instruction(
    "cvt{.how}{.ftz}{.sat}.to.from d, a", how=(*INTEGRAL, *ROUNDING), to=FLOATS, **{"from": FLOATS}
)
def float_to_float(t: Translator, f: Form) -> None:
    """To a wider, a narrower or (rounding to an integral value) the same type."""
    to, from_ = TYPES[f["to"]], TYPES[f["from"]]
    x = flush(t, f, _source(t, f, from_))
    if from_.bits == 16:
        x = widen_half(t, x)
    if f["how"] in INTEGRAL:
        x = t.intrinsic(INTEGRAL[f["how"]], x)
    way = f["how"] if f["how"] in ROUNDING else "rn"
    if to.name == "f64" and x.type == "float":
        x = t.convert("fpext", x, "double")
    elif to.bits == 16 and x.type == "float" and way == "rn":
        x = narrow_float(t, x, to.llvm)
    elif to.bits == 16 or x.type == "double":
        wide = x if x.type == "double" else t.convert("fpext", x, "double")
        x = _narrow_double(t, way, wide, to)
    t.write(f.operands["d"], _saturated(t, f, flush(t, f, x)))


@value("cvt.rn{.relu}.type.f32 d, a:f32, b:f32", type=("f16x2", "bf16x2"))
def pack_halves(t: Translator, f: Form, a: Value, b: Value) -> Value:
    """Two floats as a pair: a in the upper half, b in the lower."""
    if f["relu"]:
        a, b = relu(t, a), relu(t, b)
    half = "half" if f["type"] == "f16x2" else "bfloat"
    pair = Value("poison", f.type.llvm)
    for i, x in enumerate((b, a)):
        pair = t.insert(pair, narrow_float(t, x, half), i)
    return pair


@value("cvt.rnd{.relu}.tf32.type d, a", rnd=("rna", "rn", "rz"), type=("f32",))
def to_tf32(t: Translator, f: Form, a: Value) -> Value:
    """A float with 10 bits of mantissa: ties away from zero (rna), to even (rn), cut off (rz)."""
    x = t.bitcast(a, "i32")
    if f["rnd"] == "rna":
        more = constant("i32", 0x1000)
    elif f["rnd"] == "rn":
        more = t.op("add", t.op("and", t.op("lshr", x, 13), 1), 0x0FFF)
    else:
        more = constant("i32", 0)
    rounded = t.op("and", t.op("add", x, more), 0xFFFFE000)
    finite = t.compare("ne", t.op("and", x, 0x7F800000), 0x7F800000)
    result = t.select(finite, rounded, x)
    if f["relu"]:
        result = t.select(t.compare("ole", a, 0.0), constant("i32", 0), result)
    return result
