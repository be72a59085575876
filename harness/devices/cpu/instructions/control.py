"""Branches, barriers, ends, and calls of the two functions that the host provides."""

from __future__ import annotations

from harness.devices.cpu.errors import CannotTranslate
from harness.devices.cpu.forms import Form, instruction
from harness.devices.cpu.ir import FALSE, Value, constant
from harness.devices.cpu.layout import Collective, Fault, State
from harness.devices.cpu.program import call_parts
from harness.devices.cpu.ptx import Address, Instruction, Integer, Symbol
from harness.devices.cpu.translate import PREDICATE, Translator
from harness.devices.cpu.types import TYPES

B32 = TYPES["b32"]


@instruction("bra{.uni} target")
def bra(t: Translator, f: Form) -> None:
    if t.is_backward(f.index, f.operands["target"]):
        t.poll(f.index)
    label, after = t.branch_label(f.operands["target"]), t.new_label()
    guard = f.instruction.guard
    if guard is None:
        t.jump(label)
    else:
        taken = t.read(guard, PREDICATE)
        t.count_branch(f.index, taken)
        t.branch(taken, label, after)
    t.place(after)
    if guard is not None:
        t.count_block(f.index)


@instruction("brx.idx{.uni} index, targets")
def brx(t: Translator, f: Form) -> None:
    """A jump table; an index outside it is the program's mistake."""
    table = f.operands["targets"]
    names = t.kernel.branch_targets.get(table.name) if isinstance(table, Symbol) else None
    if not names:
        raise CannotTranslate("a jump without its table")
    t.poll(f.index)
    index, outside = t.read(f.operands["index"], B32), t.new_label()
    cases = " ".join(f"i32 {i}, label %{t.branch_label(Symbol(n))}" for i, n in enumerate(names))
    t.emit(f"switch {index}, label %{outside} [{cases}]")
    t.place(outside)
    t.stop_unless(FALSE, Fault.TRAP, f.index)


@instruction("ret{.uni}")
@instruction("exit")
def ret(t: Translator, f: Form) -> None:
    t.leave()


@instruction("trap")
@instruction("brkpt")
def trap(t: Translator, f: Form) -> None:
    t.stop_unless(FALSE, Fault.TRAP, f.index)


@instruction("nanosleep.u32 time")
def nanosleep(t: Translator, f: Form) -> None:
    t.suspend(f.index, State.YIELD)


@instruction("pmevent n")
@instruction("setmaxnreg.how.sync.aligned.u32 n", how=("inc", "dec"))
@instruction("griddepcontrol.what", what=("wait", "launch_dependents"))
def nothing(t: Translator, f: Form) -> None:
    pass


# ---- barriers

NO_REDUCTION = -1


def _barrier(t: Translator, f: Form, reduction: int, predicate: Value | int) -> None:
    """Wait at a barrier for all threads of the block, or for as many as are given."""
    number = t.read(f.operands.get("id", Integer(0)), B32)
    count = t.read(f.operands["count"], B32) if "count" in f.operands else constant("i32", 0)
    t.stop_unless(t.compare("ult", number, 16), Fault.BAD_OPERAND, f.index)
    aligned = f.instruction.opcode.startswith("bar.") or bool(f["aligned"])
    t.suspend(
        f.index,
        State.BARRIER,
        barrier=number,
        expected=count,
        aligned=int(aligned),
        collective=reduction,
        parity=predicate,
    )


@instruction("bar{.cta}.sync id, count?")
@instruction("barrier{.cta}.sync{.aligned} id, count?")
def barrier_sync(t: Translator, f: Form) -> None:
    _barrier(t, f, NO_REDUCTION, 0)


@instruction("bar{.cta}.arrive id, count")
@instruction("barrier{.cta}.arrive{.aligned} id, count")
def barrier_arrive(t: Translator, f: Form) -> None:
    number = t.read(f.operands["id"], B32)
    t.stop_unless(t.compare("ult", number, 16), Fault.BAD_OPERAND, f.index)
    t.runtime("void", "rt_arrive", t.resize(number, "i64"))


_REDUCTIONS = {"popc": 0, "and": 1, "or": 2}


def _barrier_reduction(t: Translator, f: Form) -> Value:
    """Every thread brings a predicate; all get the number that hold (or whether all, or any do)."""
    p = t.read(f.operands["p"], PREDICATE)
    kind = _REDUCTIONS[f["op"] or "popc"]
    _barrier(t, f, kind, t.resize(p, "i32"))
    return t.load("i32", t.cell("parity"))


@instruction("bar{.cta}.red.popc.u32 d, id, count_or_p, p?")
@instruction("barrier{.cta}.red.popc{.aligned}.u32 d, id, count_or_p, p?")
def barrier_count(t: Translator, f: Form) -> None:
    t.write(f.operands["d"], _barrier_reduction(t, _with_count(f)))


@instruction("bar{.cta}.red.op.pred d, id, count_or_p, p?", op=("and", "or"))
@instruction("barrier{.cta}.red.op{.aligned}.pred d, id, count_or_p, p?", op=("and", "or"))
def barrier_vote(t: Translator, f: Form) -> None:
    found = _barrier_reduction(t, _with_count(f))
    t.write(f.operands["d"], t.compare("ne", found, 0))


def _with_count(f: Form) -> Form:
    """The number of threads stands before the predicate, if it stands at all."""
    operands = dict(f.operands)
    first = operands.pop("count_or_p")
    operands |= {"count": first} if "p" in operands else {"p": first}
    return Form(f.instruction, f.index, f.modifiers, operands)


@instruction("bar.warp.sync mask")
def warp_sync(t: Translator, f: Form) -> None:
    t.collective(f.index, Collective.SYNC, [], mask=t.read(f.operands["mask"], B32))


# ---- printf and assert


def call_host(t: Translator, index: int, item: Instruction) -> None:
    name, results, arguments = call_parts(item)
    if name == "vprintf":
        if len(arguments) != 2:
            raise CannotTranslate("printf needs a format and its arguments")
        words = [t.load("i64", t.parameter(_argument(x), 8)) for x in arguments]
        t.runtime("void", "rt_print", index, *words)
        if results:
            t.store(constant("i32", 0), t.parameter(_argument(results[0]), 4))
    elif name == "__assertfail":
        t.stop_unless(FALSE, Fault.TRAP, index)
    else:
        raise CannotTranslate(f"a call of {name}")


def _argument(name: str) -> Address:
    return Address(Symbol(name), 0)
