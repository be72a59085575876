"""Branches, barriers, ends, and calls of the two functions that the host provides."""

from dataclasses import replace

from harness.ptxcpu.codegen.instructions.memory import nothing
from harness.ptxcpu.codegen.llvm_ir import FALSE, IrValue, constant
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.operands import PREDICATE
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Integer, Symbol
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime.layout import Cause, Collective, State

TABLE = InstructionTable()

B32 = TYPES["b32"]


@TABLE.instruction("bra{.uni} target")
def bra(t: Translator, m: MatchedInstruction) -> None:
    if t.is_backward(m.index, m.operands["target"]):
        t.poll(m.index)
    label, after = t.branch_label(m.operands["target"]), t.new_label()
    guard = m.instruction.guard
    if guard is None:
        t.jump(label)
        t.place(after)
    else:
        taken = t.read(guard, PREDICATE)
        t.count_branch(m.index, taken)
        t.branch(taken, label, after)
        t.continue_at(after)
        t.count_block(m.index)


@TABLE.instruction("brx.idx{.uni} index, targets")
def brx(t: Translator, m: MatchedInstruction) -> None:
    """A jump by a table; an index outside the table is a fault of the program."""
    table = m.operands["targets"]
    names = t.kernel.branch_targets.get(table.name) if isinstance(table, Symbol) else None
    if not names:
        raise CannotTranslate("a jump without its table")
    t.poll(m.index)
    index, outside = t.read(m.operands["index"], B32), t.new_label()
    cases = " ".join(f"i32 {i}, label %{t.branch_label(Symbol(n))}" for i, n in enumerate(names))
    t.emit(f"switch {index}, label %{outside} [{cases}]")
    t.place(outside)
    t.stop_unless(FALSE, Cause.TRAP, m.index)


@TABLE.instruction("ret{.uni}")
@TABLE.instruction("exit")
def ret(t: Translator, m: MatchedInstruction) -> None:
    t.leave()


@TABLE.instruction("trap")
@TABLE.instruction("brkpt")
def trap(t: Translator, m: MatchedInstruction) -> None:
    t.stop_unless(FALSE, Cause.TRAP, m.index)


@TABLE.instruction("nanosleep.u32 time")
def nanosleep(t: Translator, m: MatchedInstruction) -> None:
    t.suspend(m.index, State.YIELD)


TABLE.instruction("pmevent n")(nothing)
TABLE.instruction("setmaxnreg.how.sync.aligned.u32 n", how=("inc", "dec"))(nothing)
TABLE.instruction("griddepcontrol.what", what=("wait", "launch_dependents"))(nothing)


# ---- barriers

NO_REDUCTION = -1


def _barrier(
    t: Translator, m: MatchedInstruction, reduction: int, predicate: IrValue | int
) -> None:
    """Wait at a barrier for all threads of the block, or for as many as are given."""
    number = t.read(m.operands.get("id", Integer(0)), B32)
    count = t.read(m.operands["count"], B32) if "count" in m.operands else constant("i32", 0)
    t.stop_unless(t.compare("ult", number, 16), Cause.BAD_OPERAND, m.index)
    aligned = m.instruction.opcode.startswith("bar.") or bool(m["aligned"])
    t.suspend(
        m.index,
        State.BARRIER,
        barrier=number,
        expected=count,
        aligned=int(aligned),
        collective=reduction,
        parity=predicate,
    )


@TABLE.instruction("bar{.cta}.sync id, count?")
@TABLE.instruction("barrier{.cta}.sync{.aligned} id, count?")
def barrier_sync(t: Translator, m: MatchedInstruction) -> None:
    _barrier(t, m, NO_REDUCTION, 0)


@TABLE.instruction("bar{.cta}.arrive id, count")
@TABLE.instruction("barrier{.cta}.arrive{.aligned} id, count")
def barrier_arrive(t: Translator, m: MatchedInstruction) -> None:
    number = t.read(m.operands["id"], B32)
    t.stop_unless(t.compare("ult", number, 16), Cause.BAD_OPERAND, m.index)
    count = t.read(m.operands["count"], B32)
    t.must("rt_arrive", m.index, t.resize(number, "i64"), t.resize(count, "i64"))


_REDUCTIONS = {"popc": 0, "and": 1, "or": 2}


@TABLE.instruction("bar{.cta}.red.op.u32 d, id, count_or_p, p?", op=("popc",))
@TABLE.instruction("barrier{.cta}.red.op{.aligned}.u32 d, id, count_or_p, p?", op=("popc",))
@TABLE.instruction("bar{.cta}.red.op.pred d, id, count_or_p, p?", op=("and", "or"))
@TABLE.instruction("barrier{.cta}.red.op{.aligned}.pred d, id, count_or_p, p?", op=("and", "or"))
def barrier_reduction(t: Translator, m: MatchedInstruction) -> None:
    """Combine one predicate per thread: the number that are true, or whether all or any are. An
    optional number of threads comes before the predicate."""
    operands = dict(m.operands)
    first = operands.pop("count_or_p")
    operands |= {"count": first} if "p" in operands else {"p": first}
    p = t.read(operands["p"], PREDICATE)
    _barrier(t, replace(m, operands=operands), _REDUCTIONS[m["op"]], t.resize(p, "i32"))
    found = t.load("i32", t.cell("parity"))
    t.write(m.operands["d"], found if m["op"] == "popc" else t.compare("ne", found, 0))


@TABLE.instruction("bar.warp.sync mask")
def warp_sync(t: Translator, m: MatchedInstruction) -> None:
    t.collective(m.index, Collective.SYNC, [], mask=t.read(m.operands["mask"], B32))
