"""Random programs whose blocks share global memory race as a model says, on both paths.

Neighbouring lanes access neighbouring words, so that the checks handle whole lines at once. Other
accesses, to parts of lines or in another order of lanes, divide them. Blocks run one after the
other. Flags with fences order them, or do not.
"""

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from harness.ptxcpu.arguments import Buffer, ParameterKind
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.results import Hazard
from tests.ptxcpu.programs import both_paths, check_both, entry

THREADS, BLOCKS, WORDS, MOST_STEPS = 128, 3, 64, 20
END, BARRIER, FENCE, SET_FLAG, GET_FLAG, STRONG_LOAD, STRONG_STORE, LOAD, STORE = range(9)
WIDE_LOAD, WIDE_STORE = 9, 10
WIDE = 4
"""The words of a wide access."""


@dataclass(frozen=True)
class Step:
    """An access by `count` threads of a block.

    at: the word of thread `first`, or the number of a flag.
    stride: the distance in words between the accesses of neighbouring threads.
    """

    kind: int
    first: int = 0
    count: int = 1
    at: int = 0
    stride: int = 1

    @property
    def writes(self) -> bool:
        return self.kind in (STORE, WIDE_STORE, STRONG_STORE)

    @property
    def is_strong(self) -> bool:
        return self.kind in (STRONG_LOAD, STRONG_STORE)

    def words(self, thread: int) -> range:
        """Return the words that a thread accesses."""
        if self.kind < STRONG_LOAD or not 0 <= thread - self.first < self.count:
            return range(0)
        begin = self.at + (thread - self.first) * self.stride
        return range(begin, begin + (WIDE if self.kind >= WIDE_LOAD else 1))


Program = tuple[tuple[Step, ...], ...]
"""The steps of each block."""

OPERATIONS = {
    FENCE: "@%p2 fence.acq_rel.gpu;",
    SET_FLAG: "@%p2 st.relaxed.gpu.global.u32 [%rd12], 1;",
    GET_FLAG: "@%p2 ld.relaxed.gpu.global.u32 %r30, [%rd12];",
    STRONG_LOAD: "@%p2 ld.relaxed.gpu.global.u32 %r30, [%rd11];",
    STRONG_STORE: "@%p2 st.relaxed.gpu.global.u32 [%rd11], %r1;",
    LOAD: "@%p2 ld.global.u32 %r30, [%rd11];",
    STORE: "@%p2 st.global.u32 [%rd11], %r1;",
    WIDE_LOAD: "@%p2 ld.global.v4.u32 {%r30, %r31, %r32, %r33}, [%rd11];",
    WIDE_STORE: "@%p2 st.global.v4.u32 [%rd11], {%r1, %r1, %r1, %r1};",
}
PTX = entry(
    "u64 data, u64 flags, u64 steps",
    f"""
ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flags]; ld.param.u64 %rd3, [steps];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd4, %r2, {20 * MOST_STEPS};
add.u64 %rd3, %rd3, %rd4;
NEXT: ld.global.u32 %r10, [%rd3]; ld.global.u32 %r11, [%rd3+4]; ld.global.u32 %r12, [%rd3+8];
ld.global.u32 %r13, [%rd3+12]; ld.global.u32 %r14, [%rd3+16]; add.u64 %rd3, %rd3, 20;
setp.eq.u32 %p1, %r10, {END}; @%p1 bra LEAVE;
setp.eq.u32 %p1, %r10, {BARRIER}; @!%p1 bra WORK; bar.sync 0; bra NEXT; WORK:
sub.u32 %r20, %r1, %r11; setp.lt.u32 %p2, %r20, %r12; mad.lo.s32 %r21, %r20, %r14, %r13;
mul.wide.s32 %rd10, %r21, 4; add.s64 %rd11, %rd1, %rd10; add.s64 %rd12, %rd2, %rd10;
"""
    + "".join(
        f"setp.eq.u32 %p1, %r10, {kind}; @!%p1 bra L{kind}; {text} bra NEXT; L{kind}:\n"
        for kind, text in OPERATIONS.items()
    )
    + "LEAVE:",
)


class Model:
    """Finds the races of a program. The accesses that a thread knows are bits of a number."""

    def __init__(self, program: Program) -> None:
        self.racing: set[tuple[Step, Step]] = set()
        self.reads_unwritten = False
        self.is_forgetful = False
        """The checks keep too few accesses to a word to decide."""
        self._accesses: list[Step] = []
        self._of_word: dict[int, list[int]] = defaultdict(list)
        self._published: dict[tuple[bool, int], int] = defaultdict(int)
        for steps in program:
            known, fenced, pending = ([0] * THREADS for _ in range(3))
            for step in steps:
                if step.kind == BARRIER:
                    for each in (known, fenced, pending):
                        each[:] = [functools.reduce(operator.or_, each)] * THREADS
                for t in range(step.first, step.first + step.count):
                    if step.kind == FENCE:
                        known[t] |= pending[t]
                        pending[t], fenced[t] = 0, known[t]
                    for word in step.words(t):
                        known[t] |= self._access(word, step, known[t])
                    place = step.is_strong, step.at + (t - step.first) * step.stride
                    if step.kind in (SET_FLAG, STRONG_STORE):
                        self._published[place] = fenced[t]
                    elif step.kind in (GET_FLAG, STRONG_LOAD):
                        pending[t] |= self._published[place]

    def _access(self, word: int, step: Step, known: int) -> int:
        """Return the bit of this access to a word by a thread that knows these earlier ones."""
        number = len(self._accesses)
        earlier = [(self._accesses[other], known >> other & 1) for other in self._of_word[word]]
        self._accesses.append(step)
        self._of_word[word].append(number)
        unordered = [before for before, is_known in earlier if not is_known]
        ordered = [before for before, is_known in earlier if is_known]
        for before in unordered:
            if (step.writes or before.writes) and not (step.is_strong and before.is_strong):
                self.racing.add((before, step))
        if step.writes:
            self.is_forgetful |= step.is_strong and any(x.writes and x.is_strong for x in unordered)
        else:
            self.reads_unwritten |= not any(before.writes for before, _ in earlier)
            kept = [x for x in unordered if not x.writes]
            kept += [x for x in ordered if not x.writes and step.is_strong and not x.is_strong]
            self.is_forgetful |= len(kept) > 1
        return 1 << number


def drawn(random: np.random.Generator) -> Program:
    """Draw a program. The same thread of each block makes all its strong accesses, and no flag is
    set twice."""

    def access() -> Step:
        kind = int(random.choice([LOAD, STORE, WIDE_LOAD, WIDE_STORE]))
        width = WIDE if kind >= WIDE_LOAD else 1
        first, line = int(random.choice([0, 0, 0, 16, 67])), 16 * int(random.integers(2))
        if random.random() < 0.2:
            return Step(int(random.choice([STRONG_LOAD, STRONG_STORE])), 5, 1, line + 5)
        part = random.random()
        if part < 0.4:
            return Step(kind, first, 16 // width, line, width)
        if part < 0.6:  # a row that begins within a line
            return Step(kind, first, 16 // width, 4, width)
        if part < 0.7:
            return Step(kind, first, 32 // width, 0, width)
        if part < 0.8:
            return Step(kind, first, 16 // width, line + 16 - width, -width)
        if part < 0.85:
            return Step(kind, first, 8 // width, line, 2 * width)
        count = int(random.integers(1, 16 // width))
        return Step(kind, first, count, line + width * int(random.integers(4)), width)

    program = []
    for block in range(BLOCKS):
        steps: list[Step] = []
        for flag in range(block):
            if random.random() < 0.7:
                steps += [Step(GET_FLAG, 0, 1, flag), Step(FENCE)]
                steps += [Step(BARRIER)] * (random.random() < 0.9)
                steps += [Step(FENCE, 0, THREADS)] * (random.random() < 0.3)
        for _ in range(int(random.integers(1, 3))):
            steps += [access()] + [Step(BARRIER)] * (random.random() < 0.6)
        if random.random() < 0.8:
            steps += [Step(FENCE, 0, THREADS)] * (random.random() < 0.3)
            steps += [Step(BARRIER)] * (random.random() < 0.8)
            steps += [Step(FENCE), Step(SET_FLAG, 0, 1, block)]
        program.append(tuple(steps))
    return tuple(program)


def programs(random: np.random.Generator, count: int) -> Iterator[tuple[Program, Model]]:
    """Draw programs: half of them without a race, and half with a race of one pair of steps."""
    wanted = [count // 2, count // 2]
    while any(wanted):
        program = drawn(random)
        model = Model(program)
        races = len(model.racing)
        if races > 1 or model.is_forgetful or not wanted[races]:
            continue
        wanted[races] -= 1
        yield program, model


def table(program: Program) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    steps = np.zeros((BLOCKS, MOST_STEPS, 5), np.int32)
    for block, each in enumerate(program):
        for i, step in enumerate(each):
            steps[block, i] = step.kind, step.first, step.count, step.at, step.stride
    return steps


@pytest.fixture(scope="module")
def both() -> tuple[Kernel, Kernel]:
    kinds = (ParameterKind.WRITABLE, ParameterKind.WRITABLE, ParameterKind.READ_ONLY)
    return both_paths(PTX, kinds, THREADS)


def assert_both(
    both: tuple[Kernel, Kernel], program: Program, model: Model, *, fresh: bool
) -> None:
    """Both paths find what the model says; where it is nothing, the vector path decides."""
    wanted = {Hazard.RACE} if model.racing else set()
    if fresh and model.reads_unwritten:
        wanted.add(Hazard.UNINITIALISED)

    def arguments() -> list[Buffer]:
        data, flags = np.zeros(WORDS, np.uint32), np.zeros(BLOCKS, np.uint32)
        return [
            Buffer(data, writable=True, name="data", initialised=not fresh),
            Buffer(flags, writable=True, name="flags"),
            Buffer(table(program)),
        ]

    found = check_both(both, (BLOCKS, 1, 1), arguments, program)
    assert found == (wanted, 0 if wanted else BLOCKS), program


@pytest.mark.parametrize("seed", range(6))
def test_blocks_that_share_lines(both: tuple[Kernel, Kernel], seed: int) -> None:
    for program, model in programs(np.random.default_rng(seed), 60):
        assert_both(both, program, model, fresh=False)
        if not model.racing:
            assert_both(both, program, model, fresh=True)


def sends(block: int) -> tuple[Step, ...]:
    """All that a block did before, and knew, is known to blocks that receive this."""
    return Step(BARRIER), Step(FENCE), Step(SET_FLAG, 0, 1, block)


def receives(block: int) -> tuple[Step, ...]:
    return Step(GET_FLAG, 0, 1, block), Step(FENCE), Step(BARRIER)


ACCESSES = {
    "a part of a line": {False: Step(LOAD, 0, 3), True: Step(STORE, 0, 3)},
    "a line": {False: Step(LOAD, 0, 16), True: Step(STORE, 0, 16)},
    "a line by few lanes": {
        False: Step(WIDE_LOAD, 0, 4, 0, WIDE),
        True: Step(WIDE_STORE, 0, 4, 0, WIDE),
    },
    "a line and a half": {False: Step(LOAD, 0, 24), True: Step(STORE, 0, 24)},
    "a word, strongly": {False: Step(STRONG_LOAD, 5, 1, 1), True: Step(STRONG_STORE, 5, 1, 1)},
}
FIRST = {
    "strong store": Step(STRONG_STORE, 5, 1, 1),
    "strong load": Step(STRONG_LOAD, 5, 1, 1),
    "load": Step(LOAD, 1, 1, 1),
    "store": Step(STORE, 1, 1, 1),
}


@pytest.mark.parametrize("name", ACCESSES)
@pytest.mark.parametrize("first", [*FIRST, "load of a line", "store to a line"])
def test_three_blocks_of_which_any_are_ordered(
    both: tuple[Kernel, Kernel], name: str, first: str
) -> None:
    """The first access of three, and the second, may be ordered with the last one, or not."""
    line = ACCESSES[name]
    begin = line[first.startswith("store")] if "line" in first else FIRST[first]
    for writes, orders in itertools.product(
        itertools.product((False, True), repeat=2), itertools.product((False, True), repeat=3)
    ):
        second, third = (line[each] for each in writes)
        program = (
            (begin, *sends(0)),
            (*(receives(0) * orders[0]), second, *sends(1)),
            (*(receives(0) * orders[1]), *(receives(1) * orders[2]), third),
        )
        model = Model(program)
        if not model.is_forgetful:
            assert_both(both, program, model, fresh=False)


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("is_sent_by_all", [False, True])
def test_lanes_of_which_one_knows_an_earlier_access(
    both: tuple[Kernel, Kernel], writes: bool, is_sent_by_all: bool
) -> None:
    """A fence without a barrier makes known what one lane did. The others' reads are not."""
    line = ACCESSES["a line"]
    program = (
        (line[writes], *sends(0)[0 if is_sent_by_all else 1 :]),
        (*receives(0), line[False], *sends(1)),
        (*receives(1), line[True]),
    )
    model = Model(program)
    assert bool(model.racing) != is_sent_by_all
    assert_both(both, program, model, fresh=False)


@pytest.mark.parametrize("width", [1, WIDE])
@pytest.mark.parametrize("stride", [1, 2])
def test_parts_of_a_line_race_if_they_overlap(
    both: tuple[Kernel, Kernel], width: int, stride: int
) -> None:
    kind = STORE if width == 1 else WIDE_STORE
    parts = list(itertools.combinations(range(0, 17, 4), 2))
    for (begin, end), (other_begin, other_end) in itertools.product(parts, repeat=2):
        one = Step(kind, 0, (end - begin) // width, begin, stride * width)
        other = Step(kind, 20, (other_end - other_begin) // width, other_begin, width)
        program = ((one, *sends(0)), (other,), ())
        assert_both(both, program, Model(program), fresh=False)


@pytest.mark.parametrize("begin", [0, 4, 12])
def test_reads_of_a_line_of_which_a_part_is_written(
    both: tuple[Kernel, Kernel], begin: int
) -> None:
    """When a thread writes a part of the line, all earlier reads of that part are remembered."""
    line, part = ACCESSES["a line"][False], Step(STORE, begin, 16 - begin, begin)
    for known in itertools.product((False, True), repeat=2):
        program = (
            (line, *([part] * all(known)), *sends(0)),
            (*(receives(0) * all(known)), line, *sends(1)),
            (*(receives(0) * known[0]), *(receives(1) * known[1]), part),
        )
        model = Model(program)
        assert bool(model.racing) != all(known)
        assert_both(both, program, model, fresh=False)


@pytest.mark.parametrize("meets", [False, True])
def test_lanes_of_which_one_has_received(both: tuple[Kernel, Kernel], meets: bool) -> None:
    line = ACCESSES["a line"]
    received = receives(0) if meets else receives(0)[:-1]
    program = ((line[True], *sends(0)), (*received, line[False]), ())
    model = Model(program)
    assert bool(model.racing) != meets
    assert_both(both, program, model, fresh=False)
