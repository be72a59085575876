"""Comparison and selection."""

from __future__ import annotations

from harness.devices.cpu.forms import Form, instruction, value
from harness.devices.cpu.instructions.floating import flush
from harness.devices.cpu.ir import Value
from harness.devices.cpu.translate import PREDICATE, Translator
from harness.devices.cpu.types import Type

# PTX comparison -> LLVM predicate: ordered (false for NaN), or unordered (true for NaN).
_FLOAT = {x: "o" + x for x in ("eq", "lt", "le", "gt", "ge")} | {"ne": "one"}
_FLOAT |= {x + "u": "u" + x for x in ("eq", "ne", "lt", "le", "gt", "ge")}
_FLOAT |= {"num": "ord", "nan": "uno"}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_INTEGER = ("eq", "ne", "lt", "le", "gt", "ge", *_UNSIGNED)

INTEGER_TYPES = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
FLOAT_TYPES = ("f16", "bf16", "f32", "f64")
BOOLEAN = ("and", "or", "xor")


def _compare(t: Translator, f: Form, type_: Type) -> Value:
    a, b = (t.read(f.operands[x], type_) for x in ("a", "b"))
    if type_.is_float:
        if type_.name in ("f16", "bf16"):
            a, b = (t.convert("fpext", x, "float") for x in (a, b))
        return t.compare(_FLOAT[f["cmp"]], flush(t, f, a), flush(t, f, b))
    name = _UNSIGNED.get(f["cmp"], f["cmp"])
    if name not in ("eq", "ne"):
        name = ("s" if type_.is_signed else "u") + name
    return t.compare(name, a, b)


@instruction("setp.cmp.type p, a, b", cmp=_INTEGER, type=INTEGER_TYPES)
@instruction("setp.cmp.bool.type p, a, b, c", cmp=_INTEGER, bool=BOOLEAN, type=INTEGER_TYPES)
@instruction("setp.cmp{.ftz}.type p, a, b", cmp=tuple(_FLOAT), type=FLOAT_TYPES)
@instruction(
    "setp.cmp.bool{.ftz}.type p, a, b, c", cmp=tuple(_FLOAT), bool=BOOLEAN, type=FLOAT_TYPES
)
def setp(t: Translator, f: Form) -> None:
    """p = a cmp b, q = its opposite; both combined with c."""
    found = _compare(t, f, f.type)
    results = [found, t.invert(found)]
    if f["bool"]:
        c = t.read(f.operands["c"], PREDICATE)
        results = [t.op(f["bool"], x, c) for x in results]
    t.write_pair(f.operands["p"], results[0], results[1])


@instruction(
    "set.cmp.result.type d, a, b",
    cmp=_INTEGER,
    result=("u32", "s32", "f32"),
    type=INTEGER_TYPES,
)
@instruction(
    "set.cmp{.ftz}.result.type d, a, b",
    cmp=tuple(_FLOAT),
    result=("u32", "s32", "f32"),
    type=FLOAT_TYPES,
)
def set_(t: Translator, f: Form) -> None:
    """All ones or zero; 1.0 or 0.0."""
    found = _compare(t, f, f.type)
    if f["result"] == "f32":
        t.write(f.operands["d"], t.convert("uitofp", found, "float"))
    else:
        t.write(f.operands["d"], t.resize(found, "i32", signed=True))


SELECTED = (*INTEGER_TYPES, "f32", "f64")


@value("selp.type d, a, b, c:pred", type=SELECTED)
def selp(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    return t.select(c, a, b)


@value("slct.type.s32 d, a, b, c:s32", type=SELECTED)
def slct(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    return t.select(t.compare("sge", c, 0), a, b)


@value("slct{.ftz}.type.f32 d, a, b, c:f32", type=SELECTED)
def slct_float(t: Translator, f: Form, a: Value, b: Value, c: Value) -> Value:
    return t.select(t.compare("oge", flush(t, f, c), 0.0), a, b)
