"""Asynchronous copies and the mbarriers that count them. The runtime (copies.cu) delivers a copy
no sooner than somebody waits for it."""

from __future__ import annotations

from harness.devices.cpu.errors import CannotTranslate
from harness.devices.cpu.forms import Form, instruction
from harness.devices.cpu.instructions.memory import PREFETCH, space
from harness.devices.cpu.ir import Value, constant
from harness.devices.cpu.layout import Access, Fault, State
from harness.devices.cpu.ptx import Integer, Operand, Register, Sink
from harness.devices.cpu.translate import PREDICATE, Touch, Translator
from harness.devices.cpu.types import TYPES

B32, B64, U32 = TYPES["b32"], TYPES["b64"], TYPES["u32"]

SHARED = ("shared", "shared::cta")
CLUSTER = ("shared", "shared::cta", "shared::cluster")
HINT = ("L2::cache_hint",)


def _address(t: Translator, operand: Operand, state_space: str) -> Value:
    """A generic address."""
    where = t.address_value(t.address(operand))
    return t.op("add", where, t.window_base(state_space))


def _ask(t: Translator, f: Form, name: str, *arguments: Value | int) -> Value:
    """Call the runtime; 0 means that it has noted a fault."""
    result = t.runtime("i64", name, f.index, *arguments)
    assert result is not None
    return result


def _must(t: Translator, f: Form, name: str, *arguments: Value | int) -> None:
    """Call the runtime, and leave where it has noted a fault."""
    t.leave_unless(t.compare("ne", _ask(t, f, name, *arguments), 0))


# ---- cp.async: 4, 8 or 16 bytes a thread, in groups


@instruction(
    "cp.async.cache.to.global{.hint}{.prefetch} d, a, size, rest?, policy?",
    cache=("ca", "cg"),
    to=SHARED,
    hint=HINT,
    prefetch=PREFETCH,
)
def cp_async(t: Translator, f: Form) -> None:
    """`rest` is how many bytes are read (the others become 0), or a predicate to read none."""
    size = f.operands["size"]
    if not isinstance(size, Integer) or size.value not in (4, 8, 16):
        raise CannotTranslate("a copy of 4, 8 or 16 bytes is needed")
    copied: Value | int = size.value
    rest = f.operands.get("rest")
    is_policy = bool(f["hint"]) and "policy" not in f.operands
    if rest is not None and not is_policy:
        if isinstance(rest, Register) and t.kernel.registers[rest.name] is PREDICATE:
            ignore = t.read(rest, PREDICATE)
            copied = t.select(ignore, constant("i64", 0), size.value)
        else:
            copied = t.resize(t.read(rest, U32), "i64")
    to, from_ = _address(t, f.operands["d"], "shared"), _address(t, f.operands["a"], "global")
    t.count_access("", to, Touch(f.index, size.value, Access.WRITE), phase=0)
    t.count_access("", from_, Touch(f.index, size.value, Access.READ))
    _must(t, f, "rt_copy", to, from_, size.value, copied)


@instruction("cp.async.commit_group")
def cp_async_commit(t: Translator, f: Form) -> None:
    t.runtime("void", "rt_copy_commit")


@instruction("cp.async.wait_group n")
def cp_async_wait(t: Translator, f: Form) -> None:
    t.runtime("void", "rt_copy_wait", t.resize(t.read(f.operands["n"], U32), "i64"))


@instruction("cp.async.wait_all")
def cp_async_wait_all(t: Translator, f: Form) -> None:
    t.runtime("void", "rt_copy_wait", -1)


# ---- mbarrier


@instruction("mbarrier.init{.space}.b64 a, count", space=SHARED)
def mbarrier_init(t: Translator, f: Form) -> None:
    count = t.resize(t.read(f.operands["count"], U32), "i64")
    in_range = t.compare("ult", t.op("sub", count, 1), (1 << 20) - 1)
    t.stop_unless(in_range, Fault.BAD_OPERAND, f.index)
    _must(t, f, "rt_mbarrier_init", _address(t, f.operands["a"], space(f)), count)


@instruction("mbarrier.inval{.space}.b64 a", space=SHARED)
def mbarrier_invalidate(t: Translator, f: Form) -> None:
    pass


_ARRIVE = "{.order}{.scope}{.space}.b64"
_ARRIVE_CHOICES = {"order": ("release", "relaxed"), "scope": ("cta", "cluster"), "space": CLUSTER}


def _arrive(t: Translator, f: Form, count: Value | int, expected: Value | int, drop: bool) -> None:
    where = _address(t, f.operands["a"], space(f))
    before = _ask(t, f, "rt_mbarrier_arrive", where, count, expected, count if drop else 0)
    if "d" in f.operands and not isinstance(f.operands["d"], Sink):
        t.write(f.operands["d"], before)


@instruction(f"mbarrier.how{_ARRIVE} d, a, n?", how=("arrive", "arrive_drop"), **_ARRIVE_CHOICES)
@instruction(f"mbarrier.how.noComplete{_ARRIVE} d, a, n", how=("arrive",), **_ARRIVE_CHOICES)
def mbarrier_arrive(t: Translator, f: Form) -> None:
    count = t.resize(t.read(f.operands.get("n", Integer(1)), U32), "i64")
    _arrive(t, f, count, 0, drop=f["how"] == "arrive_drop")


@instruction(
    f"mbarrier.how.expect_tx{_ARRIVE} d, a, n", how=("arrive", "arrive_drop"), **_ARRIVE_CHOICES
)
def mbarrier_arrive_expect(t: Translator, f: Form) -> None:
    expected = t.resize(t.read(f.operands["n"], U32), "i64")
    _arrive(t, f, 1, expected, drop=f["how"] == "arrive_drop")


@instruction(
    "mbarrier.how{.order}{.scope}{.space}.b64 a, n",
    how=("expect_tx", "complete_tx"),
    order=("relaxed",),
    scope=("cta", "cluster"),
    space=CLUSTER,
)
def mbarrier_transaction(t: Translator, f: Form) -> None:
    n = t.resize(t.read(f.operands["n"], U32), "i64")
    expected = n if f["how"] == "expect_tx" else t.negate(n)
    _arrive(t, f, 0, expected, drop=False)


_WAIT_CHOICES = {
    "how": ("test_wait", "try_wait"),
    "order": ("acquire", "relaxed"),
    "scope": ("cta", "cluster"),
    "space": SHARED,
}


@instruction("mbarrier.how{.order}{.scope}{.space}.b64 p, a, state, time?", **_WAIT_CHOICES)
@instruction(
    "mbarrier.how.parity{.order}{.scope}{.space}.b64 p, a, state, time?",
    **_WAIT_CHOICES,
)
def mbarrier_wait(t: Translator, f: Form) -> None:
    """test_wait looks once; try_wait waits until the phase is over."""
    where = _address(t, f.operands["a"], space(f))
    if ".parity" in f.instruction.opcode:
        parity = t.op("and", t.read(f.operands["state"], B32), 1)
    else:
        state = t.read(f.operands["state"], B64)
        parity = t.resize(t.op("lshr", state, 63), "i32")
    if f["how"] == "test_wait":
        t.suspend(f.index, State.YIELD)
        over = _ask(t, f, "rt_mbarrier_over", where, t.resize(parity, "i64"))
        t.write(f.operands["p"], t.compare("ne", over, 0))
    else:
        t.suspend(f.index, State.MBARRIER, argument=where, parity=parity)
        t.write(f.operands["p"], constant("i1", 1))


@instruction("cp.async.mbarrier.arrive{.noinc}{.space}.b64 a", space=SHARED)
def cp_async_arrive(t: Translator, f: Form) -> None:
    """An arrival when this thread's copies are there. Without noinc the barrier first expects one
    arrival more, so that the two cancel out."""
    t.runtime("void", "rt_copy_wait", -1)
    if f["noinc"]:
        _arrive(t, f, 1, 0, drop=False)


# ---- cp.async.bulk: any multiple of 16 bytes, one-dimensional


@instruction(
    "cp.async.bulk.to.global.mbarrier::complete_tx::bytes{.hint} d, a, size, barrier, policy?",
    to=("shared::cluster", "shared::cta"),
    hint=HINT,
)
def bulk_load(t: Translator, f: Form) -> None:
    to, from_ = _address(t, f.operands["d"], "shared"), _address(t, f.operands["a"], "global")
    size = t.resize(t.read(f.operands["size"], U32), "i64")
    barrier = _address(t, f.operands["barrier"], "shared")
    _must(t, f, "rt_bulk", to, from_, size, barrier)


@instruction("cp.async.bulk.global.shared::cta.bulk_group{.hint} d, a, size, policy?", hint=HINT)
def bulk_store(t: Translator, f: Form) -> None:
    to, from_ = _address(t, f.operands["d"], "global"), _address(t, f.operands["a"], "shared")
    size = t.resize(t.read(f.operands["size"], U32), "i64")
    _must(t, f, "rt_bulk", to, from_, size, 0)


@instruction("cp.async.bulk.commit_group")
def bulk_commit(t: Translator, f: Form) -> None:
    t.runtime("void", "rt_bulk_commit")


@instruction("cp.async.bulk.wait_group{.read} n")
def bulk_wait(t: Translator, f: Form) -> None:
    t.runtime("void", "rt_bulk_wait", t.resize(t.read(f.operands["n"], U32), "i64"))


@instruction("cp.async.bulk.prefetch.L2.global{.hint} a, size, policy?", hint=HINT)
def bulk_prefetch(t: Translator, f: Form) -> None:
    pass
