"""Warp-wide instructions: shuffles, votes, reductions."""

from harness.ptxcpu.codegen.llvm_ir import IrValue, constant
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.operands import PREDICATE
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime.layout import Collective

TABLE = InstructionTable()

B32 = TYPES["b32"]

SHUFFLES = ("up", "down", "bfly", "idx")
VOTES = ("ballot", "all", "any", "uni")
REDUCTIONS = ("add", "min", "max", "and", "or", "xor")


def _together(
    t: Translator,
    m: MatchedInstruction,
    which: Collective,
    words: list[IrValue],
    results: int,
    argument: int,
) -> list[IrValue]:
    """Let the lanes of the instruction's mask do something together."""
    mask = t.read(m.operands["mask"], B32)
    return t.collective(m.index, which, words, results, mask=mask, argument=argument)


@TABLE.instruction("shfl.sync.way.b32 d, a, b, c, mask", way=SHUFFLES)
def shfl(t: Translator, m: MatchedInstruction) -> None:
    """d = another lane's a; p = whether that lane is inside the segment that c describes."""
    words = [t.read(m.operands[x], B32) for x in ("a", "b", "c")]
    found, valid = _together(t, m, Collective.SHUFFLE, words, 2, SHUFFLES.index(m["way"]))
    t.write_pair(m.operands["d"], found, t.compare("ne", valid, 0))


@TABLE.instruction("vote.sync.kind.type d, p, mask", kind=VOTES, type=("b32", "pred"))
def vote(t: Translator, m: MatchedInstruction) -> None:
    p = t.resize(t.read(m.operands["p"], PREDICATE), "i32")
    (found,) = _together(t, m, Collective.VOTE, [p], 1, VOTES.index(m["kind"]))
    is_ballot = m["kind"] == "ballot"
    t.write(m.operands["d"], found if is_ballot else t.compare("ne", found, 0))


@TABLE.instruction("match.kind.sync.type d, a, mask", kind=("any", "all"), type=("b32", "b64"))
def match(t: Translator, m: MatchedInstruction) -> None:
    """The lanes that hold the same value (any), or all lanes if all do (all)."""
    a = t.resize(t.read(m.operands["a"], m.type), "i64")
    found, same = _together(t, m, Collective.MATCH, t.halves(a), 2, int(m["kind"] == "all"))
    t.write_pair(m.operands["d"], found, t.compare("ne", same, 0))


@TABLE.instruction("redux.sync.op.type d, a, mask", op=REDUCTIONS, type=("s32", "u32", "b32"))
def redux(t: Translator, m: MatchedInstruction) -> None:
    which = REDUCTIONS.index(m["op"]) * 2 + int(m.type.is_signed)
    (found,) = _together(t, m, Collective.REDUCE, [t.read(m.operands["a"], B32)], 1, which)
    t.write(m.operands["d"], found)


@TABLE.instruction("activemask.b32 d")
def activemask(t: Translator, m: MatchedInstruction) -> None:
    """The mask of lanes that arrive here together, which PTX does not specify exactly."""
    (found,) = t.collective(m.index, Collective.ACTIVE, [], results=1, mask=0)
    t.write(m.operands["d"], found)


@TABLE.instruction("elect.sync d, mask")
def elect(t: Translator, m: MatchedInstruction) -> None:
    """The lowest lane of the mask, and whether this is it."""
    mask = t.read(m.operands["mask"], B32)
    t.collective(m.index, Collective.SYNC, [], mask=mask, argument=1)
    leader = t.intrinsic("cttz", mask, constant("i1", 0))
    t.write_pair(m.operands["d"], leader, t.compare("eq", leader, IrValue("%lane", "i32")))
