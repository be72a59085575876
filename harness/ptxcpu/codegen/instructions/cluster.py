"""Thread block clusters: their barrier, and addresses in the shared memory of their blocks."""

from harness.ptxcpu.codegen.llvm_ir import IrValue
from harness.ptxcpu.codegen.matching import MatchedInstruction
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Translator
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime.layout import BLOCK_BITS, Cause, State

TABLE = InstructionTable()

U32, U64 = TYPES["u32"], TYPES["u64"]
ALIGNED, RELAXED = 1, 2


@TABLE.instruction("barrier.cluster.arrive{.order}{.aligned}", order=("release", "relaxed"))
def arrive(t: Translator, m: MatchedInstruction) -> None:
    how = ALIGNED * bool(m["aligned"]) + RELAXED * (m["order"] == "relaxed")
    t.must("rt_cluster_arrive", m.index, how)


@TABLE.instruction("barrier.cluster.wait{.acquire}{.aligned}")
def wait(t: Translator, m: MatchedInstruction) -> None:
    t.must("rt_cluster_wait", m.index)
    t.suspend(m.index, State.CLUSTER_BARRIER)


def _offset(t: Translator, m: MatchedInstruction) -> IrValue:
    """Return the offset of an address in the cluster's shared memory, to which it must belong."""
    address = t.resize(t.read(m.operands["a"], m.type), "i64")
    if not m["space"]:
        address = t.op("sub", address, t.window_base("shared"))
    inside = t.compare("ult", address, t.kernel.cluster_blocks << BLOCK_BITS)
    t.stop_unless(inside, Cause.BAD_OPERAND, m.index)
    return address


@TABLE.instruction("mapa{.space}.type d, a, b", space=("shared::cluster",), type=("u32", "u64"))
def mapa(t: Translator, m: MatchedInstruction) -> None:
    """The address of the same variable in the block of rank b."""
    offset = t.op("and", _offset(t, m), (1 << BLOCK_BITS) - 1)
    rank = t.resize(t.read(m.operands["b"], U32), "i64")
    exists = t.compare("ult", rank, t.kernel.cluster_blocks)
    t.stop_unless(exists, Cause.BAD_OPERAND, m.index)
    address = t.op("or", t.op("shl", rank, BLOCK_BITS), offset)
    if not m["space"]:
        address = t.op("add", address, t.window_base("shared"))
    t.write(m.operands["d"], t.resize(address, f"i{m.type.bits}"))


@TABLE.instruction("getctarank{.space}.type d, a", space=("shared::cluster",), type=("u32", "u64"))
def getctarank(t: Translator, m: MatchedInstruction) -> None:
    """The rank of the block in whose shared memory an address lies."""
    t.write(m.operands["d"], t.resize(t.op("lshr", _offset(t, m), BLOCK_BITS), "i32"))
