"""The cases: shapes and inputs on which every submission must be correct."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.random import Generator

from problem import inputs as drawing
from problem.inputs import (
    Distribution,
    Draw,
    Kind,
    Magnitude,
    Outliers,
    Recipe,
    Structure,
    Tolerance,
    draws,
    mixed,
)

Matrix = drawing.Matrix

CASES_VERSION = 11
"""This is raised whenever the cases below or the way to draw inputs change: results of different
versions are not comparable."""


FEWEST = 16
"""The block rule needs at least this many products per sum, and elements of C."""


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

    @property
    def elements(self) -> int:
        """Elements of A, B and C together."""
        return self.M * self.N + self.N * self.K + self.M * self.K


@dataclass(frozen=True, slots=True)
class Case:
    """A shape with a kind of inputs, written as `problem.inputs.Kind` reads it."""

    shape: Shape
    inputs: str = "uniform"

    def __str__(self) -> str:
        return f"{self.shape} {self.inputs}"

    @property
    def tolerance(self) -> Tolerance:
        """How far C may be from the reference. The error of a block is an average, so with few
        products or few elements the limit of structured inputs applies instead."""
        found, shape = _kind(self.inputs).tolerance, self.shape
        few = min(shape.N, shape.M * shape.K) < FEWEST
        return Tolerance.STRUCTURED if few and found is Tolerance.RANDOM else found

    def draws(self, seed: int) -> tuple[Draw, Draw]:
        """Return how A and B are drawn. The result is the same for the same case and seed."""
        for size in (self.shape.M, self.shape.N, self.shape.K):
            seed = mixed(seed, size)
        return draws(_kind(self.inputs), seed)

    def draw(self, seed: int) -> tuple[Matrix, Matrix]:
        """Return A (M×N) and B (N×K). With SQUARED they are the same array, if the shape
        permits."""
        (of_A, of_B), shape = self.draws(seed), self.shape
        A = of_A.matrix(shape.M, shape.N)
        if self.inputs == SQUARED and shape.M == shape.N == shape.K:
            return A, A
        return A, of_B.matrix(shape.N, shape.K)


@cache
def _kind(text: str) -> Kind:
    return Kind.parse(UNIFORM if text == SQUARED else text)


# --------------------------------------------------------------------------------- named kinds

UNIFORM = "uniform"
SQUARED = "uniform, A and B one array"
NORMAL = "normal"
POSITIVE = "positive"
INTEGERS = "small integers"
ODD_INTEGERS = "A odd 12-bit integers; B signs"
ZEROS = "uniform, zero"
ONE_HOT = "uniform, one element"
ONES_TWOS = "A ones; B twos"
SCALED_GROUPS = "uniform, groups of lines scaled by 2^-10..2^10"
CHANGING_SCALE = "A uniform, lines from a place on scaled by 2^-10..2^10; B uniform"
SCALED_BLOCKS = "uniform, rectangles scaled by 2^-10..2^10"
LARGE_IN_A = "A uniform, outliers of 2^20; B uniform"
LARGE_IN_B = "A uniform; B uniform, outliers of 2^20"

SPECIAL_INPUTS = (
    "A uniform, NaN; B uniform, one element in ten",
    "A uniform, one element in ten; B uniform, NaN",
    "A uniform, infinity; B uniform, one element in ten",
    "A uniform, one element in ten; B uniform, infinity",
    "A uniform, rank one, lines scaled by 2^120..2^127; B uniform, rank one",
    "A uniform, rank one; B uniform, rank one, lines scaled by 2^120..2^127",
    "A uniform, all scaled by 2^-126..2^-126; B uniform",
    "A uniform; B uniform, all scaled by 2^-126..2^-126",
)
"""NaN and infinity that meet zeros, overflow of both signs, and subnormal numbers. Each is in A and
in B."""

_SUBNORMAL = SPECIAL_INPUTS[-2:]
"""At large sizes these are not drawn: an error of 2^-134 in each element, as of two BF16 numbers,
is correct, but a long sum of such errors is not."""

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
"""Sizes that are scored for information with `--sizes`: large, then small or flat."""

SIZES = (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257)
"""Powers of two at which tiles end, and the sizes one below and one above."""

_SHAPE_CASES = (
    Case(Shape(16, 16, 16), ONES_TWOS),
    Case(Shape(512, 384, 256)),
    Case(Shape(271, 137, 397)),
    Case(Shape(1, 1, 1)),
    Case(Shape(1, 257, 1)),
    Case(Shape(257, 1, 255)),
    Case(Shape(1, 64, 300)),
    Case(Shape(300, 64, 1)),
    Case(Shape(80, 80, 80), SQUARED),
)
"""The first three show errors best: a single block, many whole blocks, and blocks at edges."""

_EXACT_CASES = (
    Case(Shape(65, 129, 33), INTEGERS),
    Case(Shape(64, 512, 48), ODD_INTEGERS),
    Case(Shape(65, 129, 33), ONE_HOT),
    Case(Shape(64, 512, 48), ZEROS),
)

_STRUCTURED_CASES = (
    Case(Shape(64, 512, 48), "constant lines"),
    Case(Shape(65, 129, 33), "constant lines"),
    Case(Shape(65, 129, 33), "four levels"),
    Case(Shape(64, 512, 48), "uniform, repeated lines"),
)

_PRECISION_CASES = (
    Case(Shape(33, 6144, 17)),
    Case(Shape(16, 16384, 32)),
    Case(Shape(48, 6144, 64), NORMAL),
    Case(Shape(31, 16384, 33), INTEGERS),
    Case(Shape(64, 4096, 16), ODD_INTEGERS),
)
"""Long sums, where a truncating or low-precision accumulator shows."""

_DIVIDING_CASES = (
    Case(Shape(512, 512, 512), SCALED_BLOCKS),
    Case(Shape(512, 256, 1024), CHANGING_SCALE),
)
"""Sizes that divide well, where a kernel may mix parts of A and B that differ in scale."""


_MIXED_CASES = tuple(
    Case(Shape(M, SIZES[(i + 5) % len(SIZES)], SIZES[(i + 11) % len(SIZES)]))
    for i, M in enumerate(SIZES)
)
"""Each of SIZES is M once, N once and K once, in mixed combinations."""


CASES: tuple[Case, ...] = (
    *_SHAPE_CASES,
    *_MIXED_CASES,
    *_EXACT_CASES,
    *_STRUCTURED_CASES,
    *_PRECISION_CASES,
    *_DIVIDING_CASES,
)
"""Every full grading verifies these before the unknown cases. One shape comes many times in a row,
each time with other inputs, which detects a kernel that returns its previous result again."""

QUICK_CASES: tuple[Case, ...] = (
    *_SHAPE_CASES,
    *_MIXED_CASES[::2],
    Case(Shape(65, 129, 33), ODD_INTEGERS),
    Case(Shape(65, 129, 33), SCALED_GROUPS),
    Case(Shape(65, 129, 33), CHANGING_SCALE),
    _DIVIDING_CASES[0],
    _PRECISION_CASES[0],
)
"""A sample for `--quick`: enough while tuning, not enough to be ranked."""

# ------------------------------------------------------------------------------ unknown cases

MAX_SIZE = 8192
"""The largest M, N and K that are drawn."""

MANY = 513
"""This many rows, or columns, are many."""

ELEMENT_WORK = 16
"""To draw, copy and compare an element costs as much as this many floating-point operations."""

_ORDINARY = ((-10, 10), (0, 0))
_RANGES = (*_ORDINARY, (-122, -100), (-60, 20), (20, 50))
"""Exponents that a magnitude is drawn from. C stays finite: 2^50 · 2^50 · 8192 · 46. So do A and B,
of which one may have the inverse exponents of the other: 2^122 · 46."""


def work(shape: Shape) -> int:
    """Return the cost of a case of this shape, in floating-point operations."""
    return shape.flop + ELEMENT_WORK * shape.elements


def drawn_shape(
    generator: Generator, max_work: int, min_work: int = 0, fewest_lines: int = 1
) -> Shape:
    """Return a shape whose M, N and K are drawn log-uniformly from 1 to 8192, independently of each
    other. It is drawn again if it is more work than `max_work` or less than `min_work`, or if M or
    K is below `fewest_lines`."""
    while True:
        sizes = np.exp2(generator.uniform(0, np.log2(MAX_SIZE + 1), 3)).astype(int)
        shape = Shape(*(int(size) for size in sizes))
        if min(shape.M, shape.K) < fewest_lines:
            continue
        if min_work <= work(shape) <= max_work:
            return shape


def drawn_kind(generator: Generator) -> Kind:
    """Return a kind whose factors are drawn independently of one another and of the shape."""
    A, B = _drawn_recipe(generator), _drawn_recipe(generator)
    if generator.random() < 0.5:  # most data has one distribution
        B = replace(B, distribution=A.distribution)
    if A.distribution is Distribution.ODD_INTEGERS:
        B = replace(B, distribution=Distribution.SIGNS)
    elif B.distribution is Distribution.ODD_INTEGERS:
        A = replace(A, distribution=Distribution.SIGNS)
    if A.magnitude is Magnitude.INNER and generator.random() < 0.5:
        B = replace(B, magnitude=Magnitude.INNER_INVERSE, low=A.low, high=A.high)
    return Kind(A, _finite(A, B))


def _finite(A: Recipe, B: Recipe) -> Recipe:
    """Return B, unscaled if the product would otherwise be indistinguishable from zero."""
    tiny = min(A.low, B.low) < -60 and max(A.low, B.low) < 0
    if tiny and B.magnitude is not Magnitude.INNER_INVERSE:
        return replace(B, magnitude=Magnitude.NONE, low=0, high=0)
    return B


def _drawn_recipe(generator: Generator) -> Recipe:
    distribution, structure, magnitude = Distribution.UNIFORM, Structure.DENSE, Magnitude.NONE
    if generator.random() < 0.6:
        distribution = _DISTRIBUTIONS[generator.integers(len(_DISTRIBUTIONS))]
    if generator.random() < 0.25:
        structure = [*Structure][generator.integers(len(Structure))]
    low = high = 0
    if generator.random() < 0.4:
        magnitude = _MAGNITUDES[generator.integers(len(_MAGNITUDES))]
        low, high = _RANGES[generator.integers(len(_RANGES))]
        if generator.random() < 0.5:
            low, high = _RANGES[0]
    large = generator.random() < 0.1
    return Recipe(
        distribution, structure, magnitude, low, high, Outliers.LARGE if large else Outliers.NONE
    )


_DISTRIBUTIONS = tuple(each for each in Distribution if each is not Distribution.TWOS)
_MAGNITUDES = tuple(
    each for each in Magnitude if each not in (Magnitude.NONE, Magnitude.INNER_INVERSE)
)


def drawn_cases(seed: int, count: int, max_work: int, min_work: int = 0) -> tuple[Case, ...]:
    """Return cases whose shapes and kinds are unknown before the grading. Of those with much work,
    every other one has many rows and many columns, a rare combination of independent sizes."""
    generator = np.random.default_rng([seed, CASES_VERSION, max_work % 2**32, min_work % 2**32])
    return tuple(
        Case(
            drawn_shape(generator, max_work, min_work, MANY if min_work and number % 2 else 1),
            str(drawn_kind(generator)),
        )
        for number in range(count)
    )


@dataclass(frozen=True, slots=True)
class Extent:
    """The number of unknown cases of a grading, and their work.

    small: cases of any work up to `small_work`. large: cases of `large_work` / 8 and more.
    outliers: cases of sizes with many factors of 2, with outliers in A and in B alternately.
    special: cases with NaN, infinity, overflow or subnormal numbers, of sizes up to `special_size`.
    """

    small: int
    large: int
    outliers: int
    special: int
    small_work: int
    large_work: int
    special_size: int


def extent(quick: bool, sampled: bool) -> Extent:
    """Return the extent of a grading. sampled: the device is slow."""
    small_work, large_work, size = (1 << 26, 1 << 28, 256) if sampled else (1 << 30, 1 << 35, 1792)
    if quick:
        return Extent(4, 1, 2, 3, small_work, large_work // 2, size)
    return Extent(28, 4, 4, 2 * len(SPECIAL_INPUTS), small_work, large_work, size)


LARGE_INPUTS = (LARGE_IN_A, LARGE_IN_B)


def outlier_cases(seed: int, count: int) -> tuple[Case, ...]:
    """Return cases of unknown sizes with many factors of 2, with a few outliers in A and in B
    alternately. So a sample of the elements does not represent the others. A kernel that samples
    one element in 64 passes four such cases with a probability of 1e-5, and the unannounced checks
    have more of them."""
    generator = np.random.default_rng([seed, CASES_VERSION, 5])
    return tuple(
        Case(
            Shape(*(64 * int(size) for size in generator.integers(4, 8, 3))),
            LARGE_INPUTS[number % 2],
        )
        for number in range(count)
    )


def special_cases(seed: int, count: int, max_size: int) -> tuple[Case, ...]:
    """Return cases of unknown sizes with special values. Half of the sizes are multiples of 64, at
    which a kernel may use a fast path; a few of these are near max_size."""
    generator = np.random.default_rng([seed, CASES_VERSION, 9])
    ways = [(kind, whole) for kind in SPECIAL_INPUTS for whole in (True, False)]
    found = []
    for number in generator.permutation(len(ways))[:count]:
        kind, whole = ways[number]
        large = kind not in _SUBNORMAL and generator.random() < 0.25
        if not whole:
            sizes = generator.integers(17, 129, 3)
        elif large:
            sizes = 64 * generator.integers(max_size // 128, max_size // 64 + 1, 3)
        else:
            sizes = 64 * generator.integers(2, 5, 3)
        found.append(Case(Shape(*(int(size) for size in sizes)), kind))
    return tuple(found)


NEAR = (0.6, 1.15)
"""The factors by which a near shape differs from the ranked one, in each dimension."""


def near_shapes(ranked: Shape, count: int) -> tuple[Shape, ...]:
    """Return unknown shapes near the ranked one. Every other one has multiples of 1024, since a
    kernel may have a fast path for those."""
    generator = np.random.default_rng()
    low, high = (float(np.log2(each)) for each in NEAR)
    found = []
    for number in range(count):
        factors = np.exp2(generator.uniform(low, high, 3))
        whole = ranked.M, ranked.N, ranked.K
        sizes = [int(size * each) for size, each in zip(whole, factors, strict=True)]
        if number % 2 == 0:
            sizes = [max(1, round(size / 1024)) * 1024 if size >= 1024 else size for size in sizes]
        found.append(Shape(*(max(1, size) for size in sizes)))
    return tuple(found)


WATCHED_INPUTS = (UNIFORM, NORMAL, INTEGERS, CHANGING_SCALE)
"""Kinds of inputs of launches under a sanitizer."""


def edge_cases(rows: int, columns: int, seed: int, *, quick: bool) -> tuple[Case, ...]:
    """Return cases in which a kernel with tiles of this size has partial tiles and several full
    ones. One case has fewer than 16 products per sum. In another one, a ring of three stages of 32
    elements is filled again. Sizes are drawn, so that a kernel cannot recognise them."""
    generator = np.random.default_rng([seed, CASES_VERSION, 2])

    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    shapes = [
        Shape(between(2, 40), between(17, 70), between(2, 40)),
        Shape(rows + between(1, 31), 2 * between(49, 80) + 1, columns + between(1, 31)),
    ]
    aligned = Shape(rows * between(1, 2), 16 * between(2, 6), columns * between(1, 2))
    shapes.insert(1, aligned)
    shapes.append(Shape(between(2, 40), between(1, 15), between(2, 40)))
    if not quick:
        shapes.append(Shape(rows + 4 * between(1, 8), 4 * between(8, 20), columns))
    inputs = generator.choice(WATCHED_INPUTS, len(shapes))
    return tuple(Case(shape, str(way)) for shape, way in zip(shapes, inputs, strict=True))


COUNTED_PART = Case(Shape(599, 601, 607))
"""The inputs that counted launches repeat."""

COUNTED_SHAPES = (
    Shape(256, 1024, 256),
    Shape(512, 1024, 1024),
    Shape(1152, 1024, 1280),
    Shape(512, 6144, 512),
    Shape(512, 2048, 512),
)
"""Sizes at which all blocks of a kernel are counted, if a sample of its blocks is not enough."""


# ------------------------------------------------------------------------------- timed inputs

_LONE = "lone lines scaled by 2^-10..2^10"

SCORED_INPUTS = (
    UNIFORM,
    NORMAL,
    POSITIVE,
    SCALED_GROUPS,
    f"A uniform, {_LONE}; B uniform",
    f"A uniform; B uniform, {_LONE}",
)
"""Timed launches have these kinds of inputs, equally often. The score is that of the slowest,
if the kernel is clearly slower there."""

UNSCORED_INPUTS = (
    LARGE_IN_A,
    LARGE_IN_B,
    CHANGING_SCALE,
    "A uniform; B uniform, lines from a place on scaled by 2^-10..2^10",
    "A uniform, inner dimension scaled by 2^-10..2^10; B uniform",
    "A uniform, elements scaled by 2^-10..2^10; B uniform",
    "A uniform; B uniform, elements scaled by 2^-10..2^10",
    "A uniform, lines scaled by 2^-60..2^20; B uniform",
    "A uniform, lone lines scaled by 2^-100..2^100; B uniform",
    "A uniform, all scaled by 2^100..2^126; B uniform, all scaled by 2^-100..2^-90",
    "A uniform, zero lines; B uniform",
    "uniform, repeated lines",
    "constant lines",
    "four levels",
)
"""Kinds of inputs of checked launches between the scored ones, which are timed for information. A
kernel may use a slow path for them, but must examine all elements to recognise them."""
