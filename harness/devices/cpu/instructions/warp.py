"""What the lanes of a warp do together: shuffles, votes, reductions."""

from __future__ import annotations

from harness.devices.cpu.forms import Form, instruction
from harness.devices.cpu.ir import Value, constant
from harness.devices.cpu.layout import Collective
from harness.devices.cpu.ptx import Operand
from harness.devices.cpu.translate import PREDICATE, Translator
from harness.devices.cpu.types import TYPES

B32 = TYPES["b32"]

SHUFFLES = ("up", "down", "bfly", "idx")
VOTES = ("ballot", "all", "any", "uni")
REDUCTIONS = ("add", "min", "max", "and", "or", "xor")


def _mask(t: Translator, operand: Operand) -> Value:
    return t.read(operand, B32)


@instruction("shfl.sync.way.b32 d, a, b, c, mask", way=SHUFFLES)
def shfl(t: Translator, f: Form) -> None:
    """d = another lane's a; p = whether that lane is inside the segment that c describes."""
    words = [t.read(f.operands[x], B32) for x in ("a", "b", "c")]
    found, valid = t.collective(
        f.index,
        Collective.SHUFFLE,
        words,
        results=2,
        mask=_mask(t, f.operands["mask"]),
        argument=SHUFFLES.index(f["way"]),
    )
    t.write_pair(f.operands["d"], found, t.compare("ne", valid, 0))


@instruction("vote.sync.kind.type d, p, mask", kind=VOTES, type=("b32", "pred"))
def vote(t: Translator, f: Form) -> None:
    p = t.resize(t.read(f.operands["p"], PREDICATE), "i32")
    (found,) = t.collective(
        f.index,
        Collective.VOTE,
        [p],
        results=1,
        mask=_mask(t, f.operands["mask"]),
        argument=VOTES.index(f["kind"]),
    )
    is_ballot = f["kind"] == "ballot"
    t.write(f.operands["d"], found if is_ballot else t.compare("ne", found, 0))


@instruction("match.kind.sync.type d, a, mask", kind=("any", "all"), type=("b32", "b64"))
def match(t: Translator, f: Form) -> None:
    """The lanes that hold the same value (any), or all lanes if all do (all)."""
    a = t.resize(t.read(f.operands["a"], f.type), "i64")
    halves = [t.resize(a, "i32"), t.resize(t.op("lshr", a, 32), "i32")]
    found, same = t.collective(
        f.index,
        Collective.MATCH,
        halves,
        results=2,
        mask=_mask(t, f.operands["mask"]),
        argument=int(f["kind"] == "all"),
    )
    t.write_pair(f.operands["d"], found, t.compare("ne", same, 0))


@instruction("redux.sync.op.type d, a, mask", op=REDUCTIONS, type=("s32", "u32", "b32"))
def redux(t: Translator, f: Form) -> None:
    (found,) = t.collective(
        f.index,
        Collective.REDUCE,
        [t.read(f.operands["a"], B32)],
        results=1,
        mask=_mask(t, f.operands["mask"]),
        argument=REDUCTIONS.index(f["op"]) * 2 + int(f.type.is_signed),
    )
    t.write(f.operands["d"], found)


@instruction("activemask.b32 d")
def activemask(t: Translator, f: Form) -> None:
    """The lanes that arrive here together; what else they do in the meantime is not defined."""
    (found,) = t.collective(f.index, Collective.ACTIVE, [], results=1, mask=0)
    t.write(f.operands["d"], found)


@instruction("elect.sync d, mask")
def elect(t: Translator, f: Form) -> None:
    """The lowest lane of the mask, and whether this is it."""
    mask = _mask(t, f.operands["mask"])
    t.collective(f.index, Collective.SYNC, [], mask=mask, argument=1)
    leader = t.intrinsic("cttz", mask, constant("i1", 0))
    t.write_pair(f.operands["d"], leader, t.compare("eq", leader, Value("%lane", "i32")))
