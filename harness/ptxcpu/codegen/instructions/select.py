"""Comparison and selection."""

from harness.ptxcpu.codegen.instructions.floating import HALVES, each, flush, widen_half
from harness.ptxcpu.codegen.llvm_ir import IrValue, constant
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.operands import PREDICATE
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Pair
from harness.ptxcpu.ptx.types import Type

TABLE = InstructionTable()

# PTX comparison -> LLVM predicate: ordered (false for NaN), or unordered (true for NaN).
_FLOAT = {x: "o" + x for x in ("eq", "lt", "le", "gt", "ge")} | {"ne": "one"}
_FLOAT |= {x + "u": "u" + x for x in ("eq", "ne", "lt", "le", "gt", "ge")}
_FLOAT |= {"num": "ord", "nan": "uno"}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_EQUAL = ("eq", "ne")
_ORDER = (*_EQUAL, "lt", "le", "gt", "ge")

BITS = ("b16", "b32", "b64")
SIGNED = ("s16", "s32", "s64")
UNSIGNED = ("u16", "u32", "u64")
BOOLEAN = ("and", "or", "xor")
COMPARISONS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", _EQUAL, BITS),
    ("", _ORDER, SIGNED),
    ("", (*_ORDER, *_UNSIGNED), UNSIGNED),
    ("{.ftz}", tuple(_FLOAT), ("f32",)),
    ("", tuple(_FLOAT), ("f16", "bf16", "f64")),
)


def _compare(t: Translator, m: MatchedInstruction, type_: Type) -> IrValue:
    a, b = (t.read(m.operands[x], type_) for x in ("a", "b"))
    if type_.is_float:
        if type_.name in ("f16", "bf16"):
            a, b = widen_half(t, a), widen_half(t, b)
        return t.compare(_FLOAT[m["cmp"]], flush(t, m, a), flush(t, m, b))
    name = _UNSIGNED.get(m["cmp"], m["cmp"])
    if name not in ("eq", "ne"):
        name = ("s" if type_.is_signed else "u") + name
    return t.compare(name, a, b)


def setp(t: Translator, m: MatchedInstruction) -> None:
    """p = a cmp b, q = its opposite; both combined with c."""
    found = _compare(t, m, m.type)
    results = [found, t.invert(found)] if isinstance(m.operands["p"], Pair) else [found]
    if m["bool"]:
        c = t.read(m.operands["c"], PREDICATE)
        results = [t.op(m["bool"], x, c) for x in results]
    t.write_pair(m.operands["p"], results[0], results[-1])


def set_(t: Translator, m: MatchedInstruction) -> None:
    """All ones or zero; 1.0 or 0.0."""
    found = _compare(t, m, m.type)
    if m["result"] == "f32":
        t.write(m.operands["d"], t.convert("uitofp", found, "float"))
    else:
        t.write(m.operands["d"], t.resize(found, "i32", signed=True))


@TABLE.value("set.cmp.type.type2 d, a, b", cmp=tuple(_FLOAT), type=HALVES, type2=HALVES)
def set_half(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue) -> IrValue:
    """1.0 or 0.0 for each element."""
    if m["type"] != m["type2"]:
        raise CannotTranslate("a comparison of another type than its result")

    def one(x: IrValue, y: IrValue) -> IrValue:
        found = t.compare(_FLOAT[m["cmp"]], widen_half(t, x), widen_half(t, y))
        return t.select(found, constant(x.type, 1.0), 0.0)

    return each(t, [a, b], one)


for _ftz, _cmp, _types in COMPARISONS:
    TABLE.instruction(f"setp.cmp{_ftz}.type p, a, b", cmp=_cmp, type=_types)(setp)
    TABLE.instruction(f"setp.cmp.bool{_ftz}.type p, a, b, c", cmp=_cmp, bool=BOOLEAN, type=_types)(
        setp
    )
    TABLE.instruction(
        f"set.cmp{_ftz}.result.type d, a, b",
        cmp=_cmp,
        result=("u32", "s32", "f32"),
        type=_types,
    )(set_)


SELECTED = (*BITS, *SIGNED, *UNSIGNED, "f32", "f64")


@TABLE.value("selp.type d, a, b, c:pred", type=SELECTED)
def selp(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    return t.select(c, a, b)


@TABLE.value("slct.type.s32 d, a, b, c:s32", type=SELECTED)
def slct(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    return t.select(t.compare("sge", c, 0), a, b)


@TABLE.value("slct{.ftz}.type.f32 d, a, b, c:f32", type=SELECTED)
def slct_float(t: Translator, m: MatchedInstruction, a: IrValue, b: IrValue, c: IrValue) -> IrValue:
    return t.select(t.compare("oge", flush(t, m, c), 0.0), a, b)
