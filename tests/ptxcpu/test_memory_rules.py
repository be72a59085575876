"""Rules of what warps do together, of the ends of memory and of bulk copies, with what each
catches."""

import numpy as np
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.results import Hazard, Result
from harness.ptxcpu.runtime.layout import BULK_IN_FLIGHT, Cause
from tests.ptxcpu.programs import entry, kernel_of

WORDS = 64


def kernel(body: str, outside: str = "", threads: int = 32, directive: str = "") -> Kernel:
    """A kernel of one buffer, whose address is in %rd1. The number of the thread is in %r1."""
    text = entry(
        "u64 data",
        f"""
ld.param.u64 %rd1, [data];
mov.u32 %r1, %tid.x;
{body}""",
        outside,
        directive,
    )
    return kernel_of(text, (ParameterKind.WRITABLE,), threads, watched=True)


def check(kernel: Kernel, data: np.ndarray) -> Result:
    return kernel.check((1, 1, 1), [Buffer(data, writable=True, name="data")])


def hazards(result: Result) -> set[Hazard]:
    return {each.hazard for each in result.findings}


SHARED = ".shared .align 16 .b8 s[64];"
MEMORIES = [("shared", "s"), ("global", "%rd1")]
MBARRIER = f"{SHARED} .shared .align 8 .b8 b[8];"
ONE_LANE = "setp.ne.u32 %p1, %r1, 0; @%p1 ret;"


@pytest.mark.parametrize("writer", range(3))
@pytest.mark.parametrize("barrier", ["", "bar.warp.sync 0xffffffff;"], ids=["race", "ordered"])
@pytest.mark.parametrize("read", ["u32 %r2", "v4.u32 {%r2, %r3, %r4, %r5}"], ids=["word", "wide"])
@pytest.mark.parametrize(("space", "at"), MEMORIES)
def test_reads_of_every_lane_are_recorded(
    writer: int, barrier: str, read: str, space: str, at: str
) -> None:
    body = f"""setp.gt.u32 %p2, %r1, 2; @%p2 bra MEET;
        ld.{space}.{read}, [{at}];
        MEET: {barrier}
        setp.ne.u32 %p1, %r1, {writer}; @%p1 ret;
        st.{space}.u32 [{at}], 1;"""
    found = check(kernel(body, SHARED), np.zeros(WORDS, np.uint32))
    assert (Hazard.RACE in hazards(found)) is not bool(barrier)


@pytest.mark.parametrize(
    ("together", "orders"),
    [
        ("bar.warp.sync 0xffffffff;", True),
        ("barrier.sync.aligned 0;", True),
        ("elect.sync %r3|%p3, 0xffffffff;", False),
        ("shfl.sync.idx.b32 %r3, %r1, 0, 31, 0xffffffff;", False),
        ("vote.sync.any.pred %p3, %p1, 0xffffffff;", False),
        ("match.any.sync.b32 %r3, %r1, 0xffffffff;", False),
        ("redux.sync.add.u32 %r3, %r1, 0xffffffff;", False),
        ("activemask.b32 %r3;", False),
        ("", False),
    ],
)
def test_the_order_of_the_lanes_of_a_warp(together: str, orders: bool) -> None:
    body = f"""setp.ne.u32 %p1, %r1, 0;
        @!%p1 st.shared.u32 [s], 1;
        {together}
        setp.eq.u32 %p2, %r1, 1;
        @%p2 ld.shared.u32 %r2, [s];"""
    found = check(kernel(body, SHARED), np.zeros(WORDS, np.uint32))
    assert (Hazard.RACE in hazards(found)) is not orders


@pytest.mark.parametrize(("space", "at"), MEMORIES)
@pytest.mark.parametrize(
    ("first", "between", "second", "races"),
    [
        ("ld", "", "ld.volatile", True),
        ("ld.volatile", "", "ld", True),
        (
            "ld",
            "@%p3 bar.warp.sync 0x55555555; @!%p3 bar.warp.sync 0xaaaaaaaa;",
            "ld.volatile",
            True,
        ),
        ("ld", "bar.warp.sync 0xffffffff;", "ld.volatile", False),
        ("ld.volatile", "", "ld.volatile", False),
    ],
)
def test_a_strong_read_does_not_hide_a_weak_one(
    first: str, between: str, second: str, races: bool, space: str, at: str
) -> None:
    body = f"""setp.eq.u32 %p1, %r1, 0;
        setp.eq.u32 %p2, %r1, 1;
        and.b32 %r4, %r1, 1;
        setp.eq.u32 %p3, %r4, 0;
        @%p1 {first}.{space}.u32 %r2, [{at}];
        {between}
        @%p1 {second}.{space}.u32 %r3, [{at}];
        @%p2 st.volatile.{space}.u32 [{at}], 1;"""
    found = check(kernel(body, SHARED), np.zeros(WORDS, np.uint32))
    assert (Hazard.RACE in hazards(found)) is races


@pytest.mark.parametrize(
    ("more", "parity"), [("", 0), ("mbarrier.arrive.shared.b64 %rd2, [b];", 1)]
)
def test_a_wait_knows_no_arrivals_of_the_next_phase(more: str, parity: int) -> None:
    """Lane 1 writes and arrives in the second phase. A flag without order tells lane 2 so."""
    wait = "{0}: mbarrier.try_wait.parity.shared.b64 %p3, [b], {1}; @!%p3 bra {0};".format
    body = f"""setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
        mbarrier.init.shared.b64 [b], 2; st.shared.u32 [s+4], 0;
        READY: bar.warp.sync 0xffffffff;
        setp.eq.u32 %p1, %r1, 1; @%p1 bra ONE; setp.eq.u32 %p1, %r1, 2; @%p1 bra TWO;
        setp.ne.u32 %p1, %r1, 0; @%p1 ret;
        mbarrier.arrive.shared.b64 %rd2, [b], 2; {more} ret;
        ONE: {wait("A", 0)} st.shared.u32 [s], 1; mbarrier.arrive.shared.b64 %rd2, [b];
        st.relaxed.cta.shared.u32 [s+4], 1; ret;
        TWO: ld.relaxed.cta.shared.u32 %r2, [s+4]; setp.eq.u32 %p1, %r2, 0; @%p1 bra TWO;
        {wait("B", parity)} ld.shared.u32 %r3, [s];"""
    found = check(kernel(body, MBARRIER), np.zeros(WORDS, np.uint32))
    assert found.fault is None and (Hazard.RACE in hazards(found)) is not bool(more)


@pytest.mark.parametrize("path", ["", ".nc"])
@pytest.mark.parametrize("again", ["", "@!%p1 ld.global.u32 %r3, [%rd1];"])
def test_what_the_read_only_path_has_read_is_not_written(path: str, again: str) -> None:
    body = f"""setp.ne.u32 %p1, %r1, 0;
        @!%p1 ld.global{path}.u32 %r2, [%rd1]; {again}
        bar.warp.sync 0xffffffff;
        setp.eq.u32 %p2, %r1, 1; @%p2 st.global.u32 [%rd1], 1;"""
    found = check(kernel(body), np.zeros(WORDS, np.uint32))
    assert (Hazard.RACE in hazards(found)) is bool(path)


@pytest.mark.parametrize("warps", [1, 2])
def test_only_lanes_of_one_warp_may_repeat_a_copy(warps: int) -> None:
    """In memcpy_async of cooperative groups, lanes without an element repeat the last one."""
    body = """min.u32 %r2, %r1, 7; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;
        mov.u64 %rd4, s; add.u64 %rd4, %rd4, %rd2;
        cp.async.ca.shared.global [%rd4], [%rd3], 4; cp.async.wait_all;"""
    found = check(kernel(body, SHARED, 32 * warps), np.zeros(WORDS, np.uint32))
    assert hazards(found) == ({Hazard.RACE} if warps > 1 else set())


TRACK = "cp.async.mbarrier.arrive.noinc.shared.b64 [b];"
COPIED = f"cp.async.ca.shared.global [s], [%rd1], 4; {TRACK}"
OTHER_ARRIVES = "mbarrier.arrive.shared.b64 %rd2, [b+8];"
TRACKED = {
    # name: (what lane 0 does, whether both meet, where lane 1 waits, what it reads, whether it may)
    "wait": (COPIED, False, "b", "s", True),
    "wait after a barrier": (COPIED, True, "b", "s", True),
    "barrier": (COPIED, True, "", "s", False),
    "another mbarrier": (f"{COPIED} {OTHER_ARRIVES}", False, "b+8", "s", False),
    "another mbarrier and a barrier": (f"{COPIED} {OTHER_ARRIVES}", True, "b+8", "s", False),
    "a later arrival": (f"{COPIED} {TRACK.replace('[b]', '[b+8]')}", False, "b+8", "s", True),
    "the thread's own wait": (
        f"{COPIED} cp.async.wait_all;",
        False,
        "b",
        "s",
        True,
    ),
    "a later store": (f"{COPIED} st.shared.u32 [s+4], 1;", False, "b", "s+4", False),
    "a counted arrival": (
        f"{COPIED.replace('.noinc', '')} mbarrier.arrive.shared.b64 %rd2, [b];",
        False,
        "b",
        "s",
        True,
    ),
    "wait for an earlier phase": (
        f"mbarrier.arrive.shared.b64 %rd2, [b]; {COPIED.replace('.noinc', '')}",
        True,
        "b",
        "s",
        False,
    ),
}


@pytest.mark.parametrize("name", TRACKED)
def test_copies_that_an_mbarrier_tracks_arrive_at_a_wait_for_it(name: str) -> None:
    copies, meets, mbarrier, read, is_right = TRACKED[name]
    wait = f"WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [{mbarrier}], 0; @!%p3 bra WAIT;"
    body = f"""setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
        mbarrier.init.shared.b64 [b], 1; mbarrier.init.shared.b64 [b+8], 1;
        READY: bar.warp.sync 0xffffffff;
        @%p1 bra MEET; {copies}
        MEET: {"bar.warp.sync 0xffffffff;" if meets else ""}
        setp.ne.u32 %p1, %r1, 1; @%p1 ret; {wait if mbarrier else ""}
        ld.shared.u32 %r2, [{read}];"""
    found = check(kernel(body, MBARRIER.replace("b[8]", "b[16]")), np.zeros(WORDS, np.uint32))
    assert found.fault is None and (Hazard.RACE in hazards(found)) is not is_right


ARRIVE = "mbarrier.arrive.shared.b64 %rd2, [b];"
DROP = ARRIVE.replace("arrive", "arrive_drop")
EXPECT = ARRIVE.replace("arrive", "arrive.expect_tx").replace("]", "], {}")
PHASES = {
    f"{ARRIVE} {ARRIVE}": Cause.DEADLOCK,
    f"{DROP} {ARRIVE}": None,
    f"{ARRIVE} {EXPECT.format(0)}": Cause.DEADLOCK,
    f"{ARRIVE} {EXPECT.format(0).replace('arrive', 'arrive_drop')}": None,
    f"mbarrier.complete_tx.shared.b64 [b], 16; {DROP} {EXPECT.format(16)}": None,
}
"""The two arrivals of a phase, and how a wait for the next one ends if one more arrival follows."""


@pytest.mark.parametrize("first", PHASES)
def test_a_dropped_arrival_is_not_expected_again(first: str) -> None:
    wait = "mbarrier.try_wait.parity.shared.b64 %p1, [b],"
    body = f"""{ONE_LANE} mbarrier.init.shared.b64 [b], 2;
        {first} {wait} 0; {ARRIVE} {wait} 1;"""
    assert cause_of(kernel(body, MBARRIER)) is PHASES[first]


def cause_of(kernel: Kernel, blocks: int = 1) -> Cause | None:
    data = Buffer(np.zeros(WORDS, np.uint32), writable=True)
    fault = kernel.run((blocks, 1, 1), [data]).fault
    return fault and fault.cause


def test_more_copies_may_be_in_flight_than_are_kept() -> None:
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 16, [b];"
    begin = f"{ONE_LANE} mbarrier.init.shared.b64 [b], 1;"
    assert cause_of(kernel(begin + copy * (BULK_IN_FLIGHT + 1), MBARRIER)) is None


@pytest.mark.parametrize("mask", [1, 2, 3])
def test_a_multicast_copy_names_blocks_of_its_cluster(mask: int) -> None:
    body = f"""{ONE_LANE} mbarrier.init.shared.b64 [b], 1;
        mbarrier.arrive.expect_tx.shared.b64 %rd2, [b], 16;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [s], [%rd1], 16, [b], {mask};
        mbarrier.try_wait.parity.shared.b64 %p1, [b], 0;"""
    assert cause_of(kernel(body, MBARRIER)) is (None if mask == 1 else Cause.BAD_OPERAND)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_bulk_copy_signals_a_barrier_of_its_destination_block(rank: int) -> None:
    body = f"""setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
        mov.u32 %r2, %cluster_ctarank; setp.ne.u32 %p1, %r2, {rank}; @%p1 bra END;
        mov.u32 %r3, b; mapa.shared::cluster.u32 %r3, %r3, 0;
        mbarrier.init.shared.b64 [b], 1; mbarrier.arrive.expect_tx.shared.b64 %rd2, [b], 16;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
            [s], [%rd1], 16, [%r3];
        END: barrier.cluster.arrive; barrier.cluster.wait;"""
    pair = kernel(body, MBARRIER, directive=".reqnctapercluster 2, 1, 1")
    assert cause_of(pair, 2) is (Cause.BAD_OPERAND if rank else None)


LOCAL_AND_SHARED = ".shared .align 16 .b8 s[24];"
ENDS = {
    "a buffer": ("%rd1", "global", 24),
    "shared memory": ("s", "shared", 24),
    "module memory": ("m", "global", 24),
    "local memory": ("l", "local", 24),
}
VECTORS = {1: ("", "%r2"), 2: (".v2", "{%r2, %r3}"), 4: (".v4", "{%r2, %r3, %r4, %r5}")}


@pytest.mark.parametrize("where", ENDS)
@pytest.mark.parametrize(
    ("width", "offset"), [(2, 16), (4, 16), (4, 0), (2, 24), (1, 20), (1, 24), (1, -4)]
)
@pytest.mark.parametrize("access", ["ld", "st"])
def test_an_access_must_lie_inside(where: str, width: int, offset: int, access: str) -> None:
    """24 bytes, of which an access takes a part, or hangs over their end."""
    base, space, size = ENDS[where]
    vector, registers = VECTORS[width]
    at, bytes_ = f"[{base}+{offset}]", 4 * width
    operands = f"{registers}, {at}" if access == "ld" else f"{at}, {registers}"
    outside = f"{LOCAL_AND_SHARED} .global .align 16 .b8 m[24];"
    clear = "".join(f"st.shared.u32 [s+{i}], 0;" for i in range(0, 24, 4))
    clear += ".local .align 16 .b8 l[24];" + clear.replace("shared", "local").replace("[s", "[l")
    body = f"{ONE_LANE} {clear} {access}.{space}{vector}.u32 {operands};"
    hanging = kernel(body, outside)
    data = np.zeros(6, np.uint32)
    is_inside = offset >= 0 and offset + bytes_ <= size
    found = hazards(check(hanging, data))
    assert found == (set() if is_inside else {Hazard.OUT_OF_BOUNDS})
    ran = hanging.run((1, 1, 1), [Buffer(data, writable=True)])
    assert (ran.fault is None) is is_inside


@pytest.mark.parametrize(
    ("copy", "wrong"),
    [
        ("ca.shared.global [s], [%rd1+8], 8;", set()),
        ("ca.shared.global [s], [%rd1+16], 8;", {Hazard.OUT_OF_BOUNDS}),
        ("cg.shared.global [s], [%rd1+8], 16, 8;", {Hazard.MISALIGNED}),
    ],
)
def test_an_asynchronous_copy_reads_what_lies_inside(copy: str, wrong: set[Hazard]) -> None:
    """20 bytes. The last copy reads eight of them, and fills its 16 with zeros."""
    found = check(
        kernel(f"{ONE_LANE} cp.async.{copy} cp.async.wait_all;", SHARED), np.zeros(5, np.uint32)
    )
    assert hazards(found) == wrong


def bulk(to: int, source: int, size: int) -> str:
    return f"""{ONE_LANE}
        mbarrier.init.shared.b64 [b], 1;
        mbarrier.arrive.expect_tx.shared.b64 %rd2, [b], {size};
        add.u64 %rd3, %rd1, {source};
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
            [s+{to}], [%rd3], {size}, [b];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [b], 0;
        @!%p1 bra WAIT;
        ld.shared.u32 %r2, [s+{to}];"""


@pytest.mark.parametrize("source", [0, 4, 8, 16])
@pytest.mark.parametrize("to", [0, 8, 16])
def test_a_bulk_copy_is_aligned_to_16_bytes(to: int, source: int) -> None:
    copying = kernel(bulk(to, source, 32), MBARRIER)
    run = copying.run((1, 1, 1), [Buffer(np.zeros(WORDS, np.uint32), writable=True)])
    found = check(copying, np.zeros(WORDS, np.uint32))
    is_aligned = to % 16 == source % 16 == 0
    assert (run.fault is None) is is_aligned
    assert (Hazard.MISALIGNED in hazards(found)) is not is_aligned


ADD_BY_SWAPS = """AGAIN: add.u32 %r4, %r2, 1; atom.{space}.cas.b32 %r3, [{at}], %r2, %r4;
    setp.ne.u32 %p1, %r3, %r2; mov.b32 %r2, %r3; @%p1 bra AGAIN;"""
ADDRESS = "mul.wide.u32 %rd2, %r5, 4; add.u64 {}, %rd1, %rd2;"
LOADS_BEFORE_SWAPS = {
    # name: (what each lane loads before, the swap's memory and address, whether it may)
    "plain": ("ld.global.u32 %r2, [%rd1];", "global", "%rd1", True),
    "weak": ("ld.weak.global.b32 %r2, [%rd1];", "global", "%rd1", True),
    "past L1": ("ld.global.cg.u32 %r2, [%rd1];", "global", "%rd1", True),
    "moved": ("ld.global.u32 %r3, [%rd1]; mov.b32 %r2, %r3;", "global", "%rd1", True),
    "by name": ("ld.shared.u32 %r2, [s]; mov.u64 %rd3, s;", "shared", "%rd3", True),
    "converted": (
        "ld.global.u32 %r2, [%rd1]; cvta.to.global.u64 %rd3, %rd1;",
        *("global", "%rd3", True),
    ),
    "computed twice": (
        f"mov.u32 %r5, 0; {ADDRESS.format('%rd3')} {ADDRESS.format('%rd4')} "
        "ld.global.u32 %r2, [%rd3];",
        *("global", "%rd4", True),
    ),
    "another value": ("ld.global.u32 %r5, [%rd1]; mov.u32 %r2, 0;", "global", "%rd1", False),
    "a vector": ("ld.global.v2.u32 {%r2, %r5}, [%rd1];", "global", "%rd1", False),
}


@pytest.mark.parametrize("name", LOADS_BEFORE_SWAPS)
def test_a_plain_load_of_what_a_swap_expects_is_no_race(name: str) -> None:
    load, space, at, is_right = LOADS_BEFORE_SWAPS[name]
    first = "setp.eq.u32 %p2, %r1, 0; @%p2 st.shared.u32 [s], 0; bar.warp.sync 0xffffffff;"
    body = f"{first} {load} {ADD_BY_SWAPS.format(space=space, at=at)}"
    data = np.zeros(WORDS, np.uint32)
    found = check(kernel(body, SHARED), data)
    assert found.fault is None and (Hazard.RACE in hazards(found)) is not is_right
