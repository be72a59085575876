"""Loads, stores and atomic operations."""

from __future__ import annotations

from harness.devices.cpu.errors import CannotTranslate
from harness.devices.cpu.forms import Form, instruction
from harness.devices.cpu.ir import Value, constant
from harness.devices.cpu.layout import Access, State
from harness.devices.cpu.ptx import Operand
from harness.devices.cpu.translate import Touch, Translator
from harness.devices.cpu.types import Type

SCALARS = (*(f"{k}{n}" for k in "bus" for n in (8, 16, 32, 64)), "f32", "f64", "b128")
SPACES = (
    "global",
    "shared",
    "shared::cta",
    "local",
    "const",
    "param",
    "param::entry",
    "param::func",
)
VECTOR = ("v2", "v4", "v8")

# Hints about caches and the order of memory; every access here is already as ordered as can be.
CACHE = ("ca", "cg", "cs", "cv", "lu", "wb", "wt")
ORDER = ("volatile", "weak", "relaxed", "acquire", "release", "acq_rel")
SCOPE = ("cta", "cluster", "gpu", "sys")
EVICT = tuple(
    f"L1::{x}"
    for x in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
)
L2_EVICT = tuple(f"L2::evict_{x}" for x in ("last", "normal", "first"))
PREFETCH = ("L2::64B", "L2::128B", "L2::256B")

_HINTS = "{.order}{.scope}{.space}{.cache}{.nc}{.evict}{.l2}{.hint}{.prefetch}{.vec}.type"
_CHOICES = {
    "order": ORDER,
    "scope": SCOPE,
    "space": SPACES,
    "cache": CACHE,
    "evict": EVICT,
    "l2": L2_EVICT,
    "hint": ("L2::cache_hint",),
    "prefetch": PREFETCH,
    "vec": VECTOR,
    "type": SCALARS,
}


def space(f: Form) -> str:
    return f["space"].split("::")[0]


def is_volatile(f: Form) -> bool:
    return f["order"] not in ("", "weak")


def _shape(t: Translator, f: Form, operand: Operand) -> tuple[tuple[Operand, ...], Type, str, int]:
    """The registers, the element type, the LLVM type of all together and their bytes."""
    items, type_ = t.items(operand), f.type
    if len(items) != int((f["vec"] or "v1")[1:]):
        raise CannotTranslate("a vector of another length is needed")
    whole = f"<{len(items)} x {type_.llvm}>" if len(items) > 1 else type_.llvm
    return items, type_, whole, type_.bytes * len(items)


def _give_way(t: Translator, f: Form) -> None:
    """A loop that polls memory waits for another thread: let it run."""
    if t.is_in_loop(f.index):
        t.suspend(f.index, State.YIELD, phase=3)


def _alignment(f: Form, type_: Type) -> str:
    """What the host may assume: NumPy aligns arrays to their elements only."""
    return f", align {type_.bytes if space(f) in ('global', '', 'const') else min(16, type_.bytes)}"


@instruction(f"ld{_HINTS} d, a, policy?", **_CHOICES)
@instruction("ldu{.space}{.vec}.type d, a", space=SPACES, vec=VECTOR, type=SCALARS)
def ld(t: Translator, f: Form) -> None:
    items, type_, whole, n = _shape(t, f, f.operands["d"])
    address = t.address(f.operands["a"])
    if space(f) == "param":
        pointer = t.parameter(address, n)
    else:
        if is_volatile(f):
            _give_way(t, f)
        access = Access.VOLATILE if is_volatile(f) else Access.READ
        pointer = t.pointer(space(f), address, Touch(f.index, n, access))
    tail = f", {pointer}{_alignment(f, type_)}"
    loaded = t.value(whole, f"load {'volatile ' if is_volatile(f) else ''}{whole}{tail}")
    for i, item in enumerate(items):
        x = t.extract(loaded, type_.llvm, i) if len(items) > 1 else loaded
        t.write(item, x, type_.is_signed)


@instruction(f"st{_HINTS} a, b, policy?", **_CHOICES)
def st(t: Translator, f: Form) -> None:
    items, type_, whole, n = _shape(t, f, f.operands["b"])
    address = t.address(f.operands["a"])
    stored = Value("poison", whole)
    for i, item in enumerate(items):
        x = t.read(item, type_)
        stored = t.insert(stored, x, i) if len(items) > 1 else x
    if space(f) == "param":
        pointer = t.parameter(address, n)
    else:
        access = Access.WRITE | (Access.VOLATILE if is_volatile(f) else Access.READ)
        pointer = t.pointer(space(f), address, Touch(f.index, n, access))
    volatile = "volatile " if is_volatile(f) else ""
    t.emit(f"store {volatile}{stored}, {pointer}{_alignment(f, type_)}")


# ---- atomic operations

_ATOMIC = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "exch": "xchg",
    "min": "min",
    "max": "max",
    "inc": "uinc_wrap",
    "dec": "udec_wrap",
}
_ATOMIC_CHOICES = {
    "order": ORDER[2:],
    "scope": SCOPE,
    "space": ("global", "shared", "shared::cta"),
    "op": tuple(_ATOMIC),
    "l2": ("L2::cache_hint",),
    "type": ("b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"),
}
_HALVES = _ATOMIC_CHOICES | {"op": ("add",), "type": ("f16", "f16x2")}
_SWAPS = _ATOMIC_CHOICES | {"type": ("b16", "b32", "u32", "s32", "b64", "u64", "s64")}


def _operation(f: Form) -> str:
    op = _ATOMIC[f["op"]]
    if f.type.is_float:
        if op != "add":
            raise CannotTranslate(f"an atomic {f['op']} of .{f.type.name}")
        return "fadd"
    return "u" + op if op in ("min", "max") and not f.type.is_signed else op


def _atomic_pointer(t: Translator, f: Form) -> Value:
    address = t.address(f.operands["a"])
    return t.pointer(space(f), address, Touch(f.index, f.type.bytes, Access.WRITE | Access.ATOMIC))


def _modify(t: Translator, f: Form) -> Value:
    b = t.read(f.operands["b"], f.type)
    pointer = _atomic_pointer(t, f)
    return t.value(b.type, f"atomicrmw {_operation(f)} {pointer}, {b} seq_cst")


# The manual's order of modifiers, and the one that NVIDIA's C++ library writes.
@instruction("atom{.order}{.scope}{.space}.op{.l2}.type d, a, b, policy?", **_ATOMIC_CHOICES)
@instruction("atom{.space}.op.order{.scope}{.l2}.type d, a, b, policy?", **_ATOMIC_CHOICES)
@instruction("atom{.order}{.scope}{.space}.op.noftz{.l2}.type d, a, b, policy?", **_HALVES)
def atom(t: Translator, f: Form) -> None:
    _give_way(t, f)
    t.write(f.operands["d"], _modify(t, f))


@instruction("red{.order}{.scope}{.space}.op{.l2}.type a, b, policy?", **_ATOMIC_CHOICES)
@instruction("red{.space}.op.order{.scope}{.l2}.type a, b, policy?", **_ATOMIC_CHOICES)
@instruction("red{.order}{.scope}{.space}.op.noftz{.l2}.type a, b, policy?", **_HALVES)
def red(t: Translator, f: Form) -> None:
    _modify(t, f)


# Several neighbouring elements in one instruction: atomic each, not all together.
_VECTORS = _HALVES | {"space": ("global",), "vec": VECTOR, "type": ("f32", "f16", "f16x2")}


def _modify_vector(t: Translator, f: Form) -> list[Value]:
    items, type_, _, n = _shape(t, f, f.operands["b"])
    if n > 16:
        raise CannotTranslate(f"an atomic access of {n} bytes")
    address = t.address(f.operands["a"])
    pointer = t.pointer(space(f), address, Touch(f.index, n, Access.WRITE | Access.ATOMIC))
    olds = []
    for i, item in enumerate(items):
        b, where = t.read(item, type_), t.offset(pointer, i * type_.bytes)
        olds.append(t.value(b.type, f"atomicrmw {_operation(f)} {where}, {b} seq_cst"))
    return olds


@instruction("atom{.order}{.scope}{.space}.op{.noftz}{.l2}.vec.type d, a, b, policy?", **_VECTORS)
def atom_vector(t: Translator, f: Form) -> None:
    _give_way(t, f)
    items = t.items(f.operands["d"])
    olds = _modify_vector(t, f)
    if len(items) != len(olds):
        raise CannotTranslate("a vector of another length is needed")
    for item, old in zip(items, olds, strict=True):
        t.write(item, old)


@instruction("red{.order}{.scope}{.space}.op{.noftz}{.l2}.vec.type a, b, policy?", **_VECTORS)
def red_vector(t: Translator, f: Form) -> None:
    _modify_vector(t, f)


@instruction("atom{.order}{.scope}{.space}.cas.type d, a, b, c", **_SWAPS)
@instruction("atom{.space}.cas.order{.scope}.type d, a, b, c", **_SWAPS)
def compare_and_swap(t: Translator, f: Form) -> None:
    _give_way(t, f)
    b, c = t.read(f.operands["b"], f.type), t.read(f.operands["c"], f.type)
    pointer = _atomic_pointer(t, f)
    pair = f"{{ {b.type}, i1 }}"
    both = t.value(pair, f"cmpxchg {pointer}, {b}, {c} seq_cst seq_cst")
    t.write(f.operands["d"], t.value(b.type, f"extractvalue {both}, 0"))


# ---- order between accesses and hints to caches: nothing to do, memory here is one and in order


@instruction("membar.level", level=("cta", "gl", "sys"))
@instruction("fence{.order}.scope", order=("sc", "acq_rel", "acquire", "release"), scope=SCOPE)
@instruction(
    "fence.proxy.kind",
    kind=("alias", "async", "async.global", "async.shared::cta", "async.shared::cluster"),
)
@instruction("fence.mbarrier_init.release.cluster")
@instruction(
    "prefetch{.space}.level a",
    space=("global", "local"),
    level=("L1", "L2", "L2::evict_last", "L2::evict_normal"),
)
@instruction("prefetchu.L1 a")
@instruction("discard{.global}.L2 a, n")
@instruction("applypriority{.global}.L2::evict_normal a, n")
def nothing(t: Translator, f: Form) -> None:
    pass


@instruction(
    "createpolicy.fractional.kind{.other}.b64 d, fraction?",
    kind=tuple(f"L2::evict_{x}" for x in ("last", "normal", "first", "unchanged")),
    other=("L2::evict_first", "L2::evict_unchanged"),
)
def createpolicy(t: Translator, f: Form) -> None:
    t.write(f.operands["d"], constant("i64", 0))
