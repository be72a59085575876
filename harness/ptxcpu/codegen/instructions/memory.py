"""Loads, stores and atomic operations."""

from collections.abc import Sequence

from harness.ptxcpu.codegen.llvm_ir import IrValue, constant, llvm_type
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.operands import MemoryAccess
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Operand, Register, Sink, elements
from harness.ptxcpu.ptx.types import Type
from harness.ptxcpu.runtime.layout import Access, State

TABLE = InstructionTable()

SCALARS = (*(f"{k}{n}" for k in "bus" for n in (8, 16, 32, 64)), "f32", "f64", "b128")
SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "const",
    "param",
    "param::entry",
    "param::func",
)
VECTOR = ("v2", "v4", "v8")

# Cache hints and memory orders are ignored: accesses here are sequentially consistent anyway.
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


def space(m: MatchedInstruction) -> str:
    """Return the short form of a state space: `shared` for `shared::cta`."""
    return m["space"] if m["space"] == "shared::cluster" else m["space"].split("::")[0]


def is_volatile(m: MatchedInstruction) -> bool:
    return m["order"] not in ("", "weak")


def order_of(m: MatchedInstruction) -> Access:
    """The order and the scope of a strong access."""
    is_atomic = m.instruction.opcode.startswith(("atom", "red"))
    scope = m["scope"] or ("gpu" if m["order"] == "volatile" or is_atomic else "cta")
    return _ORDERS.get(m["order"], Access.READ) | _SCOPES.get(scope, Access.READ)


_SCOPES = {
    "cluster": Access.CLUSTER_SCOPE,
    "gpu": Access.GPU_SCOPE,
    "sys": Access.GPU_SCOPE,
}
_ORDERS = {
    "acquire": Access.ACQUIRE,
    "release": Access.RELEASE,
    "acq_rel": Access.ACQUIRE | Access.RELEASE,
}


def _shape(
    t: Translator, m: MatchedInstruction, operand: Operand
) -> tuple[tuple[Operand, ...], Type, str, int]:
    """The registers, the element type, the LLVM type of all together and their bytes."""
    items, type_ = elements(operand), m.type
    if len(items) != int((m["vec"] or "v1")[1:]):
        raise CannotTranslate("a vector of another length is needed")
    whole = f"<{len(items)} x {llvm_type(type_)}>" if len(items) > 1 else llvm_type(type_)
    return items, type_, whole, type_.bytes * len(items)


def _give_way(t: Translator, m: MatchedInstruction) -> None:
    """Yield in a loop that polls memory; the scheduler decides whether other threads run then.

    Elsewhere a thread continues. If threads took turns at each load, they would run in step, which
    hides missing barriers.
    """
    loaded = {x.name for x in elements(m.operands["d"]) if isinstance(x, Register)}
    if t.is_in_loop(m.index) and not loaded.isdisjoint(t.deciding_registers):
        t.suspend(m.index, State.YIELD, phase=3)


def _alignment(m: MatchedInstruction, type_: Type) -> str:
    """Return the alignment that the host may assume: NumPy aligns arrays to their elements only."""
    return f", align {type_.bytes if space(m) in ('global', '', 'const') else min(16, type_.bytes)}"


def _unused_quarters(is_unused: Sequence[bool]) -> Access:
    """Return a bit for each quarter of a vector whose elements are unused."""
    n = len(is_unused)
    quarters = [is_unused[i * n // 4 : -(-(i + 1) * n // 4)] for i in range(4)]
    return Access(sum(Access.UNUSED << i for i, each in enumerate(quarters) if all(each)))


@TABLE.instruction(f"ld{_HINTS} d, a, policy?", **_CHOICES)
@TABLE.instruction("ldu{.space}{.vec}.type d, a", space=SPACES, vec=VECTOR, type=SCALARS)
def ld(t: Translator, m: MatchedInstruction) -> None:
    items, type_, whole, n = _shape(t, m, m.operands["d"])
    address = t.address(m.operands["a"])
    if space(m) == "param":
        pointer = t.parameter(address, n)
    else:
        if is_volatile(m):
            _give_way(t, m)
        access = (Access.STRONG if is_volatile(m) else Access.READ) | order_of(m)
        if m["nc"]:
            access |= Access.READ_ONLY
        each = MemoryAccess(m.index, type_.bytes, access)
        unchecked = [
            isinstance(item, Sink) or t.is_checked_later(space(m), address, i, each)
            for i, item in enumerate(items)
        ]
        checked = MemoryAccess(m.index, n, access | _unused_quarters(unchecked))
        pointer = t.pointer(space(m), address, checked)
    tail = f", {pointer}{_alignment(m, type_)}"
    loaded = t.value(whole, f"load {'volatile ' if is_volatile(m) else ''}{whole}{tail}")
    for i, item in enumerate(items):
        x = t.extract(loaded, llvm_type(type_), i) if len(items) > 1 else loaded
        t.write(item, x, type_.is_signed)


@TABLE.instruction(f"st{_HINTS} a, b, policy?", **_CHOICES)
def st(t: Translator, m: MatchedInstruction) -> None:
    items, type_, whole, n = _shape(t, m, m.operands["b"])
    address = t.address(m.operands["a"])
    stored = IrValue("poison", whole)
    for i, item in enumerate(items):
        x = t.read(item, type_)
        stored = t.insert(stored, x, i) if len(items) > 1 else x
    if space(m) == "param":
        pointer = t.parameter(address, n)
    else:
        access = Access.WRITE | (Access.STRONG if is_volatile(m) else Access.READ) | order_of(m)
        pointer = t.pointer(space(m), address, MemoryAccess(m.index, n, access))
    volatile = "volatile " if is_volatile(m) else ""
    t.emit(f"store {volatile}{stored}, {pointer}{_alignment(m, type_)}")


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
    "space": ("global", "shared", "shared::cta", "shared::cluster"),
    "op": tuple(_ATOMIC),
    "l2": ("L2::cache_hint",),
    "type": ("b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"),
}
_HALVES = _ATOMIC_CHOICES | {"op": ("add",), "type": ("f16", "f16x2")}
_SWAPS = _ATOMIC_CHOICES | {"type": ("b16", "b32", "u32", "s32", "b64", "u64", "s64")}


def _operation(m: MatchedInstruction) -> str:
    op = _ATOMIC[m["op"]]
    if m.type.is_float:
        if op != "add":
            raise CannotTranslate(f"an atomic {m['op']} of .{m.type.name}")
        return "fadd"
    return "u" + op if op in ("min", "max") and not m.type.is_signed else op


def _atomic_pointer(t: Translator, m: MatchedInstruction, n: int) -> IrValue:
    access = Access.WRITE | Access.ATOMIC | order_of(m)
    results = elements(m.operands["d"]) if "d" in m.operands else ()
    if not any(isinstance(x, Register) and x.name in t.read_registers for x in results):
        access |= Access.RESULT_UNUSED
    return t.pointer(space(m), t.address(m.operands["a"]), MemoryAccess(m.index, n, access))


def _modify(t: Translator, m: MatchedInstruction) -> list[IrValue]:
    """Modify neighbouring elements (atomic each, not all together), and return the old ones."""
    items, type_, _, n = _shape(t, m, m.operands["b"])
    if n > 16:
        raise CannotTranslate(f"an atomic access of {n} bytes")
    given = [t.read(item, type_) for item in items]
    first = _atomic_pointer(t, m, n)
    places = [t.offset(first, i * type_.bytes) if i else first for i in range(len(items))]
    if type_.name == "f32" and not space(m).startswith("shared"):
        address = t.address_value(t.address(m.operands["a"]))
        terms = [t.bitcast(b, "i32") for b in given]
        olds = [
            t.ask("i32", "rt_add_flushed", address, *each)
            for each in zip(places, terms, strict=True)
        ]
        return [t.bitcast(old, "float") for old in olds]
    return [
        t.value(b.type, f"atomicrmw {_operation(m)} {place}, {b} seq_cst")
        for b, place in zip(given, places, strict=True)
    ]


_VECTORS = _HALVES | {"space": ("global",), "vec": VECTOR, "type": ("f32", "f16", "f16x2")}


@TABLE.instruction("atom{.order}{.scope}{.space}.op{.l2}.type d, a, b, policy?", **_ATOMIC_CHOICES)
@TABLE.instruction("atom{.order}{.scope}{.space}.op.noftz{.l2}.type d, a, b, policy?", **_HALVES)
@TABLE.instruction(
    "atom{.order}{.scope}{.space}.op{.noftz}{.l2}.vec.type d, a, b, policy?", **_VECTORS
)
def atom(t: Translator, m: MatchedInstruction) -> None:
    _give_way(t, m)
    items, olds = elements(m.operands["d"]), _modify(t, m)
    if len(items) != len(olds):
        raise CannotTranslate("a vector of another length is needed")
    for item, old in zip(items, olds, strict=True):
        t.write(item, old)


@TABLE.instruction("red{.order}{.scope}{.space}.op{.l2}.type a, b, policy?", **_ATOMIC_CHOICES)
@TABLE.instruction("red{.order}{.scope}{.space}.op.noftz{.l2}.type a, b, policy?", **_HALVES)
@TABLE.instruction("red{.order}{.scope}{.space}.op{.noftz}{.l2}.vec.type a, b, policy?", **_VECTORS)
def red(t: Translator, m: MatchedInstruction) -> None:
    _modify(t, m)


@TABLE.instruction("atom{.order}{.scope}{.space}.cas.type d, a, b, c", **_SWAPS)
def compare_and_swap(t: Translator, m: MatchedInstruction) -> None:
    _give_way(t, m)
    b, c = t.read(m.operands["b"], m.type), t.read(m.operands["c"], m.type)
    pointer = _atomic_pointer(t, m, m.type.bytes)
    pair = f"{{ {b.type}, i1 }}"
    both = t.value(pair, f"cmpxchg {pointer}, {b}, {c} seq_cst seq_cst")
    t.write(m.operands["d"], t.value(b.type, f"extractvalue {both}, 0"))


# ---- order between accesses and hints to caches: little to do, memory here is one and in order


_ACQUIRES, _RELEASES = 1, 2
_REACHES = {"cta": 0, "cluster": 1, "gpu": 2, "gl": 2, "sys": 2}


@TABLE.instruction("membar.scope", scope=("cta", "gl", "sys"))
@TABLE.instruction(
    "fence{.order}.scope", order=("sc", "acq_rel", "release", "acquire"), scope=SCOPE
)
def fence(t: Translator, m: MatchedInstruction) -> None:
    how = {"acquire": _ACQUIRES, "release": _RELEASES}.get(m["order"], _ACQUIRES | _RELEASES)
    t.fence("rt_fence", how, _REACHES[m["scope"]])


@TABLE.instruction("fence.mbarrier_init.release.cluster")
def fence_of_initialisation(t: Translator, m: MatchedInstruction) -> None:
    t.fence("rt_fence_init")


@TABLE.instruction("fence.proxy.kind", kind=("async", "async.shared::cta", "async.shared::cluster"))
def fence_of_proxies(t: Translator, m: MatchedInstruction) -> None:
    t.fence("rt_fence_proxy")


@TABLE.instruction("fence.proxy.kind", kind=("alias", "async.global"))
@TABLE.instruction(
    "prefetch{.space}.level a",
    space=("global", "local"),
    level=("L1", "L2", "L2::evict_last", "L2::evict_normal"),
)
@TABLE.instruction("prefetchu.L1 a")
@TABLE.instruction("discard{.global}.L2 a, n")
@TABLE.instruction("applypriority{.global}.L2::evict_normal a, n")
def nothing(t: Translator, m: MatchedInstruction) -> None:
    """Emit no code, for an instruction that has no effect here."""


@TABLE.instruction(
    "createpolicy.fractional.kind{.other}.b64 d, fraction?",
    kind=tuple(f"L2::evict_{x}" for x in ("last", "normal", "first", "unchanged")),
    other=("L2::evict_first", "L2::evict_unchanged"),
)
def createpolicy(t: Translator, m: MatchedInstruction) -> None:
    t.write(m.operands["d"], constant("i64", 0))
