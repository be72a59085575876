"""The cases cover what the problem promises."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from problem import cases
from problem.cases import (
    CASES,
    CASES_VERSION,
    MID_SIZE_INPUTS,
    RANKED,
    SIZES,
    Case,
    Inputs,
    Shape,
    counting_case,
    lone_element_case,
    lone_element_cases,
    mid_size_cases,
    random_cases,
)
from problem.reference import compare


def test_every_size_stands_in_every_dimension() -> None:
    for dimension in ("M", "N", "K"):
        assert set(SIZES) <= {getattr(case.shape, dimension) for case in CASES}


def test_every_way_to_draw_inputs_meets_multiples_of_16_and_others() -> None:
    for inputs in Inputs:
        shapes = [case.shape for case in CASES if case.inputs is inputs]
        multiples = [all(size % 16 == 0 for size in (s.M, s.N, s.K)) for s in shapes]
        assert any(multiples) and not all(multiples), inputs


def test_there_are_at_least_forty() -> None:
    assert len(set(CASES)) == len(CASES) >= 40
    assert RANKED.shape == Shape(8192, 6144, 4096)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_inputs_have_the_shape_are_finite_and_repeat(case: Case) -> None:
    A, B = case.draw(7)
    assert A.shape == (case.shape.M, case.shape.N) and B.shape == (case.shape.N, case.shape.K)
    assert A.dtype == B.dtype == np.float32
    assert np.isfinite(A).all() and np.isfinite(B).all()
    again = case.draw(7)
    assert np.array_equal(A, again[0]) and np.array_equal(B, again[1])


def test_another_seed_draws_other_inputs() -> None:
    case = Case(Shape(16, 16, 16))
    assert not np.array_equal(case.draw(1)[0], case.draw(2)[0])


@pytest.mark.parametrize("case", [case for case in CASES if case.exact], ids=str)
def test_exact_cases_are_exact_in_float32_in_any_order(case: Case) -> None:
    A, B = case.draw(3)
    forward = np.zeros((case.shape.M, case.shape.K), np.float32)
    for n in range(case.shape.N):
        forward += A[:, n, None] * B[None, n]
    order = np.random.default_rng(0).permutation(case.shape.N)
    shuffled = np.ascontiguousarray(A[:, order]) @ np.ascontiguousarray(B[order])
    assert compare(A, B, forward, exact=True).worst == 0
    assert np.array_equal(forward, shuffled)


def test_ones_times_twos_is_32() -> None:
    A, B = Case(Shape(16, 16, 16), Inputs.ONES_TWOS).draw(0)
    assert (A @ B == 32).all()


def test_random_cases_are_new_for_each_seed() -> None:
    assert random_cases(1, 6) == random_cases(1, 6) != random_cases(2, 6)
    drawn = random_cases(3, 300)
    assert {case.inputs for case in drawn} == {*Inputs}
    sizes = {size for case in drawn for size in (case.shape.M, case.shape.N, case.shape.K)}
    assert min(sizes) < 10 and max(sizes) in range(380, 400)


def test_mid_size_cases_lie_between_the_small_ones_and_the_ranked_one() -> None:
    assert mid_size_cases(1, 4, 1 << 30) == mid_size_cases(1, 4, 1 << 30)
    drawn = [case for seed in range(40) for case in mid_size_cases(seed, 4, 1 << 30)]
    assert len({case.shape for case in drawn}) > 0.8 * len(drawn)
    for case in drawn:
        assert 512 <= case.shape.M <= 4095 and 512 <= case.shape.K <= 4095
        assert case.shape.flop <= 1 << 30 and case.shape.N >= 64
    assert {case.inputs for case in drawn} == {*MID_SIZE_INPUTS}
    aligned = [case.shape for case in drawn if case.shape.M % 256 == case.shape.K % 512 == 0]
    assert len(aligned) >= len(drawn) / 2 and all(shape.N % 32 == 0 for shape in aligned)


def test_lone_elements_are_in_turn_those_of_A_and_of_B_at_sizes_nobody_knows() -> None:
    drawn = [case for seed in range(20) for case in lone_element_cases(seed, 4)]
    assert [case.inputs for case in drawn] == [Inputs.LONE_IN_A, Inputs.LONE_IN_B] * 40
    assert len({case.shape for case in drawn}) > 40
    for shape in {case.shape for case in drawn}:
        assert all(size % 64 == 0 and size >= 320 for size in (shape.M, shape.N, shape.K))
    assert {lone_element_case(RANKED.shape, seed).inputs for seed in range(20)} == {
        Inputs.LONE_IN_A,
        Inputs.LONE_IN_B,
    }


def test_counting_cases_are_in_multiples_of_16_and_never_the_well_known_size() -> None:
    shapes = {counting_case(seed).shape for seed in range(50)}
    assert len(shapes) > 30 and Shape(256, 256, 256) not in shapes
    assert all(size % 16 == 0 for shape in shapes for size in (shape.M, shape.N, shape.K))


def test_scale_changes_behind_the_first_elements_of_rows_or_columns() -> None:
    changing = set()
    for seed in range(8):
        A, B = Case(Shape(200, 1024, 200), Inputs.CHANGING_SCALE).draw(seed)
        for name, lines in (("A", A), ("B", B.T)):
            assert (np.abs(np.abs(lines[:, :128]).max(axis=1) - 1) < 0.1).all()
            scales = np.log2(np.abs(lines[:, -128:]).max(axis=1)).round()
            assert np.abs(scales).max() <= 10
            if scales.any():
                changing.add((seed, name))
                assert len(set(scales)) > 15
    assert len(changing) == 8 and {name for _, name in changing} == {"A", "B"}


@pytest.mark.parametrize(
    ("inputs", "high"), [(Inputs.SCALED_UP, 2.0**20), (Inputs.SCALED_DOWN, 2.0**-20)]
)
def test_scaled_inputs_have_the_scale_of_their_name(inputs: Inputs, high: float) -> None:
    for matrix in Case(Shape(64, 64, 64), inputs).draw(1):
        assert 0.9 * high < np.abs(matrix).max() <= high


DIGESTS = Path(__file__).with_name("digests.json")
"""Of what each case draws with seed 1, for each version of the cases."""


def digests() -> dict[str, str]:
    unknown = [
        str(case)
        for seed in range(20)
        for case in (
            *random_cases(seed, 8),
            *mid_size_cases(seed, 7, 1 << 28),
            *mid_size_cases(seed, 7, 1 << 35),
            counting_case(seed),
        )
    ]
    ranked = [str(lone_element_case(RANKED.shape, seed)) for seed in range(20)]
    drawn = {
        name: hashlib.sha256(repr(drawn).encode()).hexdigest()[:16]
        for name, drawn in (("shapes not known before", unknown), ("ranked size", ranked))
    }
    secret = (*lone_element_cases(1, 2), *random_cases(1, 4), *mid_size_cases(1, 2, 1 << 27))
    for case in (*CASES, *secret):
        A, B = case.draw(1)
        drawn[str(case)] = hashlib.sha256(A.tobytes() + B.tobytes()).hexdigest()[:16]
    return drawn


def test_whoever_changes_a_case_raises_the_version() -> None:
    """A result of other cases is not comparable. After raising CASES_VERSION, write the new
    digests: python -m tests.problem.test_cases."""
    pinned = json.loads(DIGESTS.read_text(encoding="utf-8"))
    assert pinned["version"] == CASES_VERSION
    assert pinned["cases"] == digests()


def test_the_ranked_size_is_verified_with_one_or_the_other_matrix_uneven() -> None:
    shape = Shape(64, 128, 192)
    drawn = [cases.lone_element_case(shape, seed) for seed in range(30)]
    assert {case.shape for case in drawn} == {shape}
    assert {case.inputs for case in drawn} == {*cases._LONE_INPUTS}
    assert drawn == [cases.lone_element_case(shape, seed) for seed in range(30)]


@pytest.mark.parametrize("matrix", [0, 1])
def test_of_a_few_elements_those_are_lone_that_are_a_whole_eighth(matrix: int) -> None:
    draw = cases._lone_elements(matrix)
    for size in range(1, 12):
        lone = [
            np.count_nonzero(draw(np.random.default_rng(seed), Shape(size, size, size))[matrix] > 1)
            for seed in range(20)
        ]
        assert max(lone) == 4 if size >= 8 else max(lone) <= 4, size


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, -1, 1)])
def test_a_shape_without_elements_is_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Shape(*sizes)
    assert Shape(1, 1, 1).flop == 2


def test_the_work_is_a_product_and_a_sum_for_each_of_n_in_each_element() -> None:
    assert Shape(3, 5, 7).flop == 2 * 3 * 5 * 7


@pytest.mark.parametrize(("lines", "lone"), [(1, 1), (63, 1), (64, 2), (65, 2), (256, 5)])
def test_few_rows_or_columns_are_lone(lines: int, lone: int) -> None:
    found = set()
    for seed in range(40):
        A, B = Case(Shape(lines, 512, lines), Inputs.LONE_ROWS).draw(seed)
        for name, matrix in (("A", A), ("B", B.T)):
            scales = np.log2(np.abs(matrix).max(axis=1)).round()
            assert np.count_nonzero(scales) <= lone and np.abs(scales).max() <= 10
            found |= {(name, np.count_nonzero(scales))}
    assert {("A", lone), ("B", lone)} <= found


def test_each_size_comes_once_in_each_place_when_they_are_mixed() -> None:
    mixed = cases._mixed(5, 11)
    assert {*mixed} <= {*CASES}
    for dimension in ("M", "N", "K"):
        assert sorted(getattr(case.shape, dimension) for case in mixed) == sorted(SIZES)
    assert mixed[0].shape == Shape(SIZES[0], SIZES[5], SIZES[11])


if __name__ == "__main__":
    text = json.dumps({"version": CASES_VERSION, "cases": digests()}, indent=1, ensure_ascii=False)
    DIGESTS.write_text(text + "\n", encoding="utf-8")
