"""Litmus tests of threads in different blocks of one cluster: a model gives each verdict.

They use scopes of a cluster, distributed shared memory, the barrier of the cluster, and mbarriers
of another block. Of the many combinations a sample is tested, the same each time.
"""

import itertools
import random
from dataclasses import dataclass

import pytest

from harness.ptxcpu.arguments import ParameterKind
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.results import Hazard
from tests.ptxcpu import test_litmus as litmus
from tests.ptxcpu.programs import entry, kernel_of
from tests.ptxcpu.test_litmus import CLUSTER, CTA, GPU, KINDS, THREADS

BLOCKS = 2
"""The blocks of a cluster."""

CLUSTER_READS = [
    litmus.Access("ld.relaxed.cluster.SPACE.u32 %r1, [AT];", False, CLUSTER),
    litmus.Access("ld.acquire.cluster.SPACE.u32 %r1, [AT];", False, CLUSTER, acquires=True),
]
CLUSTER_WRITES = [
    litmus.Access("st.relaxed.cluster.SPACE.u32 [AT], 1;", True, CLUSTER),
    litmus.Access("st.release.cluster.SPACE.u32 [AT], 1;", True, CLUSTER, releases=True),
    litmus.Access("red.release.cluster.SPACE.add.u32 [AT], 1;", True, CLUSTER, releases=True),
]
ALL_FENCES: list[litmus.Fence] = [*litmus.FENCES, ("fence.acq_rel.cluster;", CLUSTER)]
UNORDERED = [
    pair
    for pair in itertools.product(
        [*litmus.WRITES, *litmus.READS, *CLUSTER_WRITES, *CLUSTER_READS], repeat=2
    )
    if pair[0].writes or pair[1].writes
]
NO_FENCE: litmus.Fence = ("", None)


def sample(seed: int) -> list[litmus.Litmus]:
    """Return messages with one scope of the cluster at least, and accesses that nothing orders."""
    choice = random.Random(seed)
    writes, reads = [*litmus.WRITES, *CLUSTER_WRITES], [*litmus.READS, *CLUSTER_READS]
    messages = [
        (fence, put, get, other)
        for fence, put, get, other in itertools.product(ALL_FENCES, writes, reads, ALL_FENCES)
        if CLUSTER in (fence[1], put.reach, get.reach, other[1])
    ]
    found = []
    for fence, put, get, other in choice.sample(messages, 160):
        first, second = choice.choice(litmus.PAIRS)
        found.append(litmus.Litmus(first, fence, put, get, other, second))
    for first, second in choice.sample(UNORDERED, 40):
        found.append(
            litmus.Litmus(first, NO_FENCE, litmus.WRITES[2], litmus.READS[2], NO_FENCE, second)
        )
    return found


TESTS = sample(29)
PLACES = {
    "one block": (0, 40),
    "two blocks of a cluster": (0, 70),
    "the other two": (70, 0),
    "two clusters": (0, 130),
}


def test_two_threads_of_clusters_race_as_the_model_says() -> None:
    kernel = litmus.translated(litmus.program(TESTS, "global", BLOCKS))
    for place, threads in PLACES.items():
        result = litmus.check(kernel, len(TESTS), *threads)
        litmus.assert_races(TESTS, result, litmus.distance(*threads, BLOCKS), place)


def test_distributed_shared_memory_races_as_the_model_says() -> None:
    """The words and the flags are in the first block of the cluster or in the second."""
    kinds = (*KINDS, *(ParameterKind.NUMBER,) * 2)
    kernel = litmus.translated(litmus.program(TESTS, litmus.CLUSTERED, BLOCKS), kinds)
    for threads in ((0, 40), (0, 70), (70, 0)):
        for homes in itertools.product(range(BLOCKS), repeat=2):
            result = litmus.check(kernel, len(TESTS), *threads, *homes)
            place = f"threads {threads}, in blocks {homes}"
            litmus.assert_races(TESTS, result, litmus.distance(*threads, BLOCKS), place)


CHAINS = [
    (one, other)
    for one, other in itertools.product(
        [
            *litmus.HOPS[:3],
            litmus.Hop("", "st.release.cluster", "ld.acquire.cluster", ""),
            litmus.Hop("fence.acq_rel.cluster;", "st.volatile", "ld.volatile", "membar.gl;"),
            litmus.Hop(
                "membar.gl;", "st.relaxed.cluster", "ld.relaxed.cluster", "fence.acq_rel.cluster;"
            ),
        ],
        repeat=2,
    )
    if "cluster" in f"{one} {other}"
]
TRIPLES = {
    "the last in the other block": (0, 40, 70),
    "the first in the other block": (70, 40, 0),
    "the second in the other block": (0, 70, 40),
    "the last in another cluster": (0, 70, 130),
    "the first in another cluster": (0, 140, 200),
}


def test_three_threads_of_clusters_race_as_the_model_says() -> None:
    kinds = (*KINDS, ParameterKind.NUMBER)
    kernel = litmus.translated(litmus.chain_program(CHAINS, BLOCKS), kinds)
    for threads in TRIPLES.values():
        litmus.assert_chains_race(kernel, CHAINS, threads, BLOCKS)


SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU}
SEQUENCES = list(itertools.product(SCOPES, SCOPES, SCOPES, ["atom", "st"]))
"""The scopes of a release, of a relaxed operation on the same flag and of an acquire; and whether
that operation is atomic or a store."""


def sequence_program() -> str:
    """Return a kernel in which `first` sets a flag, `second` changes it, and `third` reads it."""
    parts: list[list[str]] = [[], [], []]
    for i, (release, relaxed, acquire, kind) in enumerate(SEQUENCES):
        data, flag = f"[%rd1+{4 * i}]", f"[%rd2+{4 * i}]"
        change = f"st.relaxed.{relaxed}.global.u32 {flag}, 2;"
        if kind == "atom":
            change = f"atom.relaxed.{relaxed}.global.add.u32 %r1, {flag}, 1;"

        def poll(value: int, label: str, flag: str = flag) -> str:
            loop = f"{label}: ld.relaxed.gpu.global.u32 %r1, {flag};"
            return f"{loop} setp.ne.u32 %p1, %r1, {value}; @%p1 bra {label};"

        get = f"ld.acquire.{acquire}.global.u32 %r1, {flag};"
        parts[0].append(f"st.global.u32 {data}, 1; st.release.{release}.global.u32 {flag}, 1;")
        parts[1].append(f"{poll(1, f'A{i}')} {change}")
        parts[2].append(f"{poll(2, f'B{i}')} {get} ld.global.u32 %r1, {data};")
    return litmus.three_threads(parts, BLOCKS)


def test_atomics_pass_a_release_on_as_the_model_says() -> None:
    kinds = (*KINDS, ParameterKind.NUMBER)
    kernel = litmus.translated(sequence_program(), kinds)
    for threads in TRIPLES.values():
        result = litmus.check(kernel, len(SEQUENCES), *threads)
        found, expected = litmus.raced(result, "data"), set()
        for i, (*scopes, kind) in enumerate(SEQUENCES):
            reach = [SCOPES[scope] for scope in scopes]
            is_strong = all(
                min(reach[a], reach[b]) >= litmus.distance(threads[a], threads[b], BLOCKS)
                for a, b in itertools.combinations(range(3), 2)
            )
            if kind == "st" or not is_strong:
                expected.add(i)
        invented = {SEQUENCES[i] for i in found - expected}
        missed = {SEQUENCES[i] for i in expected - found - litmus.raced(result, "flags")}
        assert (invented, missed) == (set(), set()), threads


SENDER, RECEIVER = 0, THREADS + 5
"""Threads in the two blocks of a cluster."""


def shared_kernel(memory: str, prologue: str, body: str) -> Kernel:
    """Return a kernel with `data` in shared memory, which begins and ends with the whole cluster.

    The address of `data` in the block of rank `home` is in %rd1. %p1 and %p2 tell the two threads
    of the parameters `first` and `second`, and %p3 the first thread of each block.
    """
    meet = "barrier.cluster.arrive; barrier.cluster.wait;"
    text = entry(
        "u32 first, u32 second, u32 home",
        f"""
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
ld.param.u32 %r3, [first]; setp.eq.u32 %p1, %r2, %r3;
ld.param.u32 %r3, [second]; setp.eq.u32 %p2, %r2, %r3;
setp.eq.u32 %p3, %r4, 0;
mov.u64 %rd1, data; ld.param.u32 %r5, [home]; mapa.shared::cluster.u64 %rd1, %rd1, %r5;
{prologue} {meet}
{body}
{meet}""",
        memory,
        directive=f".reqnctapercluster {BLOCKS}, 1, 1",
    )
    kinds = (ParameterKind.NUMBER,) * 3
    return kernel_of(text, kinds, THREADS, watched=True)


def raced_words(kernel: Kernel, *numbers: int) -> set[int]:
    result = kernel.check((BLOCKS, 1, 1), numbers)
    assert result.fault is None, result.fault
    assert {each.hazard for each in result.findings} <= {Hazard.RACE}
    return litmus.raced(result, "data")


@dataclass(frozen=True)
class Meeting:
    """A phase of the cluster's barrier between a write and a read in different blocks.

    via_block: the block meets before the arrival, so that other threads know of the write.
    """

    arrive: str
    fence: litmus.Fence
    is_late: bool
    is_early: bool
    via_block: bool

    def races(self) -> bool:
        released = (
            self.arrive != ".relaxed" or litmus.reaches(self.fence[1], CLUSTER) or self.via_block
        )
        return self.is_late or self.is_early or not released

    def text(self, word: int) -> str:
        """Return the phase. All threads but the sender arrive with release."""
        write = f"@%p1 st.shared::cluster.u32 [%rd1+{4 * word}], 1; {self.fence[0]}"
        read = f"@%p2 ld.shared::cluster.u32 %r6, [%rd1+{4 * word}];"
        return f"""{"" if self.is_late else write} {"bar.sync 0;" if self.via_block else ""}
            @%p1 barrier.cluster.arrive{self.arrive}; @!%p1 barrier.cluster.arrive;
            {write if self.is_late else ""} {read if self.is_early else ""}
            barrier.cluster.wait.acquire;
            {"" if self.is_early else read}"""


ARRIVALS = ("", ".release", ".relaxed")
MEETINGS = [
    Meeting(*each) for each in itertools.product(ARRIVALS, ALL_FENCES, *[(False, True)] * 3)
]


@pytest.mark.parametrize("home", range(BLOCKS))
def test_the_cluster_barrier_orders_as_the_model_says(home: int) -> None:
    memory = f".shared .align 4 .b8 data[{4 * len(MEETINGS)}];"
    clear = "".join(f"@%p3 st.shared.u32 [data+{4 * i}], 0;" for i in range(len(MEETINGS)))
    body = "\n".join(each.text(i) for i, each in enumerate(MEETINGS))
    kernel = shared_kernel(memory, clear, body)
    found = raced_words(kernel, SENDER, RECEIVER, home)
    expected = {i for i, each in enumerate(MEETINGS) if each.races()}
    assert {MEETINGS[i] for i in found} == {MEETINGS[i] for i in expected}


@dataclass(frozen=True)
class Handover:
    """A write, an arrival at an mbarrier of the reader's block, a wait for it, and a read.

    What scopes an arrival and a wait have is ignored, since CUTLASS arrives at mbarriers of other
    blocks without `.cluster`.
    """

    fence: litmus.Fence
    arrive: str
    wait: str
    other_fence: litmus.Fence

    def races(self, distance: int) -> bool:
        released = "relaxed" not in self.arrive or litmus.reaches(self.fence[1], distance)
        acquired = "relaxed" not in self.wait or litmus.reaches(self.other_fence[1], distance)
        return not (released and acquired)

    def send(self, i: int) -> str:
        return f"""st.shared::cluster.u32 [%rd1+{4 * i}], 1; {self.fence[0]}
            mbarrier.arrive{self.arrive}.shared::cluster.b64 _, [%rd2+{8 * i}];"""

    def receive(self, i: int) -> str:
        return f"""W{i}: mbarrier.{self.wait}.shared::cta.b64 %p4, [mbarriers+{8 * i}], 0;
            @!%p4 bra W{i}; {self.other_fence[0]}
            ld.shared::cluster.u32 %r6, [%rd1+{4 * i}];"""


HANDOVERS = [
    Handover(*each)
    for each in itertools.product(
        ALL_FENCES,
        ("", ".release.cta", ".release.cluster", ".relaxed.cluster"),
        (
            *("try_wait.parity", "try_wait.parity.acquire.cluster"),
            *("try_wait.parity.relaxed.cluster", "test_wait.parity.relaxed.cluster"),
        ),
        ALL_FENCES,
    )
]
HANDOVER_SAMPLE = random.Random(29).sample(HANDOVERS, 120)


@pytest.mark.parametrize("sender", [SENDER, THREADS + 40], ids=["two blocks", "one block"])
def test_mbarriers_of_the_other_block_order_as_the_model_says(sender: int) -> None:
    tests = HANDOVER_SAMPLE
    memory = f""".shared .align 4 .b8 data[{4 * len(tests)}];
        .shared .align 8 .b8 mbarriers[{8 * len(tests)}];"""
    prologue = "".join(
        f"@%p3 st.shared.u32 [data+{4 * i}], 0; "
        f"@%p3 mbarrier.init.shared.b64 [mbarriers+{8 * i}], 1;"
        for i in range(len(tests))
    )
    send = "\n".join(each.send(i) for i, each in enumerate(tests))
    receive = "\n".join(each.receive(i) for i, each in enumerate(tests))
    body = f"""mov.u64 %rd2, mbarriers; mapa.shared::cluster.u64 %rd2, %rd2, 1;
        @%p1 bra SEND; @%p2 bra RECEIVE; bra DONE;
        SEND: {send} bra DONE;
        RECEIVE: {receive}
        DONE:"""
    kernel = shared_kernel(memory, prologue, body)
    for home in range(BLOCKS):
        found = raced_words(kernel, sender, RECEIVER, home)
        reach = litmus.distance(sender, RECEIVER, BLOCKS)
        expected = {i for i, each in enumerate(tests) if each.races(reach)}
        assert {tests[i] for i in found} == {tests[i] for i in expected}
