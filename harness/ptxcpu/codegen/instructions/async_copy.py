"""Asynchronous copies and the mbarriers that count them. The runtime (copies.cu) delivers a copy
only when a thread waits for it."""

from harness.ptxcpu.codegen.instructions.memory import PREFETCH, nothing, space
from harness.ptxcpu.codegen.llvm_ir import IrValue, constant
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.operands import PREDICATE
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Integer, Register, Sink
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime.layout import Access, Cause, State

TABLE = InstructionTable()

B32, B64, U32 = TYPES["b32"], TYPES["b64"], TYPES["u32"]

SHARED = ("shared", "shared::cta")
CLUSTER = ("shared", "shared::cta", "shared::cluster")
HINT = ("L2::cache_hint",)


# ---- cp.async: 4, 8 or 16 bytes per thread, in groups


@TABLE.instruction(
    "cp.async.cache.to.global{.hint}{.prefetch} d, a, size, rest?, policy?",
    cache=("ca", "cg"),
    to=SHARED,
    hint=HINT,
    prefetch=PREFETCH,
)
def cp_async(t: Translator, m: MatchedInstruction) -> None:
    """`rest` is how many bytes are read (the others become 0), or a predicate to read none."""
    size = m.operands["size"]
    if not isinstance(size, Integer) or size.value not in (4, 8, 16):
        raise CannotTranslate("a copy of 4, 8 or 16 bytes is needed")
    copied: IrValue | int = size.value
    rest = m.operands.get("rest")
    is_policy = bool(m["hint"]) and "policy" not in m.operands
    if rest is not None and not is_policy:
        if isinstance(rest, Register) and t.kernel.registers[rest.name] is PREDICATE:
            ignore = t.read(rest, PREDICATE)
            copied = t.select(ignore, constant("i64", 0), size.value)
        else:
            copied = t.resize(t.read(rest, U32), "i64")
    to, from_ = t.generic(m.operands["d"], "shared"), t.generic(m.operands["a"], "global")
    t.must("rt_copy", m.index, to, from_, size.value, copied, int(m["cache"] == "cg"))


@TABLE.instruction("cp.async.commit_group")
def cp_async_commit(t: Translator, m: MatchedInstruction) -> None:
    t.tell("rt_copy_commit")


@TABLE.instruction("cp.async.wait_group n")
def cp_async_wait(t: Translator, m: MatchedInstruction) -> None:
    t.tell("rt_copy_wait", t.resize(t.read(m.operands["n"], U32), "i64"))


@TABLE.instruction("cp.async.wait_all")
def cp_async_wait_all(t: Translator, m: MatchedInstruction) -> None:
    t.tell("rt_copy_wait", -1)


# ---- mbarrier


@TABLE.instruction("mbarrier.init{.space}.b64 a, count", space=SHARED)
def mbarrier_init(t: Translator, m: MatchedInstruction) -> None:
    count = t.resize(t.read(m.operands["count"], U32), "i64")
    in_range = t.compare("ult", t.op("sub", count, 1), (1 << 20) - 1)
    t.stop_unless(in_range, Cause.BAD_OPERAND, m.index)
    t.must("rt_mbarrier_init", m.index, t.generic(m.operands["a"], space(m)), count)


TABLE.instruction("mbarrier.inval{.space}.b64 a", space=SHARED)(nothing)


_ARRIVE = "{.order}{.scope}{.space}.b64"
_ARRIVE_CHOICES = {"order": ("release", "relaxed"), "scope": ("cta", "cluster"), "space": CLUSTER}


def _arrive(
    t: Translator, m: MatchedInstruction, count: IrValue | int, expected: IrValue | int, drop: bool
) -> None:
    where, dropped = t.generic(m.operands["a"], space(m)), count if drop else 0
    order = 0 if m["order"] == "relaxed" else int(Access.RELEASE)
    reach = _reach(m["space"])
    before = t.ask(
        "i64", "rt_mbarrier_arrive", m.index, where, count, expected, dropped, reach | order
    )
    if "d" in m.operands and not isinstance(m.operands["d"], Sink):
        if m["space"] == "shared::cluster":
            raise CannotTranslate("the state of an mbarrier that may be another block's")
        t.write(m.operands["d"], before)


def _reach(state_space: str) -> int:
    """Return the memory that an access by this state space must not leave."""
    return 0 if state_space == "shared::cluster" else int(Access.OWN)


@TABLE.instruction(
    f"mbarrier.how{_ARRIVE} d, a, n?", how=("arrive", "arrive_drop"), **_ARRIVE_CHOICES
)
@TABLE.instruction(f"mbarrier.how.noComplete{_ARRIVE} d, a, n", how=("arrive",), **_ARRIVE_CHOICES)
def mbarrier_arrive(t: Translator, m: MatchedInstruction) -> None:
    count = t.resize(t.read(m.operands.get("n", Integer(1)), U32), "i64")
    _arrive(t, m, count, 0, drop=m["how"] == "arrive_drop")


@TABLE.instruction(
    f"mbarrier.how.expect_tx{_ARRIVE} d, a, n", how=("arrive", "arrive_drop"), **_ARRIVE_CHOICES
)
def mbarrier_arrive_expect(t: Translator, m: MatchedInstruction) -> None:
    expected = t.resize(t.read(m.operands["n"], U32), "i64")
    _arrive(t, m, 1, expected, drop=m["how"] == "arrive_drop")


@TABLE.instruction(
    "mbarrier.how{.order}{.scope}{.space}.b64 a, n",
    how=("expect_tx", "complete_tx"),
    order=("relaxed",),
    scope=("cta", "cluster"),
    space=CLUSTER,
)
def mbarrier_transaction(t: Translator, m: MatchedInstruction) -> None:
    n = t.resize(t.read(m.operands["n"], U32), "i64")
    expected = n if m["how"] == "expect_tx" else t.negate(n)
    _arrive(t, m, 0, expected, drop=False)


_WAIT_CHOICES = {
    "how": ("test_wait", "try_wait"),
    "order": ("acquire", "relaxed"),
    "scope": ("cta", "cluster"),
    "space": SHARED,
}


@TABLE.instruction("mbarrier.how{.order}{.scope}{.space}.b64 p, a, state, time?", **_WAIT_CHOICES)
@TABLE.instruction(
    "mbarrier.how.parity{.order}{.scope}{.space}.b64 p, a, state, time?",
    **_WAIT_CHOICES,
)
def mbarrier_wait(t: Translator, m: MatchedInstruction) -> None:
    """test_wait tests once; try_wait waits until the phase is complete."""
    if m["how"] == "test_wait":
        t.suspend(m.index, State.YIELD)
    where = t.generic(m.operands["a"], space(m))
    if ".parity" in m.instruction.opcode:
        parity = t.op("and", t.read(m.operands["state"], B32), 1)
    else:
        state = t.read(m.operands["state"], B64)
        parity = t.resize(t.op("lshr", state, 63), "i32")
    order = 0 if m["order"] == "relaxed" else int(Access.ACQUIRE)
    if m["how"] == "test_wait":
        over = t.ask("i64", "rt_mbarrier_over", m.index, where, t.resize(parity, "i64"), order)
        t.write(m.operands["p"], t.compare("ne", over, 0))
    else:
        parity = t.op("or", parity, order)
        t.suspend(m.index, State.MBARRIER, argument=where, parity=parity)
        t.write(m.operands["p"], constant("i1", 1))


@TABLE.instruction("cp.async.mbarrier.arrive{.noinc}{.space}.b64 a", space=SHARED)
def cp_async_arrive(t: Translator, m: MatchedInstruction) -> None:
    """Arrive when this thread's copies have arrived. Without noinc the mbarrier first expects one
    more arrival, so that the two cancel out."""
    t.tell("rt_copy_arrive", t.generic(m.operands["a"], space(m)))
    _arrive(t, m, int(bool(m["noinc"])), 0, drop=False)


# ---- cp.async.bulk: any multiple of 16 bytes, one-dimensional


_BULK_LOAD = "cp.async.bulk.to.from.mbarrier::complete_tx::bytes"


@TABLE.instruction(
    f"{_BULK_LOAD}{{.hint}} d, a, size, barrier, policy?",
    **{"to": ("shared::cluster", "shared::cta"), "from": ("global",), "hint": HINT},
)
@TABLE.instruction(
    f"{_BULK_LOAD} d, a, size, barrier", **{"to": ("shared::cluster",), "from": ("shared::cta",)}
)
def bulk_load(t: Translator, m: MatchedInstruction) -> None:
    to, from_, size, barrier = _bulk(t, m)
    t.must("rt_bulk", m.index, to, from_, size, barrier, _reach(m["to"]))


@TABLE.instruction(
    f"{_BULK_LOAD}.multicast::cluster{{.hint}} d, a, size, barrier, mask, policy?",
    **{"to": ("shared::cluster",), "from": ("global",), "hint": HINT},
)
def bulk_multicast(t: Translator, m: MatchedInstruction) -> None:
    """Copy to the same offset in each block whose bit in the mask is set."""
    mask = t.resize(t.read(m.operands["mask"], TYPES["b16"]), "i64")
    t.must("rt_bulk_multicast", m.index, *_bulk(t, m), mask)


def _bulk(t: Translator, m: MatchedInstruction) -> tuple[IrValue, IrValue, IrValue, IrValue]:
    """Start a copy: its destination, source, size, and the mbarrier that counts it."""
    return (
        t.generic(m.operands["d"], "shared"),
        t.generic(m.operands["a"], m["from"].split("::")[0]),
        t.resize(t.read(m.operands["size"], U32), "i64"),
        t.generic(m.operands["barrier"], "shared"),
    )


@TABLE.instruction(
    "cp.async.bulk.global.shared::cta.bulk_group{.hint} d, a, size, policy?", hint=HINT
)
def bulk_store(t: Translator, m: MatchedInstruction) -> None:
    to, from_ = t.generic(m.operands["d"], "global"), t.generic(m.operands["a"], "shared")
    size = t.resize(t.read(m.operands["size"], U32), "i64")
    t.must("rt_bulk", m.index, to, from_, size, 0, 0)


@TABLE.instruction("cp.async.bulk.commit_group")
def bulk_commit(t: Translator, m: MatchedInstruction) -> None:
    t.tell("rt_bulk_commit")


@TABLE.instruction("cp.async.bulk.wait_group{.read} n")
def bulk_wait(t: Translator, m: MatchedInstruction) -> None:
    t.tell("rt_bulk_wait", t.resize(t.read(m.operands["n"], U32), "i64"))


TABLE.instruction("cp.async.bulk.prefetch.L2.global{.hint} a, size, policy?", hint=HINT)(nothing)
