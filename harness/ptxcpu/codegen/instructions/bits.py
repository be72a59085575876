"""Logic, shifts and permutations of bits."""

from harness.ptxcpu.codegen.llvm_ir import IrValue, constant, llvm_type
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Integer, Vector
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime.layout import BLOCK_BITS, WINDOW_BITS

TABLE = InstructionTable()

LOGIC = ("pred", "b16", "b32", "b64")


for _name in ("and", "or", "xor"):
    TABLE.operation(f"{_name}.type d, a, b", _name, type=LOGIC)


@TABLE.value("not.type d, a", type=LOGIC)
def not_(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    return t.invert(a)


@TABLE.value("cnot.type d, a", type=LOGIC[1:])
def cnot(t: Translator, m: MatchedInstruction, a: IrValue) -> IrValue:
    return t.resize(t.compare("eq", a, 0), a.type)


@TABLE.value("lop3.type d, a, b, c, table:b32", type=("b32",))
def lop3(
    t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue, table: IrValue
) -> IrValue:
    """A function of three bits: the table has one bit for each of their eight combinations."""
    if not isinstance(m.operands["table:b32"], Integer):
        raise CannotTranslate("a table that is not a constant")
    result = constant("i32", 0)
    for case in range(8):
        if int(table.text) >> case & 1:
            terms = [x if case & bit else t.invert(x) for x, bit in ((a, 4), (b, 2), (c, 1))]
            both = t.op("and", terms[0], terms[1])
            result = t.op("or", result, t.op("and", both, terms[2]))
    return result


# ---- shifts: PTX clamps the amount, LLVM makes too large a one undefined


def _clamped(t: Translator, m: MatchedInstruction, amount: IrValue) -> tuple[IrValue, IrValue]:
    """The amount in the type of the shift, at most its last bit, and whether it was larger."""
    last = m.type.bits - 1
    too_large = t.compare("ugt", amount, last)
    return t.resize(
        t.select(too_large, constant("i32", last), amount), llvm_type(m.type)
    ), too_large


@TABLE.value("shl.type d, a, b:u32", type=LOGIC[1:])
def shl(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    amount, too_large = _clamped(t, m, b)
    return t.select(too_large, constant(a.type, 0), t.op("shl", a, amount))


@TABLE.value("shr.type d, a, b:u32", type=(*LOGIC[1:], "u16", "u32", "u64", "s16", "s32", "s64"))
def shr(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    amount, too_large = _clamped(t, m, b)
    if m.type.is_signed:
        return t.op("ashr", a, amount)
    return t.select(too_large, constant(a.type, 0), t.op("lshr", a, amount))


@TABLE.value("shf.way.mode.type d, a, b, c", way=("l", "r"), mode=("wrap", "clamp"), type=("b32",))
def shf(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    """Shift the 64 bits b:a and keep the high (left) or low (right) half."""
    if m["mode"] == "wrap":
        amount = t.op("and", c, 31)
    else:
        amount = t.intrinsic("umin", c, constant("i32", 32))
    low, high, amount = (t.resize(x, "i64") for x in (a, b, amount))
    both = t.op("or", low, t.op("shl", high, 32))
    if m["way"] == "l":
        return t.resize(t.op("lshr", t.op("shl", both, amount), 32), "i32")
    return t.resize(t.op("lshr", both, amount), "i32")


_MODES = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


def _permutation(mode: str, n: int) -> list[int]:
    """Return which byte each byte of the result is, for the two low bits of c."""
    return {
        "f4e": [n, n + 1, n + 2, n + 3],
        "b4e": [n, n + 7 & 7, n + 6 & 7, n + 5 & 7],
        "rc8": [n, n, n, n],
        "ecl": [max(i, n) for i in range(4)],
        "ecr": [min(i, n) for i in range(4)],
        "rc16": [0, 1, 0, 1] if n % 2 == 0 else [2, 3, 2, 3],
    }[mode]


@TABLE.value("prmt.type{.mode} d, a, b, c", type=("b32",), mode=_MODES)
def prmt(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    """Four bytes of b:a, each chosen by four bits of c, or by a fixed pattern."""
    both = t.op("or", t.resize(a, "i64"), t.op("shl", t.resize(b, "i64"), 32))
    if m["mode"]:
        selector = constant("i32", 0)
        for n in range(4):
            pattern = sum(x << 4 * i for i, x in enumerate(_permutation(m["mode"], n)))
            here = t.compare("eq", t.op("and", c, 3), n)
            selector = t.select(here, constant("i32", pattern), selector)
        c = selector
    result = constant("i32", 0)
    for i in range(4):
        choice = t.op("and", t.op("lshr", c, 4 * i), 15)
        shift = t.resize(t.op("shl", t.op("and", choice, 7), 3), "i64")
        byte = t.resize(t.op("lshr", both, shift), "i8")
        byte = t.select(t.compare("ugt", choice, 7), t.op("ashr", byte, 7), byte)
        result = t.op("or", result, t.op("shl", t.resize(byte, "i32"), 8 * i))
    return result


@TABLE.value("fns.type d, a, b, c", type=("b32",))
def fns(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    """Return the position of the c-th set bit of a, counted from bit b: upward, or downward if c is
    negative. If c is 0, it is b, if that bit is set. Without such a bit the result is -1."""
    last, no_bit = constant("i32", 31), constant("i32", 0)
    is_down, count = t.compare("slt", c, 0), t.intrinsic("abs", c, constant("i1", 0))
    bits = t.select(is_down, t.intrinsic("bitreverse", a), a)
    start = t.op("and", t.select(is_down, t.op("sub", last, b), b), last)
    lowest = t.op("shl", constant("i32", 1), start)
    from_start = t.select(t.compare("eq", c, 0), lowest, t.negate(lowest))
    is_valid = t.op("and", t.compare("ult", b, 32), t.compare("ule", count, 32))
    left = t.select(is_valid, t.op("and", bits, from_start), no_bit)
    for passed in range(1, 32):
        without_lowest = t.op("and", left, t.op("sub", left, 1))
        left = t.select(t.compare("ugt", count, passed), without_lowest, left)
    place = t.intrinsic("cttz", left, constant("i1", 0))
    place = t.select(is_down, t.op("sub", last, place), place)
    return t.select(t.compare("eq", left, 0), constant("i32", -1), place)


# ---- moves

MOVED = ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")


@TABLE.instruction("mov.type d, a", type=(*MOVED, "f16", "bf16", "f16x2", "bf16x2", "b128"))
def mov(t: Translator, m: MatchedInstruction) -> None:
    """A register, constant, address or special register; or a vector packed or unpacked."""
    d, a = m.operands["d"], m.operands["a"]
    if isinstance(d, Vector):
        t.unpack(d, t.read(a, m.type))
    elif isinstance(a, Vector):
        t.write(d, t.pack(a, m.type))
    else:
        t.write(d, t.read(a, m.type))


CONVERTED = ("global", "shared", "shared::cta", "shared::cluster", "local", "const")


@TABLE.instruction("cvta.space.type d, a", space=CONVERTED, type=("u64",))
def cvta(t: Translator, m: MatchedInstruction) -> None:
    """An address of one state space as a generic one."""
    address = t.read(m.operands["a"], TYPES["u64"])
    t.write(m.operands["d"], t.op("add", address, t.window_base(m["space"].removesuffix("::cta"))))


@TABLE.instruction("cvta.to.space.type d, a", space=CONVERTED, type=("u64",))
def cvta_to(t: Translator, m: MatchedInstruction) -> None:
    address = t.read(m.operands["a"], TYPES["u64"])
    t.write(m.operands["d"], t.op("sub", address, t.window_base(m["space"].removesuffix("::cta"))))


@TABLE.instruction(
    "isspacep.space p, a",
    space=("global", "shared", "shared::cta", "shared::cluster", "local", "const"),
)
def isspacep(t: Translator, m: MatchedInstruction) -> None:
    address = t.read(m.operands["a"], TYPES["u64"])
    window = t.op("lshr", address, WINDOW_BITS)
    shared, local = (
        t.compare("eq", window, t.window_base(x) >> WINDOW_BITS) for x in ("shared", "local")
    )
    if m["space"] == "shared::cluster":
        result = shared
    elif m["space"].startswith("shared"):
        offset = t.op("sub", t.op("sub", address, t.window_base("shared")), t.shared_address())
        result = t.compare("ult", offset, 1 << BLOCK_BITS)
    elif m["space"] == "local":
        result = local
    elif m["space"] == "global":
        result = t.invert(t.op("or", shared, local))
    else:
        result = constant("i1", 0)
    t.write(m.operands["p"], result)
