"""Estimates and their intervals, against tables and against draws with known truth."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.estimates import (
    NORMAL,
    Estimate,
    below_student,
    mean,
    over_gpus,
    student,
    variance_between,
)

DRAWS = 2000


def noisy(value: float, deviation: float) -> Estimate:
    return Estimate(value, NORMAL * deviation, NORMAL * deviation)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (7, 2.365), (30, 2.042), (1000, 1.962)],
)
def test_students_quantiles_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert student(degrees) == pytest.approx(quantile, abs=5e-4)


@given(st.floats(-50, 50), st.integers(1, 60))
def test_students_distribution_is_symmetric_and_grows(t: float, degrees: int) -> None:
    assert below_student(-t, degrees) == pytest.approx(1 - below_student(t, degrees))
    assert below_student(t, degrees) <= below_student(t + 0.1, degrees) + 1e-12


def test_a_ratio_keeps_its_interval() -> None:
    made = Estimate.of_ratio(1.2, 1.1, 1.5)
    assert math.exp(made.low) == pytest.approx(1.1) and math.exp(made.high) == pytest.approx(1.5)


def test_a_difference_takes_from_each_side_what_can_make_it_so() -> None:
    one, other = Estimate(1.0, 0.3, 0.1), Estimate(0.5, 0.2, 0.4)
    made = one.minus(other)
    assert (made.value, made.below, made.above) == pytest.approx((0.5, 0.5, math.hypot(0.1, 0.2)))


def test_another_source_of_error_widens_both_sides() -> None:
    made = Estimate(1.0, 0.3, 0.8).widened(0.4)
    assert (made.value, made.below, made.above) == pytest.approx((1.0, 0.5, math.hypot(0.8, 0.4)))


def test_a_mean_of_four_has_half_the_noise() -> None:
    assert mean([noisy(1, 0.2)] * 4).deviation == pytest.approx(0.1)


def test_the_variance_between_gpus_is_found_again() -> None:
    generator = random.Random(1)
    found = []
    for _ in range(DRAWS):
        groups = [
            [
                noisy(generator.gauss(kernel, math.hypot(0.8, noise)), noise)
                for noise in generator.choices((0.1, 0.3, 0.5), k=gpus)
            ]
            for kernel, gpus in enumerate((2, 3, 5))
        ]
        found.append(variance_between(groups))
    assert fmean(found) == pytest.approx(0.8**2, rel=0.05)


def test_an_estimate_counts_by_the_inverse_of_its_variance() -> None:
    """By hand: weights 100 and 25, middle 0.2, Q = 20, so τ² = (20 - 1) / (125 - 85)."""
    assert variance_between([[noisy(0, 0.1), noisy(1, 0.2)]]) == pytest.approx(19 / 40)


def test_noise_alone_is_no_variance_between_gpus() -> None:
    assert variance_between([[noisy(0, 1), noisy(0.5, 1)]]) == 0
    assert variance_between([]) == 0
    assert variance_between([[noisy(0, 0), noisy(2, 0)]]) == pytest.approx(2)


@pytest.mark.parametrize("gpus", [2, 3, 8])
def test_an_interval_over_gpus_holds_the_truth_as_often_as_it_says(gpus: int) -> None:
    generator = random.Random(gpus)
    inside = 0
    for _ in range(DRAWS):
        found = over_gpus([noisy(generator.gauss(0, 1.01), 0.1) for _ in range(gpus)])
        inside += found.low <= 0 <= found.high
    assert inside / DRAWS == pytest.approx(0.95, abs=0.015)


def test_gpus_that_agree_by_chance_do_not_take_the_noise_away() -> None:
    made = over_gpus([noisy(0.5, 0.1), noisy(0.5, 0.1)])
    assert made.below == pytest.approx(NORMAL * 0.1 / math.sqrt(2))
