"""Litmus tests of PTX's memory model: a model of a few lines gives the expected verdict on each.

Two threads access one word. In between, the first writes a flag and the second reads it. Every
combination of accesses, scopes and fences has a word and a flag of its own in one kernel.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.results import Hazard, Result
from tests.ptxcpu.programs import entry, kernel_of

CTA, CLUSTER, GPU = 0, 1, 2
"""The reach of a scope, or the distance of two threads: in one block, cluster or grid."""


@dataclass(frozen=True)
class Access:
    """An instruction on one word. reach: the scope of a strong instruction."""

    text: str
    writes: bool
    reach: int | None = None
    releases: bool = False
    acquires: bool = False


Fence = tuple[str, int | None]
"""A fence and the reach of its scope."""

WEAK_READ = Access("ld.SPACE.u32 %r1, [AT];", False)
WEAK_WRITE = Access("st.SPACE.u32 [AT], 1;", True)
READS = [
    WEAK_READ,
    Access("ld.relaxed.cta.SPACE.u32 %r1, [AT];", False, CTA),
    Access("ld.relaxed.gpu.SPACE.u32 %r1, [AT];", False, GPU),
    Access("ld.volatile.SPACE.u32 %r1, [AT];", False, GPU),
    Access("ld.acquire.cta.SPACE.u32 %r1, [AT];", False, CTA, acquires=True),
    Access("ld.acquire.gpu.SPACE.u32 %r1, [AT];", False, GPU, acquires=True),
    Access("atom.acquire.gpu.SPACE.or.b32 %r1, [AT], 0;", True, GPU, acquires=True),
]
WRITES = [
    WEAK_WRITE,
    Access("st.relaxed.cta.SPACE.u32 [AT], 1;", True, CTA),
    Access("st.relaxed.gpu.SPACE.u32 [AT], 1;", True, GPU),
    Access("st.volatile.SPACE.u32 [AT], 1;", True, GPU),
    Access("st.release.cta.SPACE.u32 [AT], 1;", True, CTA, releases=True),
    Access("st.release.gpu.SPACE.u32 [AT], 1;", True, GPU, releases=True),
    Access("atom.SPACE.add.u32 %r1, [AT], 1;", True, GPU),
    Access("red.release.gpu.SPACE.add.u32 [AT], 1;", True, GPU, releases=True),
]
FENCES: list[Fence] = [("", None), ("fence.acq_rel.cta;", CTA), ("membar.gl;", GPU)]


@dataclass(frozen=True)
class Litmus:
    """The first thread's access, fence and flag, and the second's flag, fence and access."""

    first: Access
    fence: Fence
    set_flag: Access
    get_flag: Access
    other_fence: Fence
    second: Access

    def races(self, distance: int) -> bool:
        """Return whether the accesses race: not ordered by release and acquire, nor both strong."""
        return not (self._ordered(distance) or strong(self.first, self.second, distance))

    def flag_races(self, distance: int) -> bool:
        return not strong(self.set_flag, self.get_flag, distance)

    def _ordered(self, distance: int) -> bool:
        released = self.set_flag.releases or reaches(self.fence[1], distance)
        acquired = self.get_flag.acquires or reaches(self.other_fence[1], distance)
        return released and acquired and not self.flag_races(distance)


def reaches(scope: int | None, distance: int) -> bool:
    return scope is not None and scope >= distance


def strong(a: Access, b: Access, distance: int) -> bool:
    """Return whether two accesses are morally strong."""
    return reaches(a.reach, distance) and reaches(b.reach, distance)


PAIRS = [(WEAK_WRITE, WEAK_READ), (WEAK_READ, WEAK_WRITE), (WEAK_WRITE, WEAK_WRITE)]
DATA = itertools.cycle(PAIRS)
MESSAGES = [
    Litmus(first, fence, set_flag, get_flag, other_fence, second)
    for fence, set_flag, get_flag, other_fence in itertools.product(FENCES, WRITES, READS, FENCES)
    for first, second in [next(DATA)]
]
NO_FLAG = [
    Litmus(first, FENCES[0], WRITES[2], READS[2], FENCES[0], second)
    for first, second in itertools.product([*WRITES, *READS], repeat=2)
    if first.writes or second.writes
]


def program(tests: Sequence[Litmus], space: str, cluster: int = 1) -> str:
    """Return one kernel of all tests. Its parameters are the numbers of the two threads.

    cluster: the blocks of a cluster. With shared::cluster, two more parameters are the ranks of the
        blocks whose shared memory has the words and the flags.
    """
    size = 4 * len(tests)
    lines: dict[bool, list[str]] = {True: [], False: []}

    def at(access: Access, word: str) -> str:
        return access.text.replace("SPACE", space).replace("AT", word)

    for i, test in enumerate(tests):
        data, flag = f"%rd1+{4 * i}", f"%rd2+{4 * i}"
        lines[True] += [at(test.first, data), test.fence[0], at(test.set_flag, flag)]
        again = (
            f"setp.eq.u32 %p1, %r1, 0; @%p1 bra L{i};" if test.get_flag.reach is not None else ""
        )
        lines[False] += [f"L{i}: {at(test.get_flag, flag)} {again}"]
        lines[False] += [test.other_fence[0], at(test.second, data)]
    shared = f".shared .align 4 .b8 data[{size}]; .shared .align 4 .b8 flags[{size}];"
    meet = "barrier.cluster.arrive; barrier.cluster.wait;" if cluster > 1 else "bar.sync 0;"
    is_shared = space.startswith("shared")
    if is_shared:
        clear = f"""mov.u32 %r6, %tid.x; setp.ne.u32 %p2, %r6, 0; @%p2 bra READY;
            mov.u64 %rd3, 0;
            CLEAR: add.u64 %rd4, %rd1, %rd3; st.shared.u32 [%rd4], 0;
            add.u64 %rd4, %rd2, %rd3; st.shared.u32 [%rd4], 0;
            add.u64 %rd3, %rd3, 4; setp.lt.u64 %p2, %rd3, {size}; @%p2 bra CLEAR;
            READY: {meet}"""
        pointers = f"mov.u64 %rd1, data; mov.u64 %rd2, flags; {clear}"
        if cluster > 1:
            pointers += "".join(
                f"ld.param.u32 %r7, [{home}]; mapa.shared::cluster.u64 {at}, {at}, %r7;"
                for home, at in (("data_home", "%rd1"), ("flags_home", "%rd2"))
            )
    else:
        shared, pointers = "", "ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flags];"
    names = ("data_", "flags_") if is_shared else ("data", "flags")
    homes = ", u32 data_home, u32 flags_home" if space == CLUSTERED else ""
    directive = f".reqnctapercluster {cluster}, 1, 1" if cluster > 1 else ""
    end = f"END: {meet}" if cluster > 1 else "END:"
    return entry(
        f"u64 {names[0]}, u64 {names[1]}, u32 first, u32 second{homes}",
        f"""{pointers}
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
ld.param.u32 %r3, [first]; ld.param.u32 %r4, [second];
setp.eq.u32 %p1, %r2, %r3; @%p1 bra FIRST;
setp.eq.u32 %p1, %r2, %r4; @%p1 bra SECOND;
bra END;
FIRST:
{chr(10).join(lines[True])}
bra END;
SECOND:
{chr(10).join(lines[False])}
{end}""",
        shared,
        directive=directive,
    )


CLUSTERED = "shared::cluster"
KINDS = (ParameterKind.WRITABLE, ParameterKind.WRITABLE, *(ParameterKind.NUMBER,) * 2)
THREADS = 64


def translated(text: str, kinds: tuple[ParameterKind, ...] = KINDS) -> Kernel:
    return kernel_of(text, kinds, THREADS, watched=True)


def check(kernel: Kernel, words: int, *numbers: int) -> Result:
    """Launch four blocks, in which the threads of these numbers take part."""
    buffers = [Buffer(np.zeros(words, np.uint32), writable=True, name=x) for x in ("data", "flags")]
    result = kernel.check((4, 1, 1), [*buffers, *numbers])
    assert result.fault is None, result.fault
    assert {f.hazard for f in result.findings} <= {Hazard.RACE}
    return result


def raced(result: Result, name: str) -> set[int]:
    """Return the indices of the words of an array with a race."""
    found = set()
    for each in result.findings:
        shared = re.search(r"at byte (\d+) of (\w+)", each.message)
        if shared and shared[2] == name:
            found.add(int(shared[1]) // 4)
        elif each.memory == name and each.index:
            found.add(each.index[0])
    return found


PLACES = {
    "lanes of one warp": (0, 1, CTA),
    "warps of one block": (0, 40, CTA),
    "two blocks": (0, 70, GPU),
}


@pytest.mark.parametrize(
    "tests",
    [MESSAGES[: len(MESSAGES) // 2], MESSAGES[len(MESSAGES) // 2 :], NO_FLAG],
    ids=["with narrow fences", "with wide fences", "without order"],
)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_two_threads_race_as_the_model_says(tests: Sequence[Litmus], space: str) -> None:
    kernel = translated(program(tests, space))
    for place, (first, second, distance) in PLACES.items():
        if space == "shared" and distance == GPU:
            continue
        assert_races(tests, check(kernel, len(tests), first, second), distance, place)


def assert_races(tests: Sequence[Litmus], result: Result, distance: int, place: str) -> None:
    """Check that the words and flags race of which the model says so, and no others."""
    words = {i for i, test in enumerate(tests) if test.races(distance)}
    flags = {i for i, test in enumerate(tests) if test.flag_races(distance)}
    for name, expected in (("data", words), ("flags", flags)):
        found = raced(result, name)
        missed, invented = expected - found, found - expected
        some = [tests[i] for i in sorted(missed | invented)[:3]]
        assert not some, f"{place}: {len(missed)} missed, {len(invented)} invented, {some}"


@dataclass(frozen=True)
class Hop:
    """A way in which one thread signals the next: an operation and a fence on either side."""

    fence: str
    set_flag: str
    get_flag: str
    other_fence: str

    def orders(self, distance: int, earlier_fence: str = "", later_fence: str = "") -> bool:
        """Return whether the first thread's accesses are ordered before the second's later ones.

        A fence that the first passed earlier, or that the second passes later, counts as well.
        """
        released = self.set_flag.startswith("st.release") or any(
            reaches(FENCE_REACH[each], distance) and "acquire" not in each
            for each in (self.fence, earlier_fence)
        )
        acquired = self.get_flag.startswith("ld.acquire") or any(
            reaches(FENCE_REACH[each], distance) and "release" not in each
            for each in (self.other_fence, later_fence)
        )
        scopes = self.set_flag + self.get_flag
        reach = CTA if ".cta" in scopes else CLUSTER if ".cluster" in scopes else GPU
        return released and acquired and reaches(reach, distance)


FENCE_REACH = {
    "": None,
    "membar.cta;": CTA,
    "fence.acq_rel.cluster;": CLUSTER,
    "membar.gl;": GPU,
    "fence.acq_rel.gpu;": GPU,
    "fence.sc.cta;": CTA,
    "fence.acquire.gpu;": GPU,
    "fence.release.gpu;": GPU,
    "membar.sys;": GPU,
}
HOPS = [
    Hop("", "st.release.gpu", "ld.acquire.gpu", ""),
    Hop("", "st.release.cta", "ld.acquire.cta", ""),
    Hop("fence.acq_rel.gpu;", "st.relaxed.gpu", "ld.relaxed.gpu", "membar.gl;"),
    Hop("membar.cta;", "st.volatile", "ld.volatile", "membar.gl;"),
    Hop("membar.gl;", "st.volatile", "ld.volatile", "membar.cta;"),
    Hop("", "st.relaxed.gpu", "ld.relaxed.gpu", ""),
    Hop("", "st.release.sys", "ld.acquire.sys", ""),
    Hop("fence.release.gpu;", "st.relaxed.sys", "ld.relaxed.sys", "fence.acquire.gpu;"),
    Hop("fence.acquire.gpu;", "st.relaxed.gpu", "ld.relaxed.gpu", "fence.release.gpu;"),
    Hop("fence.sc.cta;", "st.relaxed.gpu", "ld.relaxed.gpu", "membar.sys;"),
]
Chain = tuple[Hop, Hop]
CHAINS: list[Chain] = list(itertools.product(HOPS, HOPS))
TRIPLES = {
    "one block": (0, 40, 50),
    "the last in another block": (0, 40, 70),
    "the first in another block": (0, 70, 110),
    "three blocks": (0, 70, 140),
}


def chain_program(chains: Sequence[Chain], cluster: int = 1) -> str:
    """Return a kernel of all chains: thread `first` writes, `second` passes on, `third` reads."""
    parts: list[list[str]] = [[], [], []]
    for i, (one, other) in enumerate(chains):
        data, flag, last = (
            f"[%rd{at}+{offset}]" for at, offset in ((1, 4 * i), (2, 8 * i), (2, 8 * i + 4))
        )

        def get(hop: Hop, where: str, label: str) -> str:
            poll = f"{label}: {hop.get_flag}.global.u32 %r1, {where};"
            return f"{poll} setp.eq.u32 %p1, %r1, 0; @%p1 bra {label}; {hop.other_fence}"

        parts[0].append(
            f"st.global.u32 {data}, 1; {one.fence} {one.set_flag}.global.u32 {flag}, 1;"
        )
        parts[1].append(
            f"{get(one, flag, f'A{i}')} {other.fence} {other.set_flag}.global.u32 {last}, 1;"
        )
        parts[2].append(f"{get(other, last, f'B{i}')} ld.global.u32 %r1, {data};")
    return three_threads(parts, cluster)


def three_threads(parts: Sequence[Sequence[str]], cluster: int = 1) -> str:
    """Return a kernel in which the threads `first`, `second` and `third` do one part each."""
    directive = f".reqnctapercluster {cluster}, 1, 1" if cluster > 1 else ""
    bodies = "".join(f"T{n}: {chr(10).join(lines)} ret;" for n, lines in enumerate(parts))
    return entry(
        "u64 data, u64 flags, u32 first, u32 second, u32 third",
        f"""
ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flags];
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
ld.param.u32 %r3, [first]; ld.param.u32 %r4, [second]; ld.param.u32 %r5, [third];
setp.eq.u32 %p1, %r2, %r3; @%p1 bra T0;
setp.eq.u32 %p1, %r2, %r4; @%p1 bra T1;
setp.eq.u32 %p1, %r2, %r5; @%p1 bra T2;
ret;
{bodies}""",
        directive=directive,
    )


def distance(a: int, b: int, cluster: int = 1) -> int:
    """Return the distance of two threads of a launch with clusters of so many blocks."""
    if a // THREADS == b // THREADS:
        return CTA
    return CLUSTER if a // (cluster * THREADS) == b // (cluster * THREADS) else GPU


def assert_chains_race(
    kernel: Kernel, chains: Sequence[Chain], threads: tuple[int, int, int], cluster: int = 1
) -> None:
    """Check that the chains race of which the model says so, and no others."""
    first, second, third = threads
    found = raced(check(kernel, 2 * len(chains), *threads), "data")
    expected = {
        i
        for i, (one, other) in enumerate(chains)
        if not one.orders(distance(first, second, cluster), later_fence=other.fence)
        or not other.orders(distance(second, third, cluster), earlier_fence=one.other_fence)
    }
    assert {chains[i] for i in found} == {chains[i] for i in expected}


@pytest.mark.parametrize("place", TRIPLES)
def test_three_threads_race_as_the_model_says(place: str) -> None:
    kernel = translated(chain_program(CHAINS), (*KINDS, ParameterKind.NUMBER))
    assert_chains_race(kernel, CHAINS, TRIPLES[place])


MEET, BLOCK_FENCE, GPU_FENCE = "bar.sync 0;", "membar.cta;", "membar.gl;"
MEETINGS = {
    # name: (behind the write, before the flag, behind the flag, before the read, whether it races)
    "barriers and a fence behind the first": (MEET, GPU_FENCE, GPU_FENCE, MEET, False),
    "a fence before the first barrier": (f"{GPU_FENCE} {MEET}", "", GPU_FENCE, MEET, False),
    "a flag before the first barrier, too": (
        f"{GPU_FENCE} st.relaxed.gpu.global.u32 [%rd2], 1; {MEET}",
        *("", GPU_FENCE, MEET, False),
    ),
    "a fence behind the last barrier": (MEET, GPU_FENCE, "", f"{MEET} {GPU_FENCE}", False),
    "no fence where it is written": (MEET, "", GPU_FENCE, MEET, True),
    "no fence where it is read": (MEET, GPU_FENCE, "", MEET, True),
    "no barrier where it is written": ("", GPU_FENCE, GPU_FENCE, MEET, True),
    "no barrier where it is read": (MEET, GPU_FENCE, GPU_FENCE, "", True),
    "a fence for the block": (MEET, BLOCK_FENCE, GPU_FENCE, MEET, True),
}


def meeting_program(name: str) -> str:
    """Another thread of each block handles the flag than the one that accesses the word.

    In the first block, thread 40 writes and thread 0 sets the flag. In the second block, thread 0
    reads the flag and thread 50 reads the word.
    """
    written, publishing, seen, before_read, _ = MEETINGS[name]
    return entry(
        "u64 data, u64 flags, u32 n, u32 m",
        f"""
ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flags];
mov.u32 %r2, %ctaid.x; mov.u32 %r4, %tid.x;
setp.eq.u32 %p3, %r4, 0;
setp.gt.u32 %p1, %r2, 1; @%p1 ret;
setp.eq.u32 %p1, %r2, 1; @%p1 bra READS;
setp.eq.u32 %p2, %r4, 40;
@%p2 st.global.u32 [%rd1], 1;
{written}
@!%p3 bra DONE;
{publishing}
st.relaxed.gpu.global.u32 [%rd2], 1;
DONE: ret;
READS:
@!%p3 bra READY;
POLL: ld.relaxed.gpu.global.u32 %r1, [%rd2]; setp.eq.u32 %p1, %r1, 0; @%p1 bra POLL;
{seen}
READY:
{before_read}
setp.eq.u32 %p2, %r4, 50;
@%p2 ld.global.u32 %r1, [%rd1];""",
    )


WARPS, CELLS = 4, 60
MEETING = [3, 5, 6, 7, 9, 10, 11, 12, 13, 14, *[15] * 7]  # warps at a barrier, a bit for each
VALUES = {4: "%r10", 8: "{%r10, %r11}", 16: "{%r10, %r11, %r12, %r13}"}
WIDTHS = {4: "u32", 8: "v2.u32", 16: "v4.u32"}


@dataclass(frozen=True)
class Step:
    """An access to some bytes of a place of 16, by a lane of one warp; or a barrier of warps."""

    warps: int
    lane: int = 0
    place: int | None = None
    barrier: int = 0
    writes: bool = False
    bytes: tuple[int, int] = (0, 0)

    def text(self, number: int) -> str:
        select = f"shr.u32 %r5, {self.warps}, %r2; and.b32 %r5, %r5, 1; setp.eq.u32 %p3, %r5, 0;"
        if self.place is None:
            threads = 32 * self.warps.bit_count()
            return f"{select} @%p3 bra S{number}; bar.sync {self.barrier}, {threads}; S{number}:"
        first, end = self.bytes
        at = f"[words+{16 * self.place + first}]"
        name, values = WIDTHS[end - first], VALUES[end - first]
        operands = (at, values) if self.writes else (values, at)
        access = f"{'st' if self.writes else 'ld'}.shared.{name} {', '.join(operands)}"
        return f"{select} setp.ne.or.u32 %p3, %r3, {self.lane}, %p3; @!%p3 {access};"


LATE = [
    *(Step(1, place=CELLS, bytes=(0, 16)), Step(12, barrier=9), Step(3, barrier=10)),
    Step(4, place=CELLS, writes=True, bytes=(0, 4)),
]
"""A write that runs after a barrier of other warps, since its own warp waits at another one."""


def drawn_steps(random: np.random.Generator) -> list[Step]:
    """Draw accesses and barriers. Most accesses to a place are by one and the same warp."""
    steps = []
    for barrier in range(1, 9):
        for place in [*range(CELLS), *range(CELLS)]:
            width = int(random.choice([4, 8, 16]))
            first = width * int(random.integers(16 // width))
            warp = int(random.integers(WARPS)) if random.random() < 0.2 else place % WARPS
            lane = int(random.random() < 0.2)
            if random.random() < 0.6:
                writes = bool(random.random() < 0.4)
                steps.append(Step(1 << warp, lane, place, 0, writes, (first, first + width)))
        steps.append(Step(int(random.choice(MEETING)), barrier=barrier))
    return steps


def racing_places(steps: Sequence[Step]) -> set[int]:
    """Return the places where no barrier orders two accesses to one byte, one of them a write."""
    known: dict[tuple[int, int], set[int]] = defaultdict(set)  # to a lane of a warp
    racing = set()
    for number, step in enumerate(steps):
        warps = [warp for warp in range(WARPS) if step.warps >> warp & 1]
        if step.place is None:
            threads = list(itertools.product(warps, range(2)))
            met = set().union(*(known[thread] for thread in threads))
            known.update((thread, set(met)) for thread in threads)
            continue
        mine = known[warps[0], step.lane]
        for other, earlier in enumerate(steps[:number]):
            overlaps = earlier.bytes[0] < step.bytes[1] and step.bytes[0] < earlier.bytes[1]
            conflicts = overlaps and earlier.place == step.place and (earlier.writes or step.writes)
            if conflicts and other not in mine:
                racing.add(step.place)
        mine.add(number)
    return racing


@pytest.mark.parametrize("seed", range(4))
def test_accesses_of_different_widths_race_as_the_model_says(seed: int) -> None:
    steps = [*LATE, *drawn_steps(np.random.default_rng(seed))]
    text = entry(
        "",
        f"""
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31;
mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;
mul.wide.u32 %rd2, %r1, 4; mov.u64 %rd1, words; add.u64 %rd1, %rd1, %rd2;
st.shared.u32 [%rd1], 0; st.shared.u32 [%rd1+{4 * 32 * WARPS}], 0; bar.sync 0;
{" ".join(step.text(number) for number, step in enumerate(steps))}""",
        f".shared .align 16 .b8 words[{8 * 32 * WARPS}];",
    )
    result = kernel_of(text, (), 32 * WARPS, watched=True).check((1, 1, 1), ())
    assert result.fault is None
    assert {f.hazard for f in result.findings} <= {Hazard.RACE}
    expected = racing_places(steps)
    assert 0 < len(expected) < CELLS
    assert {word // 4 for word in raced(result, "words")} == expected
