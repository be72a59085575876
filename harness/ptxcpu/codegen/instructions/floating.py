"""Floating-point arithmetic, each operation rounded once.

`.approx` operations are computed as exactly as the host's mathematical library does.
"""

import functools
from collections.abc import Callable

from harness.ptxcpu.codegen.llvm_ir import ELEMENT, IrValue, constant
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator

TABLE = InstructionTable()

DIRECTED = ("rz", "rm", "rp")
ROUNDING = ("rn", *DIRECTED)
HALVES = ("f16", "bf16", "f16x2", "bf16x2")

MIN_NORMAL = 2.0**-126  # of f32


# ---- modifiers


def flush(t: Translator, m: MatchedInstruction, x: IrValue) -> IrValue:
    """`.ftz`: subnormal f32 numbers become zeros of their sign."""
    if not m["ftz"] or x.type != "float":
        return x
    small = t.compare("olt", t.intrinsic("fabs", x), MIN_NORMAL)
    return t.select(small, t.intrinsic("copysign", constant(x.type, 0.0), x), x)


def saturate(t: Translator, x: IrValue) -> IrValue:
    """`.sat`: into [0, 1], NaN to 0."""
    low = t.intrinsic("maximumnum", x, constant(x.type, 0.0))
    return t.intrinsic("minimumnum", low, constant(x.type, 1.0))


def _finish(t: Translator, m: MatchedInstruction, x: IrValue) -> IrValue:
    x = flush(t, m, x)
    return saturate(t, x) if m["sat"] else x


# ---- rounding


def two_sum(t: Translator, a: IrValue, b: IrValue) -> tuple[IrValue, IrValue]:
    """Return a + b rounded, and the exact rounding error (Knuth's TwoSum)."""
    total = t.op("fadd", a, b)
    part = t.op("fsub", total, a)
    lost = t.op("fadd", t.op("fsub", a, t.op("fsub", total, part)), t.op("fsub", b, part))
    return total, lost


def round_directed(
    t: Translator, way: str, high: IrValue, lost: IrValue, type_: str = "float"
) -> tuple[IrValue, IrValue]:
    """Return the sum of two doubles as a float, half or bfloat, rounded once towards 0 (rz), -inf
    (rm) or +inf (rp), and whether the result is inexact.

    The sum is rounded to nearest, then corrected by one unit in the last place if that was the
    wrong direction.
    """
    if type_ == "float":
        nearest = wide = t.convert("fptrunc", high, "float")
    else:
        nearest = narrow(t, high, lost, type_)
        wide = widen_half(t, nearest)
    distance = t.op("fsub", high, t.convert("fpext", wide, "double"))
    distance = t.select(t.compare("oeq", distance, 0.0), lost, distance)
    too_high, too_low = t.compare("olt", distance, 0.0), t.compare("ogt", distance, 0.0)
    number = t.as_integer(nearest)
    width = number.type
    negative, zero = t.compare("slt", number, 0), t.compare("oeq", wide, 0.0)
    one, minus = constant(width, 1), constant(width, -1)
    up = t.op("add", number, t.select(negative, minus, one))
    down = t.op("add", number, t.select(negative, one, minus))
    least = constant(width, (1 << int(width[1:]) - 1) + 1)  # below zero
    up, down = t.select(zero, one, up), t.select(zero, least, down)
    positive_high = t.op("and", too_high, t.op("and", t.invert(negative), t.invert(zero)))
    negative_low = t.op("and", too_low, t.op("and", negative, t.invert(zero)))
    step_down = {"rz": positive_high, "rm": too_high}.get(way, constant("i1", 0))
    step_up = {"rz": negative_low, "rp": too_low}.get(way, constant("i1", 0))
    result = t.select(step_up, up, t.select(step_down, down, number))
    return t.bitcast(result, type_), t.op("or", too_high, too_low)


def narrow(t: Translator, high: IrValue, lost: IrValue | None, type_: str) -> IrValue:
    """Return the sum of two doubles rounded once, to nearest even, to half or bfloat.

    The intermediate float is rounded to odd: towards zero, with the last bit set if it is inexact.
    """
    lost = lost or constant("double", 0.0)
    shorter, inexact = round_directed(t, "rz", high, lost)
    odd = t.op("or", t.bitcast(shorter, "i32"), t.resize(inexact, "i32"))
    return narrow_float(t, t.bitcast(odd, "float"), type_)


def narrow_float(t: Translator, x: IrValue, type_: str) -> IrValue:
    """A float to half or bfloat, to nearest even."""
    if type_ == "half":
        return t.convert("fptrunc", x, "half")
    number = t.bitcast(x, "i32")
    last = t.op("and", t.op("lshr", number, 16), 1)
    rounded = t.op("lshr", t.op("add", number, t.op("add", last, 0x7FFF)), 16)
    quiet = t.op("or", t.op("lshr", number, 16), 0x40)
    chosen = t.select(t.compare("uno", x, x), quiet, rounded)
    return t.bitcast(t.resize(chosen, "i16"), "bfloat")


def widen_half(t: Translator, x: IrValue) -> IrValue:
    """Return half or bfloat as a float. Bfloat is shifted, since x86's instructions flush
    subnormals."""
    if x.type == "half":
        return t.convert("fpext", x, "float")
    return t.bitcast(t.op("shl", t.resize(t.as_integer(x), "i32"), 16), "float")


def _add_directed(t: Translator, way: str, a: IrValue, b: IrValue) -> IrValue:
    """The sum of two doubles that hold floats or products of floats."""
    total, lost = two_sum(t, a, b)
    result, _ = round_directed(t, way, total, lost)
    if way == "rm":  # an exact zero is negative, unless both addends are +0
        signs = t.op("or", t.bitcast(a, "i64"), t.bitcast(b, "i64"))
        zero = t.op("and", t.compare("oeq", total, 0.0), t.compare("oeq", lost, 0.0))
        zero = t.op("and", zero, t.compare("slt", signs, 0))
        result = t.select(zero, constant("float", -0.0), result)
    return result


def _widen(t: Translator, *given: IrValue) -> list[IrValue]:
    return [t.convert("fpext", x, "double") for x in given]


# ---- f32 and f64


@TABLE.value("add{.rnd}{.ftz}{.sat}.type d, a, b", rnd=ROUNDING, type=("f32",))
@TABLE.value("add{.rnd}.type d, a, b", rnd=("rn",), type=("f64",))
def add(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    a, b = flush(t, m, a), flush(t, m, b)
    if m["rnd"] in ("", "rn"):
        return _finish(t, m, t.op("fadd", a, b))
    return _finish(t, m, _add_directed(t, m["rnd"], *_widen(t, a, b)))


@TABLE.value("sub{.rnd}{.ftz}{.sat}.type d, a, b", rnd=ROUNDING, type=("f32",))
@TABLE.value("sub{.rnd}.type d, a, b", rnd=("rn",), type=("f64",))
def sub(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    if m["rnd"] in ("", "rn"):
        return _finish(t, m, t.op("fsub", flush(t, m, a), flush(t, m, b)))
    return add(t, m, a, t.negate(b))


@TABLE.value("mul{.rnd}{.ftz}{.sat}.type d, a, b", rnd=ROUNDING, type=("f32",))
@TABLE.value("mul{.rnd}.type d, a, b", rnd=("rn",), type=("f64",))
def mul(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    a, b = flush(t, m, a), flush(t, m, b)
    if m["rnd"] in ("", "rn"):
        return _finish(t, m, t.op("fmul", a, b))
    product = t.op("fmul", *_widen(t, a, b))  # exact: 24 + 24 bits in 53
    return _finish(t, m, round_directed(t, m["rnd"], product, constant("double", 0.0))[0])


@TABLE.value("fma.rnd{.ftz}{.sat}.type d, a, b, c", rnd=ROUNDING, type=("f32",))
@TABLE.value("fma.rnd.type d, a, b, c", rnd=("rn",), type=("f64",))
@TABLE.value("mad.rnd{.ftz}{.sat}.type d, a, b, c", rnd=ROUNDING, type=("f32",))
@TABLE.value("mad.rnd.type d, a, b, c", rnd=("rn",), type=("f64",))
def fma(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    a, b, c = (flush(t, m, x) for x in (a, b, c))
    if m["rnd"] == "rn":
        return _finish(t, m, t.intrinsic("fma", a, b, c))
    product = t.op("fmul", *_widen(t, a, b))
    return _finish(t, m, _add_directed(t, m["rnd"], product, *_widen(t, c)))


@TABLE.value("div.rnd{.ftz}.type d, a, b", rnd=(*ROUNDING, "full", "approx"), type=("f32",))
@TABLE.value("div.rn.type d, a, b", type=("f64",))
def div(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    a, b = flush(t, m, a), flush(t, m, b)
    if m["rnd"] not in DIRECTED:
        return _finish(t, m, t.op("fdiv", a, b))
    p, q = _widen(t, a, b)
    quotient = t.op("fdiv", p, q)
    rest = t.intrinsic("fma", t.negate(quotient), q, p)  # exact; a / b = quotient + rest / b
    return _finish(t, m, round_directed(t, m["rnd"], quotient, t.op("fdiv", rest, q))[0])


@TABLE.value("rcp.rnd{.ftz}.type d, a", rnd=(*ROUNDING, "approx"), type=("f32",))
@TABLE.value("rcp.rn.type d, a", type=("f64",))
def rcp(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    return div(t, m, constant(a.type, 1.0), a)


@TABLE.value("sqrt.rnd{.ftz}.type d, a", rnd=(*ROUNDING, "approx"), type=("f32",))
@TABLE.value("sqrt.rn.type d, a", type=("f64",))
def sqrt(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    a = flush(t, m, a)
    if m["rnd"] not in DIRECTED:
        return _finish(t, m, t.intrinsic("sqrt", a))
    (p,) = _widen(t, a)
    root = t.intrinsic("sqrt", p)
    rest = t.intrinsic("fma", t.negate(root), root, p)  # of the sign of what the root lacks
    return _finish(t, m, round_directed(t, m["rnd"], root, rest)[0])


def _upper_half(t: Translator, x: IrValue) -> IrValue:
    """Return a value as the GPU's approximate f64 functions give it: 20 bits of mantissa, no
    subnormals."""
    small = t.compare("olt", t.intrinsic("fabs", x), 2.0**-1022)
    cut = t.bitcast(t.op("and", t.bitcast(x, "i64"), 0xFFFFFFFF_00000000), "double")
    cut = t.select(t.compare("uno", x, x), x, cut)
    return t.select(small, t.intrinsic("copysign", constant("double", 0.0), x), cut)


@TABLE.value("rcp.approx.ftz.type d, a", type=("f64",))
def rcp_coarse(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    """The starting value of a division in f64."""
    return _upper_half(t, t.op("fdiv", constant("double", 1.0), _upper_half(t, a)))


@TABLE.value("rsqrt.approx.ftz.type d, a", type=("f64",))
def rsqrt_coarse(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    root = t.intrinsic("sqrt", _upper_half(t, a))
    return _upper_half(t, t.op("fdiv", constant("double", 1.0), root))


@TABLE.value("rsqrt.approx{.ftz}.type d, a", type=("f32",))
@TABLE.value("rsqrt.approx.type d, a", type=("f64",))
def rsqrt(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    root = t.intrinsic("sqrt", flush(t, m, a))
    return _finish(t, m, t.op("fdiv", constant(a.type, 1.0), root))


_FUNCTIONS = {"sin": "sin", "cos": "cos", "lg2": "log2", "ex2": "exp2", "tanh": "tanh"}


def _approximate(name: str, t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    return _finish(t, m, t.intrinsic(name, flush(t, m, a)))


for _name, _intrinsic in _FUNCTIONS.items():
    _function = functools.partial(_approximate, _intrinsic)
    TABLE.value(f"{_name}.approx{{.ftz}}.type d, a", type=("f32",))(_function)


@TABLE.value("neg{.ftz}.type d, a", type=("f32",))
@TABLE.value("neg.type d, a", type=("f64",))
def neg(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    return t.negate(flush(t, m, a))


@TABLE.value("abs{.ftz}.type d, a", type=("f32",))
@TABLE.value("abs.type d, a", type=("f64",))
def absolute(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    return t.intrinsic("fabs", flush(t, m, a))


def _extreme(name: str, t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    """The smaller or larger number, with -0 below +0. A NaN operand is ignored, unless `.NaN` is
    given."""
    a, b = flush(t, m, a), flush(t, m, b)
    name = name if m["NaN"] else name + "num"
    if not m["abs"]:
        return t.intrinsic(name, a, b)
    size = t.intrinsic(name, t.intrinsic("fabs", a), t.intrinsic("fabs", b))
    sign = t.op("xor", t.as_integer(a), t.as_integer(b))
    return t.intrinsic("copysign", size, t.bitcast(sign, a.type))


def _extreme_of_halves(
    name: str, t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue
) -> IrValue:
    return _halves(t, m, [a, b], lambda x, y: _extreme(name, t, m, x, y))


for _name in ("min", "max"):
    _of_floats = functools.partial(_extreme, _name + "imum")
    TABLE.value(f"{_name}.type d, a, b", type=("f64",))(_of_floats)
    TABLE.value(
        f"{_name}{{.ftz}}{{.NaN}}{{.abs}}.type d, a, b", type=("f32",), abs=("xorsign.abs",)
    )(_of_floats)
    _of_halves = functools.partial(_extreme_of_halves, _name + "imum")
    TABLE.value(f"{_name}{{.NaN}}.type d, a, b", type=HALVES)(_of_halves)


@TABLE.value("copysign.type d, a, b", type=("f32", "f64"))
def copysign(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    """b with the sign of a."""
    return t.intrinsic("copysign", b, a)


_CLASSES = {
    "finite": 0b0111111000,  # bits of LLVM's is.fpclass, from signalling NaN up to +infinity
    "infinite": 0b1000000100,
    "number": 0b1111111100,
    "notanumber": 0b0000000011,
    "normal": 0b0100001000,
    "subnormal": 0b0010010000,
}


@TABLE.value("testp.kind.type p, a", kind=tuple(_CLASSES), type=("f32", "f64"))
def testp(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    suffix = m.type.name
    kind = constant("i32", _CLASSES[m["kind"]])
    return t.call("i1", f"llvm.is.fpclass.{suffix}", a, kind)


# ---- f16 and bf16, alone or in pairs: computed as floats, whose 24 bits are enough (2·11 + 2)
# for one operation to round as if computed exactly; a fused one needs doubles.


def each(t: Translator, given: list[IrValue], how: Callable[..., IrValue]) -> IrValue:
    """Apply `how` to each element of packed pairs, or to scalars."""
    type_ = given[0].type
    if type_ not in ELEMENT:
        return how(*given)
    result = IrValue("poison", type_)
    for i in range(2):
        part = how(*(t.extract(x, ELEMENT[type_], i) for x in given))
        result = t.insert(result, part, i)
    return result


def _halves(
    t: Translator, m: MatchedInstruction, given: list[IrValue], how: Callable[..., IrValue]
) -> IrValue:
    """One rounded operation on floats."""

    def one(*parts: IrValue) -> IrValue:
        result = how(*(widen_half(t, x) for x in parts))
        if m["sat"]:
            result = saturate(t, result)
        if m["relu"]:
            result = relu(t, result)
        return narrow_float(t, result, parts[0].type)

    return each(t, given, one)


def relu(t: Translator, x: IrValue) -> IrValue:
    """Negative numbers become +0, and so does -0; NaN stays."""
    return t.select(t.compare("ole", x, 0.0), constant(x.type, 0.0), x)


def _operation_of_halves(
    name: str, t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue
) -> IrValue:
    return _halves(t, m, [a, b], lambda x, y: t.op(name, x, y))


for _name in ("add", "sub", "mul"):
    TABLE.value(f"{_name}{{.rnd}}{{.sat}}.type d, a, b", rnd=("rn",), type=HALVES)(
        functools.partial(_operation_of_halves, f"f{_name}")
    )


@TABLE.value("fma.rn{.sat}{.relu}.type d, a, b, c", type=HALVES)
def fma_half(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    def one(x: IrValue, y: IrValue, z: IrValue) -> IrValue:
        p, q, r = (t.convert("fpext", widen_half(t, v), "double") for v in (x, y, z))
        total, lost = two_sum(t, t.op("fmul", p, q), r)
        rounded = widen_half(t, narrow(t, total, lost, x.type))
        rounded = saturate(t, rounded) if m["sat"] else rounded
        rounded = relu(t, rounded) if m["relu"] else rounded
        return narrow_float(t, rounded, x.type)

    return each(t, [a, b, c], one)


@TABLE.value("neg.type d, a", type=HALVES)
def neg_half(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    sign = 0x8000_8000 if a.type in ELEMENT else 0x8000
    return t.bitcast(t.op("xor", t.as_integer(a), sign), a.type)


@TABLE.value("abs.type d, a", type=HALVES)
def abs_half(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    rest = 0x7FFF_7FFF if a.type in ELEMENT else 0x7FFF
    return t.bitcast(t.op("and", t.as_integer(a), rest), a.type)
