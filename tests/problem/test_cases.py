"""The cases cover what the problem promises."""

import numpy as np
import pytest

from problem.cases import CASES, RANKED, SIZES, Case, Inputs, Shape, random_cases
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


def test_surprises_are_new_for_each_seed() -> None:
    assert random_cases(1) == random_cases(1) != random_cases(2)


def test_a_shape_without_elements_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Shape(0, 1, 1)
