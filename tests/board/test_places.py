"""Places, counted pair by pair as the words say it, and as the code counts them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.board.places import (
    Contestant,
    Order,
    difference,
    is_known,
    known_to_be_faster,
    order,
    places,
)
from harness.judge.estimates import Estimate

ESTIMATES = st.builds(Estimate, st.floats(-1, 1), st.floats(0, 0.3), st.floats(0, 0.3))
CONTESTANTS = st.lists(
    st.builds(
        Contestant,
        st.sampled_from("abcdefgh"),
        ESTIMATES,
        st.dictionaries(st.sampled_from("123"), ESTIMATES, min_size=1),
    ),
    max_size=20,
).map(lambda drawn: sorted(drawn, key=lambda each: -each.score.value))
OPPOSITE = {
    Order.FASTER: Order.SLOWER,
    Order.SLOWER: Order.FASTER,
    Order.UNKNOWN: Order.UNKNOWN,
}
DECIDED = st.dictionaries(
    st.sampled_from([("a", "b"), ("a", "c"), ("d", "e")]), st.sampled_from(Order)
).map(lambda drawn: drawn | {(b, a): OPPOSITE[found] for (a, b), found in drawn.items()})


@given(CONTESTANTS, DECIDED)
def test_how_many_are_known_to_be_faster_is_counted_over_all(
    contestants: list[Contestant], decided: dict[tuple[str, str], Order]
) -> None:
    expected = [
        sum(
            order(other, each, decided) is Order.FASTER
            for j, other in enumerate(contestants)
            if j != i
        )
        for i, each in enumerate(contestants)
    ]
    assert known_to_be_faster(contestants, decided) == expected


@given(CONTESTANTS, DECIDED)
def test_a_place_is_one_more_than_that_and_nobody_gains_by_being_uncertain(
    contestants: list[Contestant], decided: dict[tuple[str, str], Order]
) -> None:
    placed = places(contestants, decided)
    assert sorted(number for number, _ in placed) == list(range(len(contestants)))
    faster = known_to_be_faster(contestants, decided)
    for position, (_, place) in enumerate(placed):
        assert place == 1 + max(faster[number] for number, _ in placed[: position + 1])


@given(CONTESTANTS)
def test_without_a_play_off_the_better_score_stands_first(contestants: list[Contestant]) -> None:
    assert [number for number, _ in places(contestants, {})] == list(range(len(contestants)))


def test_an_uncertain_kernel_does_not_stand_before_a_better_score() -> None:
    sure = [Contestant(f"{n}", Estimate(-n, 0.1, 0.1), {}) for n in range(3)]
    unsure = Contestant("x", Estimate(-1.5, 2.0, 2.0), {})
    assert places([*sure[:2], unsure, sure[2]], {}) == [(0, 1), (1, 2), (2, 2), (3, 3)]


def test_a_play_off_changes_places_among_those_who_played() -> None:
    four = [Contestant(code, Estimate(-n / 100, 0.1, 0.1), {}) for n, code in enumerate("abcd")]
    found = {("c", "a"): Order.FASTER, ("a", "c"): Order.SLOWER}
    assert places(four, found) == [(2, 1), (1, 1), (0, 2), (3, 2)]


def contestant(code: str, value: float, reach: float = 0.01, **on: float) -> Contestant:
    """on: its score on each GPU."""
    return Contestant(
        code,
        Estimate(value, reach, reach),
        {gpu: Estimate(score, 0.01, 0.01) for gpu, score in on.items()},
    )


def met(*found: tuple[str, str, Order]) -> dict[tuple[str, str], Order]:
    """What play-offs say, both ways round."""
    return {(a, b): o for a, b, o in found} | {(b, a): OPPOSITE[o] for a, b, o in found}


def test_nobody_is_faster_than_one_alone() -> None:
    assert known_to_be_faster([contestant("a", 0.0)], {}) == [0]
    assert known_to_be_faster([], {}) == [] and places([], {}) == []


def test_two_gpus_in_common_say_more_than_two_scores() -> None:
    a = contestant("a", 0.02, 0.5, X=0.02, Y=0.03)
    b = contestant("b", 0.00, 0.5, X=0.00, Y=0.01)
    found = difference(a, b)
    assert found.value == pytest.approx(0.02)
    assert found.below == found.above == pytest.approx(0.01)  # √(0.01² + 0.01²), of two: / √2
    assert is_known(difference(a, b)) and order(a, b, {}) is Order.FASTER
    assert order(b, a, {}) is Order.SLOWER
    only_one = contestant("c", 0.00, 0.5, X=0.00, Z=0.01)
    assert difference(a, only_one) == a.score.minus(only_one.score)
    assert order(a, only_one, {}) is Order.UNKNOWN


@pytest.mark.parametrize(
    ("value", "known"), [(0.011, True), (0.01, False), (0.0, False), (-0.01, False), (-0.011, True)]
)
def test_a_difference_is_known_that_does_not_reach_zero(value: float, known: bool) -> None:
    assert is_known(Estimate(value, 0.01, 0.01)) is known


def test_a_play_off_has_the_last_word() -> None:
    a, b = contestant("a", 0.1), contestant("b", 0.0)
    decided = met(("a", "b", Order.SLOWER))
    assert order(a, b, decided) is Order.SLOWER and order(a, b, {}) is Order.FASTER
    assert places([a, b], {}) == [(0, 1), (1, 2)]
    assert places([a, b], decided) == [(1, 1), (0, 2)]
    assert places([a, b], met(("a", "b", Order.UNKNOWN))) == [(0, 1), (1, 1)]


def test_those_who_met_change_places_among_themselves_alone() -> None:
    made = [contestant(code, -n / 10) for n, code in enumerate("abcd")]
    decided = met(("a", "d", Order.SLOWER))
    assert [number for number, _ in places(made, decided)] == [3, 1, 2, 0]
    chain = met(("a", "b", Order.SLOWER), ("b", "c", Order.SLOWER), ("a", "c", Order.SLOWER))
    assert [number for number, _ in places(made, chain)] == [2, 1, 0, 3]


def test_a_difference_that_only_reaches_zero_is_not_known() -> None:
    one = Contestant("a", Estimate(0.5, 0.375, 0.5), {"1": Estimate(0.5, 0.375, 0.5)})
    other = Contestant("b", Estimate(0.0, 0.25, 0.3125), {"1": Estimate(0.0, 0.25, 0.3125)})
    apart = math.hypot(0.375, 0.3125)
    level = replace(one, score=replace(one.score, value=0.5))
    assert apart < 0.5 and known_to_be_faster([level, other], {}) == [0, 1]
    three, four = Estimate(0.5, 0.3, 0.1), Estimate(0.0, 0.1, 0.4)
    touching = [replace(one, score=three), replace(other, score=four)]
    assert math.hypot(three.below, four.above) == 0.5
    assert order(touching[0], touching[1], {}) is order(touching[1], touching[0], {})
    assert order(touching[0], touching[1], {}) is Order.UNKNOWN
    assert known_to_be_faster(touching, {}) == [0, 0]
    found = {("a", "b"): Order.FASTER, ("b", "a"): Order.SLOWER}
    assert known_to_be_faster(touching, found) == [0, 1]
