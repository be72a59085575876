"""Conversions between types."""

from harness.ptxcpu.codegen.instructions.floating import (
    flush,
    narrow,
    narrow_float,
    relu,
    round_directed,
    saturate,
    widen_half,
)
from harness.ptxcpu.codegen.llvm_ir import IrValue, constant, llvm_type
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.types import TYPES, Type

TABLE = InstructionTable()

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
ROUNDING = ("rn", "rz", "rm", "rp")


def _source(t: Translator, m: MatchedInstruction, type_: Type) -> IrValue:
    return t.read(m.operands["a"], type_)


@TABLE.instruction("cvt{.sat}.to.from d, a", to=INTEGERS, **{"from": INTEGERS})
def integer_to_integer(t: Translator, m: MatchedInstruction) -> None:
    to, from_ = TYPES[m["to"]], TYPES[m["from"]]
    wide = t.resize(_source(t, m, from_), "i128", from_.is_signed)
    if m["sat"]:
        low = -(1 << to.bits - 1) if to.is_signed else 0
        high = (1 << to.bits - to.is_signed) - 1
        wide = t.intrinsic("smax", wide, constant("i128", low))
        wide = t.intrinsic("smin", wide, constant("i128", high))
    t.write(m.operands["d"], t.resize(wide, llvm_type(to)), to.is_signed)


@TABLE.value("cvt.pack.sat.to.from d, a:s32, b:s32", to=("s16", "u16"), **{"from": ("s32",)})
@TABLE.value(
    "cvt.pack.sat.to.from.b32 d, a:s32, b:s32, c:b32", to=("s8", "u8"), **{"from": ("s32",)}
)
def pack_integers(
    t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, *c: IrValue
) -> IrValue:
    """The low part of c, then a, then b (in the lowest bits), the last two saturated."""
    to = TYPES[m["to"]]
    low, high = -(1 << to.bits - 1) if to.is_signed else 0, (1 << to.bits - to.is_signed) - 1
    result = t.op("shl", c[0], 2 * to.bits) if c else constant("i32", 0)
    for x, shift in ((a, to.bits), (b, 0)):
        least = t.intrinsic("smax", x, constant("i32", low))
        most = t.intrinsic("smin", least, constant("i32", high))
        part = t.op("and", most, (1 << to.bits) - 1)
        result = t.op("or", result, t.op("shl", part, shift))
    return result


@TABLE.instruction(
    "cvt.how{.ftz}{.sat}.to.from d, a", how=tuple(INTEGRAL), to=INTEGERS, **{"from": FLOATS}
)
def float_to_integer(t: Translator, m: MatchedInstruction) -> None:
    """Values outside the integer's range become its minimum or maximum. NaN becomes 0, or only the
    integer's top bit if one of the types has 64 bits."""
    to, from_ = TYPES[m["to"]], TYPES[m["from"]]
    x = flush(t, m, _source(t, m, from_))
    if from_.bits == 16:
        x = widen_half(t, x)
    x = t.intrinsic(INTEGRAL[m["how"]], x)
    sign, width = "s" if to.is_signed else "u", 32 if x.type == "float" else 64
    found = t.call(llvm_type(to), f"llvm.fpto{sign}i.sat.{llvm_type(to)}.f{width}", x)
    if 64 in (to.bits, from_.bits):
        top = constant(llvm_type(to), 1 << to.bits - 1)
        found = t.select(t.compare("uno", x, x), top, found)
    t.write(m.operands["d"], found, to.is_signed)


@TABLE.instruction("cvt.rnd{.sat}.to.from d, a", rnd=ROUNDING, to=FLOATS, **{"from": INTEGERS})
def integer_to_float(t: Translator, m: MatchedInstruction) -> None:
    to, from_ = TYPES[m["to"]], TYPES[m["from"]]
    x = _source(t, m, from_)
    how = "sitofp" if from_.is_signed else "uitofp"
    if m["rnd"] == "rn" and to.bits >= 32:
        result = t.convert(how, x, llvm_type(to))
    elif from_.bits <= 32:  # exact as a double
        result = _narrow_double(t, m["rnd"], t.convert(how, x, "double"), to)
    else:
        raise CannotTranslate(f"a 64-bit integer as .{to.name} with rounding .{m['rnd']}")
    t.write(m.operands["d"], _saturated(t, m, result))


def _narrow_double(t: Translator, way: str, x: IrValue, to: Type) -> IrValue:
    if to.name == "f64":
        return x
    if way != "rn":
        return round_directed(t, way, x, constant("double", 0.0), llvm_type(to))[0]
    if to.name == "f32":
        return t.convert("fptrunc", x, "float")
    return narrow(t, x, None, llvm_type(to))


def _saturated(t: Translator, m: MatchedInstruction, x: IrValue) -> IrValue:
    if not m["sat"]:
        return x
    if x.type in ("half", "bfloat"):
        return narrow_float(t, saturate(t, widen_half(t, x)), x.type)
    return saturate(t, x)


@TABLE.instruction(
    "cvt{.how}{.ftz}{.sat}.to.from d, a", how=(*INTEGRAL, *ROUNDING), to=FLOATS, **{"from": FLOATS}
)
def float_to_float(t: Translator, m: MatchedInstruction) -> None:
    """To a wider, a narrower or (rounding to an integral value) the same type."""
    to, from_ = TYPES[m["to"]], TYPES[m["from"]]
    x = flush(t, m, _source(t, m, from_))
    if from_.bits == 16:
        x = widen_half(t, x)
    if m["how"] in INTEGRAL:
        x = t.intrinsic(INTEGRAL[m["how"]], x)
    way = m["how"] if m["how"] in ROUNDING else "rn"
    if to.name == "f64" and x.type == "float":
        x = t.convert("fpext", x, "double")
    elif to.bits == 16 and x.type == "float" and way == "rn":
        x = narrow_float(t, x, llvm_type(to))
    elif to.bits == 16 or x.type == "double":
        wide = x if x.type == "double" else t.convert("fpext", x, "double")
        x = _narrow_double(t, way, wide, to)
    t.write(m.operands["d"], _saturated(t, m, flush(t, m, x)))


@TABLE.value("cvt.rnd{.relu}.type.f32 d, a:f32, b:f32", rnd=("rn", "rz"), type=("f16x2", "bf16x2"))
def pack_halves(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    """Two floats as a pair: a in the upper half, b in the lower."""
    if m["relu"]:
        a, b = relu(t, a), relu(t, b)
    to = TYPES[m["type"].removesuffix("x2")]
    pair = IrValue("poison", llvm_type(m.type))
    for i, x in enumerate((b, a)):
        if m["rnd"] == "rn":
            half = narrow_float(t, x, llvm_type(to))
        else:
            half = _narrow_double(t, m["rnd"], t.convert("fpext", x, "double"), to)
        pair = t.insert(pair, half, i)
    return pair


@TABLE.value("cvt.rnd{.relu}.tf32.type d, a", rnd=("rna", "rn", "rz"), type=("f32",))
def to_tf32(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    """A float with 10 bits of mantissa: ties away from zero (rna), to even (rn), cut off (rz)."""
    x = t.bitcast(a, "i32")
    if m["rnd"] == "rna":
        more = constant("i32", 0x1000)
    elif m["rnd"] == "rn":
        more = t.op("add", t.op("and", t.op("lshr", x, 13), 1), 0x0FFF)
    else:
        more = constant("i32", 0)
    rounded = t.op("and", t.op("add", x, more), 0xFFFFE000)
    finite = t.compare("ne", t.op("and", x, 0x7F800000), 0x7F800000)
    result = t.select(finite, rounded, x)
    if m["relu"]:
        result = t.select(t.compare("ole", a, 0.0), constant("i32", 0), result)
    return result
