"""Tests that the cases cover all that the problem promises."""

import hashlib
import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from problem import cases
from problem.cases import CASES, RANKED, Case, Shape
from problem.inputs import Distribution, Kind, Magnitude, Outliers, Recipe, Structure, Tolerance
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import compare


def test_every_size_occurs_in_every_dimension() -> None:
    for dimension in ("M", "N", "K"):
        assert set(cases.SIZES) <= {getattr(case.shape, dimension) for case in CASES}
    assert len(set(CASES)) == len(CASES) >= 40
    assert RANKED.shape == Shape(8192, 6144, 4096)


def test_infinite_elements_are_drawn_without_a_warning() -> None:
    integers = Recipe(Distribution.ODD_INTEGERS, magnitude=Magnitude.MATRIX, low=122, high=122)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A, _ = Case(Shape(16, 16, 16), str(Kind(integers, integers))).draw(1)
    assert np.isinf(A).any()


def small_cases() -> list[Case]:
    drawn = [case for seed in range(8) for case in cases.drawn_cases(seed, 40, 1 << 20)]
    return [*CASES, *drawn]


def test_exact_cases_are_exact_in_any_order() -> None:
    every = (case for case in small_cases() if case.shape.N < 2000)
    exact = [case for case in every if case.tolerance is Tolerance.EXACT]
    assert len({case.inputs for case in exact}) > 10
    for case in exact:
        A, B = case.draw(3)
        order = np.random.default_rng(0).permutation(case.shape.N)
        forward = np.zeros((case.shape.M, case.shape.K), np.float32)
        for n in order:
            forward += A[:, n, None] * B[None, n]
        assert compare(A, B, forward, tolerance=Tolerance.EXACT).worst == 0, case


def test_drawn_inputs_and_products_are_finite() -> None:
    for case in small_cases():
        A, B = case.draw(3)
        assert np.isfinite(A).all() and np.isfinite(B).all(), case
        terms = np.abs(A).astype(np.float64) @ np.abs(B)
        assert terms.max() < np.finfo(np.float32).max, case


def cell(shape: Shape) -> tuple[int, ...]:
    """Return the cell of a log2 grid in which a shape lies."""
    return tuple(size.bit_length() - 1 for size in (shape.M, shape.N, shape.K))


@pytest.mark.parametrize("sampled", [True, False], ids=["cpu", "cuda"])
def test_every_combination_of_shape_and_kind_may_be_drawn(sampled: bool) -> None:
    most = cases.extent(False, sampled).large_work
    generator = np.random.default_rng(1)
    found = {cell(cases.drawn_shape(generator, most)) for _ in range(60_000)}
    last = cases.MAX_SIZE.bit_length() - 1
    for sizes in itertools.product(range(last), repeat=3):
        largest = Shape(*(2 ** (size + 1) - 1 for size in sizes))
        assert sizes in found or cases.work(largest) > most, sizes


def test_any_two_factors_may_be_drawn_together() -> None:
    generator = np.random.default_rng(1)
    kinds = [cases.drawn_kind(generator) for _ in range(20_000)]
    assert {kind.A.distribution for kind in kinds} == {*Distribution} - {Distribution.TWOS}
    pairs = {(kind.A.structure, kind.B.magnitude) for kind in kinds}
    assert pairs == set(itertools.product(Structure, Magnitude))
    assert {kind.A.outliers for kind in kinds} == {Outliers.NONE, Outliers.LARGE}
    assert {kind.tolerance for kind in kinds} == {*Tolerance}
    lows = {(kind.A.low, kind.A.high) for kind in kinds}
    assert {-122, 50} <= {exponent for pair in lows for exponent in pair}
    assert len({str(kind) for kind in kinds}) > 5000


def test_a_kind_is_parsed_from_its_own_text() -> None:
    generator = np.random.default_rng(2)
    for _ in range(500):
        kind = cases.drawn_kind(generator)
        assert Kind.parse(str(kind)) == kind
    for text in ("", "odd", "uniform, purple", "A uniform", "A uniform; B red"):
        with pytest.raises(ValueError, match="is not a valid"):
            Kind.parse(text)


def test_cases_are_new_for_each_seed() -> None:
    for quick in (False, True):
        first, again, other = (
            MATRIX_MULTIPLICATION.cases(seed, quick=quick, sampled=True) for seed in (1, 1, 2)
        )
        known = set(cases.QUICK_CASES if quick else CASES)
        shared = set(first) & set(other)
        assert first == again and known <= shared
        assert len({case.inputs for case in first} & {*cases.SPECIAL_INPUTS}) >= 2
        assert len(shared - known) <= 1  # sizes with many factors of 2 are few
    many = {MATRIX_MULTIPLICATION.many_blocks_case(16, 16, seed, 1 << 30) for seed in range(9)}
    assert len(many) > 5
    # Large ones are as large as a device can do.
    for sampled, most in ((True, 1 << 28), (False, 1 << 35)):
        drawn = MATRIX_MULTIPLICATION.cases(5, quick=False, sampled=sampled)
        assert sum(most / 8 <= cases.work(case.shape) <= most for case in drawn) >= 4
        assert all(cases.work(case.shape) <= most for case in drawn if case not in CASES)


def test_outliers_alternate_between_A_and_B() -> None:
    drawn = [case for seed in range(20) for case in cases.outlier_cases(seed, 4)]
    assert [case.inputs for case in drawn] == [cases.LARGE_IN_A, cases.LARGE_IN_B] * 40
    for shape in {case.shape for case in drawn}:
        assert all(size % 64 == 0 and size >= 256 for size in (shape.M, shape.N, shape.K))
    ranked = {MATRIX_MULTIPLICATION.ranked_case(seed).inputs for seed in range(20)}
    assert ranked == {*cases.LARGE_INPUTS}


def test_special_values_have_both_signs_and_come_in_A_and_in_B() -> None:
    chosen = cases.special_cases(2, 16, 512)
    assert {case.inputs for case in chosen} == {*cases.SPECIAL_INPUTS}
    special = set()
    for case in chosen:
        matrices = case.draw(1)
        with np.errstate(all="ignore"):
            C = MATRIX_MULTIPLICATION.reference(matrices).astype(np.float32)
        if "rank one" in case.inputs:
            assert {-np.inf, np.inf} <= {*C.ravel()}, case
        for name, matrix in zip("AB", matrices, strict=True):
            tiny = np.abs(matrix) < np.finfo(np.float32).tiny
            if tiny.all():
                special.add((name, "subnormal"))
            elif not np.isfinite(matrix).all():
                assert {*np.signbit(matrix[~np.isfinite(matrix)])} == {True, False}
                special.add((name, "NaN" if np.isnan(matrix).any() else "infinite"))
    assert len(special) == 6


@pytest.mark.parametrize("shape", [(64, 96, 80), (200, 96, 31), (8, 8, 8)])
def test_one_outlier_lies_in_each_quarter(shape: tuple[int, int, int]) -> None:
    for seed in range(10):
        A, B = Case(Shape(*shape), cases.LARGE_IN_A).draw(seed)
        assert (A == 2.0**20).sum() == (A == -(2.0**20)).sum() == 2
        found = np.argwhere(np.abs(A) == 2.0**20)
        quarters = {(2 * row // shape[0], 2 * column // shape[1]) for row, column in found}
        assert len(found) == len(quarters) == 4
        for axis in (0, 1):
            eighths = {8 * place // shape[axis] % 4 for place in found[:, axis]}
            assert len(eighths) == 4
        assert np.abs(B).max() <= 1


def test_normal_inputs_are_normal() -> None:
    A, _ = Case(Shape(400, 500, 1), "normal").draw(1)
    assert abs(A.mean()) < 0.01 and abs(A.std() - 1) < 0.01
    assert abs((A**4).mean() - 3) < 0.1 and 4 < np.abs(A).max() < 6.8


def test_shapes_near_the_ranked_one_lie_on_all_sides() -> None:
    ranked = RANKED.shape
    drawn = cases.near_shapes(ranked, 400)
    for name in ("M", "N", "K"):
        sizes, size = [getattr(shape, name) for shape in drawn], getattr(ranked, name)
        assert all(0.5 * size <= each <= 1.3 * size for each in sizes)
        assert min(sizes) < 0.7 * size and max(sizes) > 1.1 * size
        assert all(each % 1024 == 0 for each in sizes[::2]) and any(each % 16 for each in sizes)
    assert cases.near_shapes(ranked, 4) != cases.near_shapes(ranked, 4)
    every = {*cases.SCORED_INPUTS, *cases.UNSCORED_INPUTS}
    near = MATRIX_MULTIPLICATION.near_cases(len(every), 1)
    assert {kind for _, kinds in near for kind in kinds} == every
    for sizes in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1, -1, 1)):
        with pytest.raises(ValueError, match="at least 1"):
            Shape(*sizes)


@pytest.mark.parametrize(
    ("shape", "tolerance"),
    [
        (Shape(64, 15, 64), Tolerance.STRUCTURED),
        (Shape(3, 400, 5), Tolerance.STRUCTURED),
        (Shape(4, 16, 4), Tolerance.RANDOM),
    ],
)
def test_few_products_have_the_structured_limit(shape: Shape, tolerance: Tolerance) -> None:
    assert Case(shape).tolerance is tolerance
    assert Case(shape, cases.INTEGERS).tolerance is Tolerance.EXACT


DIGESTS = Path(__file__).with_name("digests.json")
"""The file of digests of the inputs that each case draws with seed 1, for this version."""


def digests() -> dict[str, str]:
    """Return the digests of all cases but those with normal numbers.

    Normal numbers need logarithms and cosines, whose last bit may differ between machines.
    """
    chosen = [
        str(case)
        for seed in range(5)
        for case in MATRIX_MULTIPLICATION.cases(seed, quick=False, sampled=False)
    ]
    drawn = {"chosen": hashlib.sha256(repr(chosen).encode()).hexdigest()[:16]}
    drawn_cases = *cases.drawn_cases(1, 20, 1 << 20), *cases.special_cases(1, 16, 256)
    for case in (*CASES, *drawn_cases):
        if "normal" not in case.inputs:
            A, B = case.draw(1)
            drawn[str(case)] = hashlib.sha256(A.tobytes() + B.tobytes()).hexdigest()[:16]
    return drawn


def test_changed_cases_need_a_new_version() -> None:
    """Results of different cases are not comparable.

    After raising CASES_VERSION, write the new digests: python -m tests.problem.test_cases.
    """
    pinned = json.loads(DIGESTS.read_text(encoding="utf-8"))
    assert pinned["version"] == cases.CASES_VERSION
    assert pinned["cases"] == digests()


if __name__ == "__main__":
    text = json.dumps(
        {"version": cases.CASES_VERSION, "cases": digests()}, indent=1, ensure_ascii=False
    )
    DIGESTS.write_text(text + "\n", encoding="utf-8")
