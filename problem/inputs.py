"""The definition of how A and B are drawn on every device.

A matrix is drawn by a `Recipe`: independent factors (distribution, structure, magnitude, outliers)
and a seed. Each element depends only on the seed and on its position, so any element can be drawn
again on any device. `draw` computes it with NumPy; `drawn` in gpu.cu is the same function for
the GPU, and a test runs that on the CPU device and compares all bits.

A "line" is a row of A or a column of B: an element of C is computed from two lines.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from problem.threads import in_threads

Matrix = NDArray[np.float32]
Words = NDArray[np.uint64]
E = TypeVar("E", bound=StrEnum)


class Distribution(StrEnum):
    """The distribution of the elements before structure, magnitude and outliers are applied."""

    UNIFORM = "uniform"
    """U(-1, 1) in steps of 2^-23."""
    NORMAL = "normal"
    POSITIVE = "positive"
    """The absolute value of UNIFORM."""
    INTEGERS = "small integers"
    """-32 to 32."""
    ODD_INTEGERS = "odd 12-bit integers"
    """They need all bits of a 12-bit significand, which TF32, BF16 and FP16 do not have."""
    SIGNS = "signs"
    """-1, 0 and 1."""
    LEVELS = "four levels"
    """One of four values of U(-1, 1), with equal probability."""
    CONSTANT = "constant lines"
    """One value between 1 and 1.008 for each line: the signs of rounding errors are not random."""
    ONES = "ones"
    TWOS = "twos"
    NEIGHBOURS = "two neighbours by turns"
    """Along N, a value near 1 alternates with one that is larger by about 2^-11: FP16 and BF16
    cannot represent their difference."""
    OPPOSITES = "opposites by turns"
    """Along N, a value near 1 alternates with its negative: with NEIGHBOURS, R is nearly 0."""
    SPIKES = "spikes on a background"
    """Every 15th element along N is near 1, all others are near 2^-8."""


class Structure(StrEnum):
    """The pattern in which elements are kept, repeated or set to zero."""

    DENSE = "dense"
    ZERO = "zero"
    SPARSE = "one element in ten"
    ZERO_LINES = "zero lines"
    """A quarter of the lines."""
    ONE_HOT = "one element"
    IDENTITY = "identity"
    PERMUTATION = "permutation"
    """One element of each line is 1: the identity with its lines rotated."""
    TRIANGULAR = "triangular"
    BANDED = "banded"
    RANK_ONE = "rank one"
    REPEATED_LINES = "repeated lines"
    """16 equal lines, one after the other."""
    WITHOUT_SPIKES = "without spikes"
    """Elements are zero at the positions along N at which the other matrix has spikes."""
    REPEATED_PARTS = "repeated parts"
    """Each line consists of four equal parts, some of them negated."""


class Magnitude(StrEnum):
    """The parts that are each multiplied by a power of two, drawn from a range of exponents."""

    NONE = "not scaled"
    MATRIX = "all"
    GROUPS = "groups of lines"
    """8 lines."""
    LINES = "lines"
    LONE_LINES = "lone lines"
    """One line in 64."""
    INNER = "inner dimension"
    """Groups of 8 positions along N, the same in all lines."""
    INNER_INVERSE = "inverse inner dimension"
    """The inverse of the other matrix's factors: A = X·D, B = D⁻¹·Y."""
    CHANGING = "lines from a place on"
    """Each line, from a position that differs per line: its first elements do not show the scale of
    the rest."""
    RECTANGLES = "rectangles"
    """Up to six rectangles at random positions."""
    ELEMENTS = "elements"


class Outliers(StrEnum):
    """One element of each quarter of the matrix, at a random position, has another value, in every
    other quarter the negative one. A sample of a share f of the elements contains none of them with
    a probability of at least 1 - 4f. NaN and infinity are also in the first and the last element.
    Threads outside the matrix often read one of these, and must not use it."""

    NONE = "no outliers"
    LARGE = "outliers of 2^20"
    NAN = "NaN"
    INFINITE = "infinity"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The factors by which one matrix is drawn. low, high: the range of exponents of the
    magnitude."""

    distribution: Distribution = Distribution.UNIFORM
    structure: Structure = Structure.DENSE
    magnitude: Magnitude = Magnitude.NONE
    low: int = 0
    high: int = 0
    outliers: Outliers = Outliers.NONE

    @property
    def outlier(self) -> float:
        return _OUTLIERS.get(self.outliers, 0.0)

    def __str__(self) -> str:
        words = [self.distribution.value]
        if self.structure is not Structure.DENSE:
            words.append(self.structure.value)
        if self.magnitude is not Magnitude.NONE:
            words.append(f"{self.magnitude.value} scaled by 2^{self.low}..2^{self.high}")
        if self.outliers is not Outliers.NONE:
            words.append(self.outliers.value)
        return ", ".join(words)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the recipe that is written so."""
        words = text.split(", ")
        distribution = Distribution(words.pop(0))
        structure, magnitude, outliers = Structure.DENSE, Magnitude.NONE, Outliers.NONE
        low = high = 0
        for word in words:
            name, _, exponents = word.partition(" scaled by ")
            if exponents:
                magnitude = Magnitude(name)
                low, high = (int(power.removeprefix("2^")) for power in exponents.split(".."))
            elif word in _OUTLIERS:
                outliers = Outliers(word)
            else:
                structure = Structure(word)
        return cls(distribution, structure, magnitude, low, high, outliers)


_OUTLIERS: dict[str, float] = {
    Outliers.LARGE: 2.0**20,
    Outliers.NAN: math.nan,
    Outliers.INFINITE: math.inf,
}
"""The values of the outliers."""


class Tolerance(StrEnum):
    """How far C may be from the reference."""

    EXACT = "exact"
    """Every partial sum is exact in FP32, in any order: |C - R| < 1e-5 for each element."""
    RANDOM = "random"
    """The block rule, at 1e-5."""
    STRUCTURED = "structured"
    """|C - R|_ij ≤ max(1e-4, N·2^-24) ‖a_i‖₂ ‖b_j‖₂ for each element."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How A and B are drawn."""

    A: Recipe = Recipe()
    B: Recipe = Recipe()

    def __str__(self) -> str:
        return str(self.A) if self.A == self.B else f"A {self.A}; B {self.B}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the kind with this text. Raises ValueError if no kind is written so."""
        if not text.startswith("A "):
            return cls(Recipe.parse(text), Recipe.parse(text))
        A, _, B = text.removeprefix("A ").partition("; B ")
        return cls(Recipe.parse(A), Recipe.parse(B))

    @property
    def tolerance(self) -> Tolerance:
        if _is_exact(self.A, self.B):
            return Tolerance.EXACT
        for recipe in (self.A, self.B):
            if recipe.structure not in _WHOLE or recipe.distribution not in _INDEPENDENT:
                return Tolerance.STRUCTURED
        return Tolerance.STRUCTURED if _few_products_decide(self.A, self.B) else Tolerance.RANDOM


_WHOLE = (Structure.DENSE, Structure.IDENTITY, Structure.PERMUTATION)
_INDEPENDENT = (
    Distribution.UNIFORM,
    Distribution.NORMAL,
    Distribution.POSITIVE,
    Distribution.INTEGERS,
    Distribution.SIGNS,
)


def _is_exact(A: Recipe, B: Recipe) -> bool:
    """Return whether each partial sum, in any order, is an integer below 2^24."""
    if Outliers.NONE is not A.outliers or Outliers.NONE is not B.outliers:
        return False
    if Structure.ZERO in (A.structure, B.structure):
        return True
    sizes = [_integer_size(recipe) for recipe in (A, B)]
    return None not in sizes and sizes.count("large") * 2 + sizes.count("middle") <= 2


def _integer_size(recipe: Recipe) -> str | None:
    """Return how large the integers of a recipe are. Sums of products of a large and a middle one,
    or of two large ones, may exceed 2^24."""
    if recipe.magnitude is not Magnitude.NONE or recipe.structure is Structure.RANK_ONE:
        return None
    if recipe.structure in (Structure.ONE_HOT, Structure.IDENTITY, Structure.PERMUTATION):
        return "small"
    return _INTEGERS.get(recipe.distribution)


_INTEGERS = {
    Distribution.SIGNS: "small",
    Distribution.ONES: "small",
    Distribution.TWOS: "small",
    Distribution.INTEGERS: "middle",
    Distribution.ODD_INTEGERS: "large",
}


def _few_products_decide(A: Recipe, B: Recipe) -> bool:
    """Return whether few products may dominate an element of C, or few elements the error of a
    block. Then the error of a block is not an average, and that of cuBLAS itself exceeds 1e-5."""
    if A.magnitude in _UNEVEN and B.magnitude in _UNEVEN:
        return True
    if A.magnitude is Magnitude.INNER and B.magnitude is Magnitude.INNER:
        return True
    return any(
        recipe.magnitude in _ALONG and recipe.high - recipe.low >= _UNEVEN_EXPONENTS
        for recipe in (A, B)
    )


_UNEVEN = (Magnitude.LINES, Magnitude.LONE_LINES, Magnitude.CHANGING, Magnitude.ELEMENTS)
"""Magnitudes with which a single line or element may be far larger than its neighbours."""

_ALONG = (Magnitude.INNER, Magnitude.CHANGING, Magnitude.RECTANGLES, Magnitude.ELEMENTS)
"""Magnitudes that differ among the products of one element of C."""

_UNEVEN_EXPONENTS = 20
"""If exponents differ by this or more, a few of the N products dominate their sum."""


# ------------------------------------------------------------------------------------- drawing

_GOLDEN = 0x9E3779B97F4A7C15
_STREAM = 0xD1B54A32D192ED03
"""This is added to a seed for each further stream of random words."""

_STEP = np.float32(2.0**-23)

_PART = 1 << 16
"""Elements that one thread draws at a time: they stay in its cache."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The data from which one matrix can be drawn on any device, any number of times.

    shared_seed: the seed of properties that A and B share, such as factors along N. by_column: the
        lines are columns, as in B.
    """

    recipe: Recipe
    seed: int
    shared_seed: int
    by_column: bool

    @property
    def codes(self) -> tuple[int, ...]:
        """The recipe as numbers, in the order of `struct Recipe` in gpu.cu."""
        recipe = self.recipe
        return (
            [*Distribution].index(recipe.distribution),
            [*Structure].index(recipe.structure),
            [*Magnitude].index(recipe.magnitude),
            recipe.low,
            recipe.high,
            int(self.by_column),
            int(recipe.outliers is not Outliers.NONE),
        )

    def matrix(self, rows: int, columns: int) -> Matrix:
        """Draw the matrix with NumPy."""
        matrix: Matrix = np.empty((rows, columns), np.float32)
        flat = matrix.reshape(-1)

        def part(start: int) -> None:
            end = min(start + _PART, flat.size)
            flat[start:end] = _elements(self, start, end, rows, columns)

        in_threads(part, range(0, flat.size, _PART))
        if self.recipe.outliers is not Outliers.NONE:
            for number, place in _outliers(self, rows, columns):
                matrix[place] = -self.recipe.outlier if number % 2 else self.recipe.outlier
        return matrix


def draws(kind: Kind, seed: int) -> tuple[Draw, Draw]:
    """Return how A and B of this kind are drawn from a seed."""
    of_A, of_B, shared = (mixed(seed, number) for number in range(3))
    return Draw(kind.A, of_A, shared, False), Draw(kind.B, of_B, shared, True)


def mixed(seed: int, number: int) -> int:
    """Return random word `number` (from 0) of a seed: SplitMix64 (Steele, Lea and Flood 2014)."""
    return int(_words(np.array([number], np.uint64), seed)[0])


def _words(numbers: Words, seed: int) -> Words:
    z = (numbers + np.uint64(1)) * np.uint64(_GOLDEN)
    z += np.uint64(seed % 2**64)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _stream(seed: int, number: int) -> int:
    """Return the seed of another stream of random words."""
    return (seed + number * _STREAM) % 2**64


def _elements(how: Draw, start: int, end: int, rows: int, columns: int) -> Matrix:
    """Return elements of a matrix without its outliers."""
    recipe = how.recipe
    i = np.arange(start, end, dtype=np.uint64)
    independent = recipe.structure is Structure.DENSE and recipe.magnitude is Magnitude.NONE
    if independent and recipe.distribution not in _BY_PLACE:
        return _values(how, _words(i, how.seed), i, i)
    row, column = np.divmod(i, np.uint64(columns))
    line, along = (column, row) if how.by_column else (row, column)
    lines, length = (columns, rows) if how.by_column else (rows, columns)
    values = _structured(how, i, line, along, lines, length)
    if recipe.magnitude is not Magnitude.NONE:
        with np.errstate(over="ignore"):  # the largest integers times 2^122 are infinite
            values = np.ldexp(values, _exponents(how, i, line, along, lines, length))
    return values


_BY_PLACE = (
    Distribution.CONSTANT,
    Distribution.NEIGHBOURS,
    Distribution.OPPOSITES,
    Distribution.SPIKES,
)
"""Distributions that depend on the line and the position along it."""


def _values(how: Draw, words: Words, line: Words, along: Words) -> Matrix:
    """Return elements of the distribution, each from a random word."""
    signed: Matrix = (words >> np.uint64(40)).astype(np.float32) * _STEP - np.float32(1)
    match how.recipe.distribution:
        case Distribution.UNIFORM:
            return signed
        case Distribution.POSITIVE:
            return np.abs(signed).astype(np.float32)
        case Distribution.NORMAL:
            radius = np.sqrt(-2 * np.log(((words >> np.uint64(32)) + 0.5) * 2.0**-32))
            turn = (words & np.uint64(0xFFFFFFFF)) * 2.0**-31
            normal: Matrix = (radius * np.cos(np.pi * turn)).astype(np.float32)
            return normal
        case Distribution.INTEGERS:
            return ((words >> np.uint64(40)) % np.uint64(65)).astype(np.float32) - np.float32(32)
        case Distribution.ODD_INTEGERS:
            odd = ((words >> np.uint64(40)) % np.uint64(1024)).astype(np.float32)
            odd = (odd + np.float32(1024)) * np.float32(2) + np.float32(1)
            return np.where(words & np.uint64(1), -odd, odd).astype(np.float32)
        case Distribution.SIGNS:
            return ((words >> np.uint64(40)) % np.uint64(3)).astype(np.float32) - np.float32(1)
        case Distribution.LEVELS:
            levels = _words(words >> np.uint64(62), _stream(how.seed, 3))
            return (levels >> np.uint64(40)).astype(np.float32) * _STEP - np.float32(1)
        case Distribution.CONSTANT:
            return _near_one(line, _stream(how.seed, 4))
        case Distribution.NEIGHBOURS:
            steps = mixed(_stream(how.seed, 4), 0) >> 50
            larger = np.where(along & np.uint64(1), np.uint64(1031), np.uint64(0))
            return np.float32(1) + (larger + np.uint64(steps)).astype(np.float32) * _NEAR
        case Distribution.OPPOSITES:
            near = _near_one(line, _stream(how.seed, 4))
            return np.where(along & np.uint64(1), -near, near).astype(np.float32)
        case Distribution.SPIKES:
            near = _near_one(line, _stream(how.seed, 4))
            small = (near * np.float32(2.0**-8)).astype(np.float32)
            return np.where(_is_spike(how, along), near, small).astype(np.float32)
        case Distribution.ONES | Distribution.TWOS as same:
            value = 1 if same is Distribution.ONES else 2
            return np.full(words.shape, value, np.float32)


_NEAR = np.float32(2.0**-21)


def _near_one(numbers: Words, seed: int) -> Matrix:
    """Return values from 1 to 1.008."""
    steps = _words(numbers, seed) >> np.uint64(50)
    return np.float32(1) + steps.astype(np.float32) * _NEAR


def _is_spike(how: Draw, along: Words) -> NDArray[np.bool_]:
    first = np.uint64(mixed(_stream(how.shared_seed, 3), 0) % 15)
    spikes: NDArray[np.bool_] = np.equal(along % np.uint64(15), first)
    return spikes


def _structured(how: Draw, i: Words, line: Words, along: Words, lines: int, length: int) -> Matrix:
    structure, seed = how.recipe.structure, _stream(how.seed, 1)
    total, along_total = np.uint64(lines), np.uint64(length)

    def plain() -> Matrix:
        return _values(how, _words(i, how.seed), line, along)

    def only(kept: Any, values: Matrix | None = None) -> Matrix:
        values = plain() if values is None else values
        return np.where(kept, values, np.float32(0)).astype(np.float32)

    match structure:
        case Structure.DENSE:
            return plain()
        case Structure.ZERO:
            return np.zeros(i.shape, np.float32)
        case Structure.SPARSE:
            return only(_words(i, seed) % np.uint64(10) == 0)
        case Structure.ZERO_LINES:
            return only(_words(line, seed) % np.uint64(4) != 0)
        case Structure.ONE_HOT:
            at = mixed(seed, 0) % lines, mixed(how.shared_seed, 0) % length
            return only((line == at[0]) & (along == at[1]), np.full(i.shape, 3, np.float32))
        case Structure.IDENTITY | Structure.PERMUTATION:
            shift = 0 if structure is Structure.IDENTITY else mixed(seed, 0) % length
            kept = along == (line + np.uint64(shift)) % along_total
            return only(kept, np.ones(i.shape, np.float32))
        case Structure.TRIANGULAR:
            below = along * total <= line * along_total
            return only(below if mixed(seed, 0) % 2 else ~below)
        case Structure.BANDED:
            middle = line * along_total // total
            return only((along + np.uint64(8) >= middle) & (along <= middle + np.uint64(8)))
        case Structure.RANK_ONE:
            of_line = _values(how, _words(line, seed), line, line)
            words = _words(along, _stream(how.shared_seed, 1))
            return of_line * _values(how, words, along, along)
        case Structure.REPEATED_LINES:
            same = line // np.uint64(16)
            words = _words(same * along_total + along, how.seed)
            return _values(how, words, same, along)
        case Structure.WITHOUT_SPIKES:
            return only(~_is_spike(how, along))
        case Structure.REPEATED_PARTS:
            size = np.uint64((length + 3) // 4)
            words = _words(line * along_total + along % size, how.seed)
            minus = _words(along // size, seed) & np.uint64(1)
            values = _values(how, words, line, along)
            return np.where(minus, -values, values).astype(np.float32)


def _exponents(
    how: Draw, i: Words, line: Words, along: Words, lines: int, length: int
) -> NDArray[np.int32]:
    recipe = how.recipe
    inner = (Magnitude.INNER, Magnitude.INNER_INVERSE)
    seed = how.shared_seed if recipe.magnitude in inner else how.seed
    seed = _stream(seed, 2)
    low, count = recipe.low, np.uint64(recipe.high - recipe.low + 1)

    def exponents(numbers: Words) -> NDArray[np.int32]:
        drawn = (_words(numbers, seed) >> np.uint64(32)) % count
        return drawn.astype(np.int32) + np.int32(low)

    match recipe.magnitude:
        case Magnitude.MATRIX:
            return exponents(np.zeros_like(i))
        case Magnitude.GROUPS:
            return exponents(line // np.uint64(8))
        case Magnitude.LINES:
            return exponents(line)
        case Magnitude.LONE_LINES:
            lone = _words(line, seed) % np.uint64(64) == 0
            return np.where(lone, exponents(line), 0).astype(np.int32)
        case Magnitude.INNER:
            return exponents(along // np.uint64(8))
        case Magnitude.INNER_INVERSE:
            return -exponents(along // np.uint64(8))
        case Magnitude.CHANGING:
            least = (length + 7) // 8  # an eighth of the line is on either side of the place
            places = np.uint64(length - length // 8 + 1 - least)
            place = (_words(line, _stream(seed, 1)) >> np.uint64(32)) % places + np.uint64(least)
            return np.where(along >= place, exponents(line), 0).astype(np.int32)
        case Magnitude.RECTANGLES:
            found = np.zeros(i.shape, np.int32)
            for number in range(6):
                word, size = mixed(seed, 2 * number + 100), mixed(seed, 2 * number + 101)
                top, height = (word >> 32) % lines, 1 + (size >> 32) % lines
                left = min((word & 0xFFFFFFFF) % length, length - length // 8)
                width = (length + 7) // 8 + (size & 0xFFFFFFFF) % length
                inside = (line >= top) & (line < top + height)
                inside &= (along >= left) & (along < left + width)
                found[inside] = exponents(np.array([number], np.uint64))[0]
            return found
        case Magnitude.ELEMENTS:
            return exponents(i)
        case Magnitude.NONE:
            return np.zeros(i.shape, np.int32)


def _outliers(how: Draw, rows: int, columns: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the numbers and the places of the outliers. The outlier of each quarter is in an eighth
    of the rows and an eighth of the columns that contain no other outlier. In a block of C with one
    large row, the block rule tolerates errors in the other rows."""
    seed = _stream(how.seed, 5)
    if not math.isfinite(how.recipe.outlier):
        yield from enumerate(((rows - 1, columns - 1), (0, 0)))
    turns = mixed(seed, 0)
    for number in range(4):
        lower, right = number // 2, number // 2 ^ number % 2
        place = mixed(seed, number + 1)
        down = _in_eighth(rows, 4 * lower + (number ^ turns % 4), place >> 32)
        across = _in_eighth(columns, 4 * right + (number ^ turns // 4 % 4), place & 0xFFFFFFFF)
        if down is not None and across is not None:
            yield number, (down, across)


def _in_eighth(length: int, eighth: int, random: int) -> int | None:
    """Return a random position in an eighth of a line of this length, or None if it is empty."""
    start, end = eighth * length // 8, (eighth + 1) * length // 8
    return start + random % (end - start) if end > start else None
