"""Estimates with intervals, which are checked against tables and by simulation."""

from __future__ import annotations

import math
import random

import pytest

from harness.judge.estimates import NORMAL, Estimate, below_student, mean, over_gpus, student


def noisy(value: float, deviation: float) -> Estimate:
    return Estimate(value, NORMAL * deviation, NORMAL * deviation)


@pytest.mark.parametrize(
    ("degrees", "expected"), [(1, 12.7062), (2, 4.3027), (5, 2.5706), (30, 2.0423)]
)
def test_quantiles_are_those_of_the_tables(degrees: int, expected: float) -> None:
    assert student(degrees) == pytest.approx(expected, abs=1e-4)
    assert below_student(0, degrees) == 0.5
    assert below_student(-expected, degrees) == pytest.approx(0.025, abs=1e-5)


def test_a_ratio_is_an_estimate_with_its_interval() -> None:
    made = Estimate.of_ratio(2.0, 1.9, 2.2)
    assert math.exp(made.value) == pytest.approx(2.0)
    assert (math.exp(made.low), math.exp(made.high)) == pytest.approx((1.9, 2.2))


def test_a_difference_has_the_noise_of_both() -> None:
    found = Estimate(3.0, 0.3, 0.4).minus(Estimate(1.0, 0.3, 0.4))
    assert (found.value, found.below, found.above) == pytest.approx((2.0, 0.5, 0.5))


def test_a_mean_of_four_has_half_the_noise() -> None:
    found = mean([noisy(value, 0.2) for value in (1, 2, 3, 4)])
    assert found.value == 2.5 and found.below == pytest.approx(NORMAL * 0.1)


def test_differences_on_several_gpus_cover_the_true_one() -> None:
    generator = random.Random(1)
    covered = 0
    for _ in range(2000):
        each = [noisy(generator.gauss(1.0, 0.05), 0.01) for _ in range(3)]
        found = over_gpus(each)
        covered += found.low <= 1.0 <= found.high
    assert 0.93 < covered / 2000 < 0.97


def test_gpus_that_agree_by_chance_do_not_narrow_the_interval() -> None:
    assert over_gpus([noisy(1, 0.1), noisy(1, 0.1)]).above == mean([noisy(1, 0.1)] * 2).above
