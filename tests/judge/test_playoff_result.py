"""The order of kernels follows from the rounds of a play-off."""

from __future__ import annotations

import math

import pytest

from harness.judge.playoff import Order, difference, differences
from harness.protocol.report import Round
from problem.cases import SCALED_GROUPS, UNIFORM
from tests.judge.stages.fakes import timed_round


def test_a_round_that_is_dropped_for_one_counts_for_neither() -> None:
    one = [timed_round(2.0), *(timed_round(2.0) for _ in range(6)), timed_round(9.0, dropped=True)]
    other = [
        timed_round(9.0, dropped=True),
        *(timed_round(2.02) for _ in range(6)),
        timed_round(2.02),
    ]
    found = difference(one, other)
    assert found is not None and found.value == pytest.approx(math.log(1.01))
    assert difference(one[1:], other[1:]) is not None  # six are enough
    assert difference(one[2:], other[2:]) is None  # five are not


def by_kind(uniform: float, rescaled: float) -> list[Round]:
    return [
        timed_round(ms * (1 + n / 1e5), inputs=kind)
        for n in range(10)
        for ms, kind in ((uniform, UNIFORM), (rescaled, SCALED_GROUPS))
    ]


def test_kernels_are_compared_on_the_kind_where_both_are_slower() -> None:
    found = difference(by_kind(2.0, 2.4), by_kind(2.2, 2.3))
    assert found is not None and found.value == pytest.approx(math.log(2.3 / 2.4), abs=1e-3)
    found = difference(by_kind(2.4, 2.0), by_kind(2.3, 2.2))
    assert found is not None and found.value == pytest.approx(math.log(2.3 / 2.4), abs=1e-3)


Rounds = tuple[tuple[Round, ...], ...]
"""Of each player."""


def with_ratio(percent: float, spread: float = 0.0) -> Rounds:
    """Return rounds of two players, the first of which is faster by so much."""
    ratios = [1 + (percent + spread * step) / 100 for step in (-1, -0.5, -0.2, 0, 0, 0.2, 0.5, 1)]
    return (timed_round(2.0),) * 8, tuple(timed_round(2.0 * ratio) for ratio in ratios)


@pytest.mark.parametrize(
    ("percent", "spread", "ordered"),
    [
        (1.0, 0.0, Order.FASTER),
        (-1.0, 0.0, Order.SLOWER),
        (1.0, 0.9, Order.FASTER),
        (-1.0, 0.9, Order.SLOWER),
        (1.0, 1.5, Order.UNKNOWN),
        (-1.0, 1.5, Order.UNKNOWN),
        (0.08, 0.0, Order.EQUAL),
        (-0.08, 0.0, Order.EQUAL),
        (0.12, 0.0, Order.FASTER),
        (-0.12, 0.0, Order.SLOWER),
        (0.08, 0.03, Order.FASTER),
        (0.0, 0.2, Order.UNKNOWN),
    ],
)
def test_an_order_is_known_where_the_interval_says_it(
    percent: float, spread: float, ordered: Order
) -> None:
    (found,) = differences(with_ratio(percent, spread))
    assert found.ordered is ordered
    assert found.percent == pytest.approx(percent, abs=0.01)
    assert found.low == pytest.approx(percent - spread, abs=0.02)
    assert found.high == pytest.approx(percent + spread, abs=0.02)
