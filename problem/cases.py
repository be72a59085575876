"""The cases: shapes and inputs that every submission must survive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

CASES_VERSION = 5
"""Raised whenever the list below or the way to draw inputs changes: results of two versions
are not comparable."""


@dataclass(frozen=True, slots=True)
class Shape:
    """C[M×K] = A[M×N] · B[N×K]."""

    M: int
    N: int
    K: int

    def __post_init__(self) -> None:
        if min(self.M, self.N, self.K) < 1:
            raise ValueError(f"every size is at least 1, not {self}")

    def __str__(self) -> str:
        return f"{self.M}×{self.N}×{self.K}"

    @property
    def flop(self) -> int:
        """Floating-point operations of the ordinary algorithm."""
        return 2 * self.M * self.N * self.K


class Inputs(StrEnum):
    """The ways to draw A and B."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    WIDE = "uniform -10..10"
    POSITIVE = "uniform 0..1"
    INTEGERS = "small integers"
    ODD_INTEGERS = "12-bit odd integers"
    IDENTITY = "identity"
    ZEROS = "zeros"
    ONE_HOT = "one hot"
    SCALED_UP = "scaled by 2^20"
    SCALED_DOWN = "scaled by 2^-20"
    SCALED_GROUPS = "groups scaled by 2^±10"
    WIDE_ROWS = "elements scaled by 2^±10"
    CHANGING_SCALE = "scale changes within rows and columns"
    SCALED_BLOCKS = "blocks scaled by 2^±10"
    LONE_ROWS = "single rows and columns scaled by 2^±10"
    LONE_IN_A = "single elements of A are 2^20"
    LONE_IN_B = "single elements of B are 2^20"
    ONES_TWOS = "ones times twos"


EXACT_INPUTS = frozenset(
    {
        Inputs.INTEGERS,
        Inputs.ODD_INTEGERS,
        Inputs.ZEROS,
        Inputs.ONE_HOT,
        Inputs.ONES_TWOS,
    }
)
"""Inputs whose every partial sum is exact in FP32, in any order: the product must be exact too."""


@dataclass(frozen=True, slots=True)
class Case:
    """One shape with one way to draw its inputs."""

    shape: Shape
    inputs: Inputs = Inputs.UNIFORM

    def __str__(self) -> str:
        return f"{self.shape} {self.inputs.value}"

    @property
    def exact(self) -> bool:
        """Whether |C - R| < 1e-5 must hold literally, element by element."""
        return self.inputs in EXACT_INPUTS

    def draw(self, seed: int) -> tuple[Matrix, Matrix]:
        """A (M×N) and B (N×K), the same for the same case and seed."""
        shape = self.shape
        generator = np.random.default_rng(
            [seed, shape.M, shape.N, shape.K, list(Inputs).index(self.inputs)]
        )
        return _DRAW[self.inputs](generator, shape)


def _uniform(generator: Generator, rows: int, columns: int, low: float, high: float) -> Matrix:
    matrix = generator.random((rows, columns), dtype=np.float32)
    matrix *= np.float32(high - low)
    matrix += np.float32(low)
    return matrix


def _between(low: float, high: float, scale: float = 1.0) -> Callable[[Generator, Shape], Pair]:
    def draw(generator: Generator, shape: Shape) -> Pair:
        factor = np.float32(scale)
        A = _uniform(generator, shape.M, shape.N, low, high)
        B = _uniform(generator, shape.N, shape.K, low, high)
        if scale != 1.0:
            A *= factor
            B *= factor
        return A, B

    return draw


def _normal(generator: Generator, shape: Shape) -> Pair:
    return (
        generator.standard_normal((shape.M, shape.N), dtype=np.float32),
        generator.standard_normal((shape.N, shape.K), dtype=np.float32),
    )


def _integers(generator: Generator, shape: Shape) -> Pair:
    return (
        generator.integers(-32, 33, (shape.M, shape.N)).astype(np.float32),
        generator.integers(-32, 33, (shape.N, shape.K)).astype(np.float32),
    )


def _odd_integers(generator: Generator, shape: Shape) -> Pair:
    """Odd 12-bit integers need every bit of a 12-bit significand: TF32, BF16 and FP16 lose it."""
    A = generator.integers(1024, 2048, (shape.M, shape.N)) * 2 + 1
    A *= generator.choice((-1, 1), (shape.M, shape.N))
    B = generator.integers(-1, 2, (shape.N, shape.K))
    return A.astype(np.float32), B.astype(np.float32)


def _identity(generator: Generator, shape: Shape) -> Pair:
    A = np.eye(shape.M, shape.N, dtype=np.float32)
    return A, _uniform(generator, shape.N, shape.K, -1, 1)


def _zeros(generator: Generator, shape: Shape) -> Pair:
    return (
        np.zeros((shape.M, shape.N), np.float32),
        np.zeros((shape.N, shape.K), np.float32),
    )


def _one_hot(generator: Generator, shape: Shape) -> Pair:
    """One product, in one element of C; everything else is zero."""
    A, B = _zeros(generator, shape)
    along = generator.integers(shape.N)
    A[generator.integers(shape.M), along] = 3
    B[along, generator.integers(shape.K)] = 5
    return A, B


def _scaled_groups(generator: Generator, shape: Shape) -> Pair:
    """Each group of 8 rows of A and of 8 columns of B has a magnitude of its own."""
    A = _uniform(generator, shape.M, shape.N, -1, 1)
    B = _uniform(generator, shape.N, shape.K, -1, 1)
    rows = np.repeat(generator.integers(-10, 11, -(-shape.M // 8)), 8)[: shape.M]
    columns = np.repeat(generator.integers(-10, 11, -(-shape.K // 8)), 8)[: shape.K]
    A *= np.exp2(rows).astype(np.float32)[:, None]
    B *= np.exp2(columns).astype(np.float32)[None, :]
    return A, B


def _wide_rows(generator: Generator, shape: Shape) -> Pair:
    """Each element of A, or else each of B, has a magnitude of its own, so that every row, or every
    column, has a wide range. Not both: then single products decide an element, and splits into two
    BF16 parts, which are right on average, would fail in blocks of few elements."""
    A = _uniform(generator, shape.M, shape.N, -1, 1)
    B = _uniform(generator, shape.N, shape.K, -1, 1)
    wide = (A, B)[generator.integers(2)]
    wide *= np.exp2(generator.integers(-10, 11, wide.shape)).astype(np.float32)
    return A, B


def _changing_scale(generator: Generator, shape: Shape) -> Pair:
    """Each row of A, or else each column of B, has a scale of its own from some place on: what its
    first elements look like says nothing of the rest. Not both, as in _wide_rows."""
    A = _uniform(generator, shape.M, shape.N, -1, 1)
    B = _uniform(generator, shape.N, shape.K, -1, 1)
    lines = (A, B.T)[generator.integers(2)]
    behind = np.arange(shape.N) >= _places(generator, shape.N, len(lines))[:, None]
    lines *= np.where(behind, _scales(generator, len(lines))[:, None], np.float32(1))
    return A, B


def _scaled_blocks(generator: Generator, shape: Shape) -> Pair:
    """Some rectangles of A and of B have a scale of their own, wherever they lie."""
    A = _uniform(generator, shape.M, shape.N, -1, 1)
    B = _uniform(generator, shape.N, shape.K, -1, 1)
    A *= _rectangles(generator, shape.M, shape.N)
    B *= _rectangles(generator, shape.K, shape.N).T
    return A, B


def _lone_rows(generator: Generator, shape: Shape) -> Pair:
    """A few rows of A, or else a few columns of B, wherever they lie, have a scale of their own.
    Not both: then a single element would decide the error of its block."""
    A = _uniform(generator, shape.M, shape.N, -1, 1)
    B = _uniform(generator, shape.N, shape.K, -1, 1)
    lines = (A, B.T)[generator.integers(2)]
    lone = generator.integers(len(lines), size=1 + len(lines) // 64)
    lines[lone] *= _scales(generator, len(lone))[:, None]
    return A, B


def _lone_elements(matrix: int) -> Callable[[Generator, Shape], Pair]:
    """One element of each quarter of A (0) or B (1), wherever it lies, is 2^20.

    Who looks at a share f of the elements, chosen beforehand in whatever way, finds none of the
    four with a probability of about (1 - f)^4, and of 1 - 4f at least. What is accurate only if the
    rest is like that share is then wrong: beside 2^20 FP16 overflows, and sums of quarters lose 20
    bits. Each lies in an eighth of the rows and of the columns that is no other's, for a block of C
    that holds a large row forgives the rows beside it. Powers of two have no low part: splits into
    two BF16 parts are right on average only, and single products decide these rows.
    """

    def draw(generator: Generator, shape: Shape) -> Pair:
        A = _uniform(generator, shape.M, shape.N, -1, 1)
        B = _uniform(generator, shape.N, shape.K, -1, 1)
        chosen = (A, B)[matrix]
        turns = generator.integers(4, size=2)
        for number, quarter in enumerate(((0, 0), (0, 1), (1, 1), (1, 0))):
            eighths = 4 * np.array(quarter) + (number ^ turns)
            low, high = (part * np.array(chosen.shape) // 8 for part in (eighths, eighths + 1))
            if (low < high).all():
                chosen[tuple(generator.integers(low, high))] = 2.0**20
        return A, B

    return draw


def _scales(generator: Generator, count: int) -> NDArray[np.float32]:
    return np.exp2(generator.integers(-10, 11, count)).astype(np.float32)


def _places(generator: Generator, length: int, count: int) -> NDArray[np.int64]:
    """Places that leave at least an eighth on either side: where single products decide an element,
    splits into two BF16 parts, which are right on average, would fail."""
    return generator.integers(-(-length // 8), length - length // 8 + 1, count)


def _rectangles(generator: Generator, rows: int, length: int) -> NDArray[np.float32]:
    """Factors with six rectangles of any height in them, each at least an eighth of `length`."""
    factors = np.ones((rows, length), np.float32)
    for scale in _scales(generator, 6):
        top, left = generator.integers(rows), generator.integers(length)
        height = 1 + generator.integers(rows)
        width = -(-length // 8) + generator.integers(length)
        factors[top : top + height, min(left, length - length // 8) : left + width] = scale
    return factors


def _ones_twos(generator: Generator, shape: Shape) -> Pair:
    return (
        np.ones((shape.M, shape.N), np.float32),
        np.full((shape.N, shape.K), 2, np.float32),
    )


Pair = tuple[Matrix, Matrix]

_DRAW: dict[Inputs, Callable[[Generator, Shape], Pair]] = {
    Inputs.UNIFORM: _between(-1, 1),
    Inputs.NORMAL: _normal,
    Inputs.WIDE: _between(-10, 10),
    Inputs.POSITIVE: _between(0, 1),
    Inputs.INTEGERS: _integers,
    Inputs.ODD_INTEGERS: _odd_integers,
    Inputs.IDENTITY: _identity,
    Inputs.ZEROS: _zeros,
    Inputs.ONE_HOT: _one_hot,
    Inputs.SCALED_UP: _between(-1, 1, 2.0**20),
    Inputs.SCALED_DOWN: _between(-1, 1, 2.0**-20),
    Inputs.SCALED_GROUPS: _scaled_groups,
    Inputs.WIDE_ROWS: _wide_rows,
    Inputs.CHANGING_SCALE: _changing_scale,
    Inputs.SCALED_BLOCKS: _scaled_blocks,
    Inputs.LONE_ROWS: _lone_rows,
    Inputs.LONE_IN_A: _lone_elements(0),
    Inputs.LONE_IN_B: _lone_elements(1),
    Inputs.ONES_TWOS: _ones_twos,
}

RANKED = Case(Shape(8192, 6144, 4096))
"""The size that is scored."""

OTHER_SIZES = (
    Shape(1024, 1024, 1024),
    Shape(2048, 2048, 2048),
    Shape(4096, 4096, 4096),
    Shape(8192, 8192, 8192),
    Shape(16384, 128, 16384),
    Shape(256, 256, 256),
    Shape(512, 512, 512),
    Shape(4096, 64, 4096),
    Shape(128, 16384, 128),
)
"""Scored for information where that is asked for: large, then small or flat."""

SIZES = (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257)
"""One either side of every power of two at which tiles end."""

_INPUT_SHAPES = (Shape(64, 512, 48), Shape(65, 129, 33))
"""Every way to draw inputs is tried on a multiple of 16 and on none."""

_PRECISION_CASES = (
    Case(Shape(33, 6144, 17)),
    Case(Shape(16, 16384, 32)),
    Case(Shape(48, 6144, 64), Inputs.NORMAL),
    Case(Shape(31, 16384, 33), Inputs.INTEGERS),
    Case(Shape(64, 4096, 16), Inputs.ODD_INTEGERS),
)
"""Long sums, where a truncating or low-precision accumulator shows."""

_SHAPE_CASES = (
    Case(Shape(16, 16, 16), Inputs.ONES_TWOS),
    Case(Shape(512, 384, 256)),
    Case(Shape(271, 137, 397)),
    Case(Shape(1, 1, 1)),
    Case(Shape(1, 257, 1)),
    Case(Shape(257, 1, 255)),
    Case(Shape(1, 64, 300)),
    Case(Shape(300, 64, 1)),
)
"""The first three show what is wrong best: a single block, a whole map, a map with edges."""


def _mixed(offset_N: int, offset_K: int) -> tuple[Case, ...]:
    """Each of SIZES once as M, once as N and once as K, mixed."""
    count = len(SIZES)
    return tuple(
        Case(Shape(SIZES[i], SIZES[(i + offset_N) % count], SIZES[(i + offset_K) % count]))
        for i in range(count)
    )


_QUARTER_CASES = (
    Case(Shape(512, 512, 512), Inputs.SCALED_BLOCKS),
    Case(Shape(512, 256, 1024), Inputs.CHANGING_SCALE),
    Case(Shape(1024, 256, 512), Inputs.CHANGING_SCALE),
    Case(Shape(512, 288, 512), Inputs.CHANGING_SCALE),
)
"""Sizes that divide well, where a kernel may mix parts of A and B that differ in scale."""

CASES: tuple[Case, ...] = (
    *_SHAPE_CASES,
    *_mixed(5, 11),
    *_mixed(8, 3),
    *(
        Case(shape, inputs)
        for shape in _INPUT_SHAPES
        for inputs in Inputs
        if inputs is not Inputs.UNIFORM
    ),
    *_PRECISION_CASES,
    *_QUARTER_CASES,
)
"""What every grading verifies before the ranked size. One shape comes many times in a row, each
time with other inputs: a kernel that hands out its last result again is found out."""

QUICK_CASES: tuple[Case, ...] = (
    *_SHAPE_CASES,
    *_mixed(5, 11)[::2],
    Case(_INPUT_SHAPES[1], Inputs.ODD_INTEGERS),
    Case(_INPUT_SHAPES[1], Inputs.SCALED_GROUPS),
    Case(_INPUT_SHAPES[1], Inputs.WIDE_ROWS),
    Case(_INPUT_SHAPES[1], Inputs.CHANGING_SCALE),
    _QUARTER_CASES[0],
    _PRECISION_CASES[0],
)
"""A sample for `--quick`: enough to steer by while tuning, not enough to be ranked."""


def random_cases(seed: int, count: int) -> tuple[Case, ...]:
    """Small cases of shapes and inputs that are not known before the grading."""
    generator = np.random.default_rng([seed, CASES_VERSION])
    return tuple(
        Case(
            Shape(*(int(size) for size in generator.integers(1, 400, 3))),
            Inputs(generator.choice(list(Inputs))),
        )
        for _ in range(count)
    )


MID_SIZE_INPUTS = (
    Inputs.UNIFORM,
    Inputs.CHANGING_SCALE,
    Inputs.SCALED_BLOCKS,
    Inputs.NORMAL,
    Inputs.LONE_ROWS,
    Inputs.LONE_IN_A,
    Inputs.LONE_IN_B,
    Inputs.INTEGERS,
)


def mid_size_cases(seed: int, count: int, max_flop: int) -> tuple[Case, ...]:
    """Cases between the small sizes and the ranked one, not known before the grading: M and K from
    513 to 4095, every other one in multiples of 256; N from 64 on, as far as the work allows."""
    generator = np.random.default_rng([seed, CASES_VERSION, 1])
    inputs = generator.permutation(list(MID_SIZE_INPUTS))
    cases = []
    for number in range(count):
        N = int(generator.integers(64, min(2048, max_flop // (3 * 513 * 513)) + 1))
        M = int(generator.integers(513, min(4095, max_flop // (2 * N * 513)) + 1))
        K = int(generator.integers(513, min(4095, max_flop // (2 * N * M)) + 1))
        if number % 2:
            M, N, K = max(512, M // 256 * 256), N // 32 * 32, max(512, K // 512 * 512)
        cases.append(Case(Shape(M, N, K), Inputs(inputs[number % len(inputs)])))
    return tuple(cases)


_LONE_INPUTS = (Inputs.LONE_IN_A, Inputs.LONE_IN_B)


def lone_element_cases(seed: int, count: int) -> tuple[Case, ...]:
    """Sizes that divide well, not known before the grading, at which a look at some elements does
    not tell what the others are like: in turn of A and of B. Who looks at one element in 64 gets
    past eight of them with a probability of 2e-10, past eight of one matrix alone with 1.4e-5."""
    generator = np.random.default_rng([seed, CASES_VERSION, 5])
    return tuple(
        Case(
            Shape(*(64 * int(size) for size in generator.integers(5, 10, 3))),
            _LONE_INPUTS[number % 2],
        )
        for number in range(count)
    )


def lone_element_case(shape: Shape, seed: int) -> Case:
    """How the ranked size is verified, which is timed on inputs of other kinds, too."""
    return Case(shape, _LONE_INPUTS[np.random.default_rng([seed, CASES_VERSION, 6]).integers(2)])


def counting_case(seed: int) -> Case:
    """What memory traffic is counted on: enough for several tiles, in multiples of 16, and not
    known before the grading."""
    generator = np.random.default_rng([seed, CASES_VERSION, 4])
    return Case(Shape(*(int(size) for size in generator.choice((208, 224, 240, 272, 288, 304), 3))))
