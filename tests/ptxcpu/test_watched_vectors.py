"""Litmus tests of watching on the vector path: it finds what the thread path finds. The verdict on
each comes out of a model of a few lines.

All threads of a block access a word each, and then another one. A launch's numbers choose how, and
whether there is a barrier in between.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.results import Hazard
from harness.ptxcpu.runtime.layout import Cause
from problem.cases import Shape
from tests.ptxcpu import test_litmus as litmus
from tests.ptxcpu.programs import both_paths, check_both, entry
from tests.ptxcpu.runner import KERNELS, inputs
from tests.ptxcpu.test_litmus import MEETINGS, MESSAGES, WEAK_READ, WEAK_WRITE, Litmus
from tests.ptxcpu.test_vector_path import KERNEL
from tests.ptxcpu.test_vector_path import kernels as of_source

THREADS, BLOCKS = 128, 2


@dataclass(frozen=True)
class Place:
    """Which word a thread accesses, in PTX (from %r1 to INDEX) and in Python."""

    name: str
    text: str
    word: Callable[[int], int]
    is_for: Callable[[int], bool] = lambda thread: True
    guard: str = ""


PLACES = [
    Place("its own", "mov.u32 INDEX, %r1;", lambda t: t),
    Place("its neighbour's", "xor.b32 INDEX, %r1, 1;", lambda t: t ^ 1),
    Place("in reverse", "sub.u32 INDEX, 127, %r1;", lambda t: 127 - t),
    Place("its row's", "and.b32 INDEX, %r1, 112;", lambda t: t & 112),
    Place("every thread the same", "mov.u32 INDEX, 5;", lambda t: 5),
    Place("scattered", "mul.lo.u32 %r9, %r1, %r1; and.b32 INDEX, %r9, 127;", lambda t: t * t & 127),
    Place("some of them", "mov.u32 INDEX, %r1;", lambda t: t, lambda t: t % 3 == 1, "@%p1"),
    Place("the next one's", "add.u32 INDEX, %r1, 1;", lambda t: t + 1),
    Place("one thread", "mov.u32 INDEX, 0;", lambda t: 0, lambda t: t == 70, "@%p2"),
]  # fmt: skip
STEPS = [(place, writes) for place in PLACES for writes in (False, True)]
WIDTHS = {"u32": 4, "u8": 1, "v4.u32": 16}


def steps_of(type_: str) -> list[tuple[Place, bool]]:
    """Return all steps; for the other types those of the places that depend on the width."""
    return STEPS if type_ == "u32" else [*STEPS[:4], *STEPS[10:16]]


def pairs(
    steps: Sequence[tuple[Place, bool]],
) -> Iterator[tuple[bool, tuple[int, ...], tuple[tuple[Place, bool], ...]]]:
    """Return whether there is a barrier, and the numbers of two steps with the steps. A barrier
    separates any two steps alike, so there each is followed by itself and by two others."""
    count = len(steps)
    for i, j in itertools.product(range(count), repeat=2):
        yield False, (i, j), (steps[i], steps[j])
        if (j - i) % count in (0, 1, 4):
            yield True, (i, j), (steps[i], steps[j])


def program(type_: str, space: str, steps: Sequence[tuple[Place, bool]]) -> str:
    """A kernel of two of these steps. `fresh` words of shared memory are not written before them;
    a block's words of a buffer begin `apart` words behind those of the block before."""
    size = WIDTHS[type_]
    value = "{%r4, %r4, %r4, %r4}" if type_.startswith("v4") else "%r4"
    registers = itertools.count(20)

    def address(index: str) -> tuple[str, str]:
        offset, where = (f"%rd{next(registers)}" for _ in range(2))
        return f"mul.wide.u32 {offset}, {index}, {size}; add.u64 {where}, %rd1, {offset};", where

    def access(number: int, place: Place, writes: bool, behind: str) -> str:
        index = f"%r{next(registers)}"
        computed, where = address(index)
        move = f"st.{space}.{type_} [{where}], {value};"
        if not writes:
            move = f"ld.{space}.{type_} {value.replace('%r4', f'%r{next(registers)}')}, [{where}];"
        return f"""setp.ne.u32 %p4, %r3, {number}; @%p4 bra {behind}{number};
            {place.text.replace("INDEX", index)} {computed} {place.guard} {move}
            {behind}{number}:"""

    both = [
        "\n".join(access(i, *step, behind) for i, step in enumerate(steps)) for behind in ("A", "B")
    ]
    computed, where = address("%r1")
    clear = f"""setp.lt.u32 %p3, %r1, %r5; @%p3 bra CLEARED;
        {computed} st.shared.{type_} [{where}], {value}; CLEARED: bar.sync 0;"""
    base = "mov.u64 %rd1, words; " + clear
    if space == "global":
        base = f"""ld.param.u64 %rd2, [data]; ld.param.u32 %r6, [apart]; mov.u32 %r7, %ctaid.x;
            mul.lo.u32 %r6, %r6, %r7; mul.wide.u32 %rd3, %r6, {size}; add.u64 %rd1, %rd2, %rd3;"""
    return entry(
        "u64 data, u32 one, u32 barrier, u32 two, u32 fresh, u32 apart",
        f"""
mov.u32 %r1, %tid.x; mov.u32 %r4, 7; ld.param.u32 %r5, [fresh];
rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r1, 70;
{base}
ld.param.u32 %r3, [one];
{both[0]}
ld.param.u32 %r3, [barrier]; setp.eq.u32 %p4, %r3, 0; @%p4 bra MET;
bar.sync 0;
MET: ld.param.u32 %r3, [two];
{both[1]}""",
        f".shared .align 16 .b8 words[{THREADS * size}]; .shared .align 16 .b8 others[16];",
    )


KINDS = (ParameterKind.WRITABLE, *(ParameterKind.NUMBER,) * 5)


def kernels(text: str, kinds: tuple[ParameterKind, ...] = KINDS) -> tuple[Kernel, Kernel]:
    return both_paths(text, kinds, THREADS)


def check(
    kernels: tuple[Kernel, Kernel], size: int, *numbers: int, writable: bool = True
) -> tuple[set[Hazard], int]:
    def arguments() -> list[Buffer | int]:
        data = np.zeros(4 * THREADS * size, np.uint8)
        return [Buffer(data, writable=writable, name="data"), *numbers]

    return check_both(kernels, (BLOCKS, 1, 1), arguments, numbers)


def expected(
    one: tuple[Place, bool],
    two: tuple[Place, bool],
    *,
    barrier: bool,
    fresh: int = 0,
    apart: int | None = None,
) -> set[Hazard]:
    """The model. apart: of the blocks' words in a buffer; None for shared memory."""
    touched: dict[int, list[tuple[int, int, int, bool]]] = {}
    written = set(range(fresh, THREADS))
    found = set()
    for block, (step, (place, writes)), thread in itertools.product(
        range(1 if apart is None else BLOCKS), enumerate((one, two)), range(THREADS)
    ):
        if not place.is_for(thread):
            continue
        word = place.word(thread) + block * (apart or 0)
        interval = step if barrier else 0
        for other_block, other_interval, other, other_writes in touched.setdefault(word, []):
            apart_in_time = block == other_block and interval != other_interval
            same = block == other_block and thread == other
            if (writes or other_writes) and not apart_in_time and not same:
                found.add(Hazard.RACE)
        touched[word].append((block, interval, thread, writes))
        if apart is None and word >= THREADS:
            found.add(Hazard.OUT_OF_BOUNDS)
        elif writes:
            written.add(word)
        elif word not in written:
            found.add(Hazard.UNINITIALISED)
    return found


def assert_found(
    kernels: tuple[Kernel, Kernel],
    size: int,
    wanted: set[Hazard],
    *numbers: int,
    writable: bool = True,
) -> None:
    """Both paths find this; where it is nothing, the vector path decides."""
    found = check(kernels, size, *numbers, writable=writable)
    assert found == (wanted, 0 if wanted else BLOCKS), numbers


@pytest.mark.parametrize("type_", WIDTHS)
def test_accesses_to_shared_memory(type_: str) -> None:
    steps = steps_of(type_)
    made = kernels(program(type_, "shared", steps))
    for barrier, (i, j), (one, two) in pairs(steps):
        wanted = expected(one, two, barrier=barrier)
        assert_found(made, WIDTHS[type_], wanted, i, barrier, j, 0, 0)
        if barrier and not wanted:
            unwritten = expected(one, two, barrier=barrier, fresh=64)
            assert_found(made, WIDTHS[type_], unwritten, i, barrier, j, 64, 0)


@pytest.mark.parametrize("type_", WIDTHS)
def test_stores_to_buffers(type_: str) -> None:
    stores = [step for step in steps_of(type_) if step[1]]
    made = kernels(program(type_, "global", stores))
    for (barrier, (i, j), (one, two)), apart in itertools.product(
        pairs(stores), (THREADS + 1, THREADS, 1)
    ):
        wanted = expected(one, two, barrier=barrier, apart=apart)
        assert_found(made, WIDTHS[type_], wanted, i, barrier, j, 0, apart)


COPIES = {
    # name: (PTX behind the copy, whether the copy has arrived)
    "no wait": ("", False),
    "no group": ("cp.async.wait_group 0;", False),
    "one pending": ("cp.async.commit_group; cp.async.wait_group 1;", False),
    "none pending": ("cp.async.commit_group; cp.async.wait_group 0;", True),
    "a later one pending": (f"{2 * 'cp.async.commit_group; '}cp.async.wait_group 1;", True),
    "all": ("cp.async.wait_all;", True),
}


@pytest.mark.parametrize(
    ("name", "size"), [*((name, 4) for name in COPIES), ("no wait", 16), ("none pending", 16)]
)
def test_copies_to_shared_memory(name: str, size: int) -> None:
    wait, has_arrived = COPIES[name]
    places = [place for place in PLACES if place.name != "the next one's"]
    reads = {"A": "", "B": ""}
    for behind, (i, place) in itertools.product(reads, enumerate(places)):
        r = f"{2 * i + (behind == 'B') * 100}"
        reads[behind] += f"""setp.ne.u32 %p4, %r3, {i}; @%p4 bra {behind}{i};
            {place.text.replace("INDEX", f"%i{r}")} mul.wide.u32 %o{r}, %i{r}, {size};
            add.u64 %a{r}, %rd1, %o{r}; {place.guard} ld.shared.u32 %v{r}, [%a{r}];
            {behind}{i}:"""
    text = entry(
        "u64 data, u32 first, u32 barrier, u32 then, u32 fresh, u32 unused",
        f"""
.reg .b64 %o<200>, %a<200>; .reg .b32 %i<200>, %v<200>;
mov.u32 %r1, %tid.x; mov.u32 %r4, 7; ld.param.u32 %r5, [fresh]; ld.param.u64 %rd2, [data];
rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r1, 70;
mov.u64 %rd1, words; mul.wide.u32 %rd3, %r1, {size}; add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
setp.lt.u32 %p3, %r1, %r5; @%p3 bra CLEARED; st.shared.u32 [%rd4], %r4; CLEARED: bar.sync 0;
ld.param.u32 %r3, [first]; {reads["A"]}
ld.param.u32 %r6, [barrier];
setp.ne.u32 %p4, %r6, 1; @%p4 bra BEFORE; bar.sync 0; BEFORE:
cp.async.ca.shared.global [%rd4], [%rd5], {size};
{wait}
setp.ne.u32 %p4, %r6, 2; @%p4 bra BEHIND; bar.sync 0; BEHIND:
ld.param.u32 %r3, [then]; {reads["B"]}""",
        f".shared .align 16 .b8 words[{THREADS * size}];",
    )
    kinds = (ParameterKind.READ_ONLY, *KINDS[1:])
    made = kernels(text, kinds)
    none = len(places)
    for (i, place), barrier in itertools.product(enumerate(places), (0, 1, 2)):
        users = filter(place.is_for, range(THREADS))
        of_others = any(place.word(thread) != thread for thread in users)
        before = {Hazard.RACE} if of_others and barrier != 1 else set()
        later = {Hazard.RACE} if (of_others and barrier != 2) or not has_arrived else set()
        assert_found(made, size, before, i, barrier, none, 0, 0, writable=False)
        fresh = 0 if later else THREADS
        assert_found(made, size, later, none, barrier, i, fresh, 0, writable=False)


BARRIERS = {
    # name: (body, which hazards)
    "all": ("bar.sync 0;", set()),
    "all but two warps": ("@%p1 bra END; bar.sync 0; END:", {Hazard.EARLY_RETURN}),
    "all but some lanes": ("@%p2 bra END; bar.sync 0; END:", {Hazard.EARLY_RETURN}),
    "all, two warps elsewhere": (
        "@%p1 bra HERE; bar.sync 0; bra END; HERE: bar.sync 0; END:",
        set(),
    ),
    "all, some lanes elsewhere": (
        "@%p2 bra HERE; bar.sync 0; bra END; HERE: bar.sync 0; END:",
        {Hazard.DIVERGENT_BARRIER},
    ),
}


@pytest.mark.parametrize("name", BARRIERS)
def test_who_comes_to_a_barrier(name: str) -> None:
    body, wanted = BARRIERS[name]
    text = entry(
        "u64 data, u32 a, u32 b, u32 c, u32 d, u32 e",
        f"""
mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 64; setp.lt.u32 %p2, %r1, 16;
{body}""",
    )
    found, _ = check(kernels(text), 4, *[0] * 5)
    assert found == wanted


@pytest.mark.parametrize("apart", [0, THREADS])
def test_a_block_that_threads_run_races_with_others(apart: int) -> None:
    """The second block leaves the vector path, because a number of its threads wraps around."""
    text = entry(
        "u64 data, u32 wraps, u32 b, u32 c, u32 d, u32 apart",
        """
ld.param.u64 %rd1, [data]; ld.param.u32 %r2, [wraps]; ld.param.u32 %r3, [apart];
mov.u32 %r1, %tid.x; mov.u32 %r4, %ctaid.x; setp.ge.u32 %p1, %r1, 64;
mul.lo.u32 %r5, %r4, %r3; mul.lo.u32 %r6, %r4, %r2;
mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
add.u32 %r7, %r1, %r6; mul.wide.u32 %rd4, %r7, 4; add.u64 %rd5, %rd3, %rd4;
@%p1 st.global.u32 [%rd5], %r1;""",
    )
    wraps = (1 << 32) - 32
    found = check(kernels(text), 4, wraps, 0, 0, 0, apart)
    assert found == ((set(), 1) if apart else ({Hazard.RACE}, 0))


@pytest.mark.parametrize("place", [PLACES[0], PLACES[5]], ids=lambda place: place.name)
def test_a_block_reads_nothing_that_an_earlier_block_wrote(place: Place) -> None:
    text = entry(
        "u64 data, u32 writing, u32 b, u32 c, u32 d, u32 e",
        f"""
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; ld.param.u32 %r3, [writing];
mov.u64 %rd1, words; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
setp.lt.u32 %p1, %r2, %r3; @%p1 st.shared.u32 [%rd3], %r1; bar.sync 0;
{place.text.replace("INDEX", "%r4")}
mul.wide.u32 %rd4, %r4, 4; add.u64 %rd5, %rd1, %rd4; ld.shared.u32 %r5, [%rd5];""",
        f".shared .align 16 .b8 words[{THREADS * 4}];",
    )
    both = kernels(text)
    assert_found(both, 4, {Hazard.UNINITIALISED}, 1, 0, 0, 0, 0)
    assert_found(both, 4, set(), BLOCKS, 0, 0, 0, 0)


BULK_KERNEL = entry(
    "u64 data, u32 steps, u32 phases, u32 bytes, u32 place, u32 unused",
    Path(__file__).with_name("kernels").joinpath("waits_for_a_bulk_copy.ptx.in").read_text(),
    f".shared .align 16 .b8 words[{THREADS * 4}]; .shared .align 8 .b8 barrier[8];",
)
AFTER_INIT, WAIT, BEFORE_READ, BEFORE_COPY = 1, 2, 4, 8
READ_MBARRIER, WRITE_MBARRIER, FEW_READ = 16, 32, 64
"""The steps of this kernel: three barriers of the block, the wait, and two wrong accesses. Either
every thread reads a word, or only the first eight do."""


def test_bulk_copies_that_an_mbarrier_counts() -> None:
    kinds = (ParameterKind.READ_ONLY, *KINDS[1:])
    both = kernels(BULK_KERNEL, kinds)

    def found(steps: int, phases: int, size: int, place: int) -> tuple[set[Hazard], int]:
        return check(both, 4, steps, phases, size, place, 0, writable=False)

    whole = 4 * THREADS
    ordered = AFTER_INIT | WAIT | BEFORE_READ | BEFORE_COPY
    for steps, phases, place in itertools.product(range(16), (1, 2), (0, 1)):
        is_ordered = steps & AFTER_INIT and steps & WAIT and (phases == 1 or steps & BEFORE_COPY)
        hazards, vector_blocks = found(steps, phases, whole, place)
        assert (Hazard.RACE in hazards) == (not is_ordered), (steps, phases, place)
        # The vector path does not know that the wait alone orders the reads.
        assert vector_blocks == (BLOCKS if is_ordered and steps & BEFORE_READ else 0)
    assert found(ordered, 2, whole // 2, 0) == ({Hazard.UNINITIALISED}, 0)
    assert found(ordered | FEW_READ, 2, whole, 1) == (set(), BLOCKS)
    assert found((ordered | FEW_READ) & ~BEFORE_COPY, 2, whole, 1) == ({Hazard.RACE}, 0)
    assert found(ordered | READ_MBARRIER, 1, whole, 0)[0] == {Hazard.RACE, Hazard.UNINITIALISED}
    assert found(ordered | WRITE_MBARRIER, 1, whole, 0)[0] == {Hazard.RACE}


SOME_MESSAGES = [replace(test, first=WEAK_WRITE, second=WEAK_READ) for test in MESSAGES[::13]]
"""Messages by flag: a few of all combinations of fences and accesses."""


def messages_program(tests: Sequence[Litmus]) -> str:
    """A thread sends one of these messages to a later one, which need not wait for the flag. A
    number of the launch chooses the message."""
    body = ""
    for i, test in enumerate(tests):
        data, flag = f"%rd1+{4 * i}", f"%rd2+{4 * i}"

        def at(access: litmus.Access, word: str) -> str:
            return access.text.replace("SPACE", "global").replace("AT", word)

        body += f"""setp.ne.u32 %p2, %r5, {i}; @%p2 bra END{i};
            @!%p3 bra OTHER{i};
            {at(test.first, data)} {test.fence[0]} {at(test.set_flag, flag)}
            OTHER{i}: @!%p4 bra END{i};
            {at(test.get_flag, flag)} {test.other_fence[0]} {at(test.second, data)}
            END{i}:"""
    return entry(
        "u64 data, u64 flags, u32 first, u32 second, u32 number",
        f"""
ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flags];
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
ld.param.u32 %r3, [first]; ld.param.u32 %r4, [second]; ld.param.u32 %r5, [number];
setp.eq.u32 %p3, %r2, %r3; setp.eq.u32 %p4, %r2, %r4;
{body}""",
    )


SHARING = (ParameterKind.WRITABLE, ParameterKind.WRITABLE, *(ParameterKind.NUMBER,) * 3)


def assert_same(
    made: tuple[Kernel, Kernel], words: int, races: bool, numbers: Sequence[int]
) -> None:
    """Both paths find a race, or neither does; then the vector path decides."""

    def arguments() -> list[Buffer | int]:
        arrays = {name: np.zeros(words, np.uint32) for name in ("data", "flags")}
        return [*(Buffer(x, writable=True, name=name) for name, x in arrays.items()), *numbers]

    for kernel in made:
        kernel.reset_variables()
    found = check_both(made, (BLOCKS, 1, 1), arguments, numbers)
    assert found == (({Hazard.RACE}, 0) if races else (set(), BLOCKS)), numbers


def test_messages_by_flag_and_fence() -> None:
    made = kernels(messages_program(SOME_MESSAGES), SHARING)
    for number, test in enumerate(SOME_MESSAGES):
        for second, distance in ((100, litmus.CTA), (THREADS + 6, litmus.GPU)):
            races = test.races(distance) or test.flag_races(distance)
            assert_same(made, len(SOME_MESSAGES), races, (0, second, number))


@pytest.mark.parametrize("name", MEETINGS)
def test_barriers_and_fences_through_one_thread(name: str) -> None:
    load, atomic = (
        "ld.relaxed.gpu.global.u32 %r1, [%rd2]",
        "atom.relaxed.gpu.global.or.b32 %r1, [%rd2], 0",
    )
    text = litmus.meeting_program(name).replace(load, atomic)
    made = kernels(text, SHARING[:4])
    assert_same(made, 1, MEETINGS[name][-1], (0, 0))


ONE_WORD = {
    "weak load": "ld.global.u32 %r5, [%rd3];",
    "strong load": "ld.relaxed.gpu.global.u32 %r5, [%rd3];",
    "weak store": "st.global.u32 [%rd3], 7;",
    "strong store": "st.volatile.global.u32 [%rd3], 7;",
    "atomic": "atom.global.add.u32 %r5, [%rd3], 1;",
}
"""PTX by which all threads access one word."""


@pytest.mark.parametrize("name", ONE_WORD)
@pytest.mark.parametrize("memory", ["buffer", "variable"])
def test_one_thread_and_all_access_a_word(memory: str, name: str) -> None:
    base = "ld.param.u64 %rd1, [data];" if memory == "buffer" else "mov.u64 %rd1, words;"
    text = entry(
        "u64 data, u64 flags, u32 writer, u32 barrier, u32 apart",
        f"""
{base} mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
ld.param.u32 %r3, [apart]; mul.lo.u32 %r2, %r2, %r3;
mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;
ld.param.u32 %r3, [writer]; setp.eq.u32 %p1, %r1, %r3; @%p1 st.global.u32 [%rd3], %r1;
ld.param.u32 %r4, [barrier]; setp.eq.u32 %p2, %r4, 0; @%p2 bra MET;
bar.sync 0;
MET: {ONE_WORD[name]}""",
        f".global .align 4 .b8 words[{4 * BLOCKS}];",
    )
    made = kernels(text, SHARING)
    for writer, barrier, apart in itertools.product((0, 5, THREADS), (0, 1), (0, 1)):
        is_written = writer < THREADS
        of_others = is_written and not (barrier and apart)
        among_them = name == "weak store"
        assert_same(made, BLOCKS, of_others or among_them, (writer, barrier, apart))


def test_a_launch_that_threads_repeat_begins_as_at_first() -> None:
    """Each block takes a ticket, and the last one stores the number of tickets."""
    text = entry(
        "u64 data, u64 flags, u32 races, u32 b, u32 c",
        f"""
ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flags]; ld.param.u32 %r2, [races];
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r2, 1;
@%p2 st.global.u32 [%rd2], %r1;
@%p1 bra END;
atom.global.add.u32 %r3, [tickets], 1;
setp.ne.u32 %p3, %r3, {BLOCKS - 1}; @%p3 bra END;
add.u32 %r3, %r3, 1; st.global.u32 [%rd1], %r3;
END: ret;""",
        ".global .align 4 .u32 tickets;",
    )
    fast, slow = kernels(text, SHARING)
    for races, kernel in itertools.product((1, 0), (fast, slow)):
        kernel.reset_variables()
        data, flags = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        buffers = [Buffer(x, writable=True) for x in (data, flags)]
        result = kernel.check((BLOCKS, 1, 1), [*buffers, races, 0, 0])
        assert {each.hazard for each in result.findings} == ({Hazard.RACE} if races else set())
        assert data[0] == BLOCKS


def test_blocks_that_depend_and_never_end_reach_the_time_limit() -> None:
    text = entry(
        "",
        "AGAIN: ld.relaxed.gpu.global.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN;",
        ".global .align 4 .u32 flag;",
    )
    fast, _ = kernels(text, ())
    result = fast.check((1, 1, 1), [], seconds=0.5)
    assert result.fault
    assert result.fault.cause is Cause.TIME_LIMIT
    assert not result.findings


def test_bounds_of_a_store_are_checked_before_its_flags() -> None:
    by_vectors, _ = of_source((KERNELS / "stores_far_outside.cu").read_text())
    A, B = inputs(Shape(32, 16, 32))
    C = np.full((32, 32), np.nan, np.float32)
    arguments = [Buffer(A, name="A"), Buffer(B, name="B"), Buffer(C, True, name="C"), 32, 16, 32]
    found = by_vectors.check((2, 2, 1), arguments).findings
    assert {each.hazard for each in found} == {Hazard.OUT_OF_BOUNDS}


@dataclass(frozen=True)
class Straight:
    """An access of every thread, or of those with the guard, to the word this far behind its own;
    or a barrier, without an offset."""

    writes: bool = False
    offset: int | None = None
    is_guarded: bool = False

    def text(self) -> str:
        if self.offset is None:
            return "bar.sync 0;"
        at = f"[%rd1+{4 * self.offset}]"
        access = f"st.shared.u32 {at}, %r1;" if self.writes else f"ld.shared.u32 %r2, {at};"
        return f"{'@%p1 ' * self.is_guarded}{access}"


FAR = 2 * THREADS
"""The offset of words that nobody has written before."""


def straight(random: np.random.Generator) -> list[Straight]:
    """Draw steps without branches."""
    steps = []
    for _ in range(int(random.integers(3, 8))):
        offset = int(random.choice([0, 0, 1, 16, FAR, FAR]))
        step = Straight(bool(random.random() < 0.3), offset, bool(random.random() < 0.2))
        steps += [step] + [Straight()] * (random.random() < 0.3)
    return steps


def straight_model(steps: Sequence[Straight]) -> tuple[bool, bool]:
    """Return whether two of these steps race, and whether one reads an unwritten place."""
    touched: dict[int, list[tuple[int, bool]]] = {}
    written = set(range(FAR))
    races = is_unwritten = False
    for step in steps:
        if step.offset is None:
            touched = {}
            continue
        users = range(1, THREADS, 3) if step.is_guarded else range(THREADS)
        for thread in users:
            earlier = touched.setdefault(thread + step.offset, [])
            races |= any(other != thread and (step.writes or w) for other, w in earlier)
            is_unwritten |= not step.writes and thread + step.offset not in written
            earlier.append((thread, step.writes))
        if step.writes:
            written.update(thread + step.offset for thread in users)
    return races, is_unwritten


def test_loads_that_are_checked_together() -> None:
    """Loads with one base address are checked at the first of them, unless something is between."""
    random = np.random.default_rng(0)
    wanted = {(False, False): 16, (True, False): 10, (False, True): 10}
    own, others = Straight(offset=0), Straight(offset=1)
    drawn = [
        (steps, straight_model(steps))
        for steps in (
            [own, Straight(), others, Straight(True, 0)],
            [Straight(offset=0, is_guarded=True), others, Straight(True, 0)],
            [own, others, Straight(), Straight(True, 0)],
        )
    ]
    while any(wanted.values()):
        steps = straight(random)
        found = straight_model(steps)
        if wanted.get(found):
            wanted[found] -= 1
            drawn.append((steps, found))
    body = "".join(
        f"setp.ne.u32 %p2, %r4, {i}; @%p2 bra END{i}; "
        f"{' '.join(step.text() for step in steps)} END{i}:\n"
        for i, (steps, _) in enumerate(drawn)
    )
    text = entry(
        "u32 number",
        f"""
mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; mov.u64 %rd3, words; add.u64 %rd1, %rd3, %rd2;
rem.u32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 1; ld.param.u32 %r4, [number];
st.shared.u32 [%rd1], %r1; st.shared.u32 [%rd1+{4 * THREADS}], %r1; bar.sync 0;
{body}""",
        f".shared .align 4 .b8 words[{4 * (FAR + THREADS)}];",
    )
    both = kernels(text, (ParameterKind.NUMBER,))
    for number, (steps, found) in enumerate(drawn):
        kinds = zip((Hazard.RACE, Hazard.UNINITIALISED), found, strict=True)
        wanted = {kind for kind, is_found in kinds if is_found}
        result = check_both(both, (1, 1, 1), lambda number=number: [number], steps)
        assert result == (wanted, 0 if wanted else 1), steps


@pytest.mark.parametrize("writes_outside", [False, True])
def test_blocks_that_threads_run_again_race_only_with_others(writes_outside: bool) -> None:
    loop = "for (int i = 0; i < n; ++i) x += A[i]; __syncthreads(); *c = x;"
    body = f"int n = blockIdx.x == 2 ? (thread & 7) * 3 : 5; float x = 1; *c = 0; {loop}"
    if writes_outside:
        body += "if (blockIdx.x == 2 && (thread & 15) == 15) c[1] = 3;"
    a, b = inputs(Shape(64, 50, 64))
    c = Buffer(np.zeros((64, 64), np.float32), writable=True)
    made = of_source(KERNEL.format(body=body))
    arguments = [Buffer(a), Buffer(b), c, 64, 50, 64]
    found, vector_blocks = check_both(made, (4, 4, 1), lambda: arguments, body)
    assert bool(found) is writes_outside
    assert writes_outside or vector_blocks == 12
