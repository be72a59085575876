"""Places that respect the noise: a kernel's place is one more than how many are known to be faster.

Rows whose order is not known share a place, therefore. Where one is known less well than those
around it, it stands by its score and shares the place of the row before it, so that nobody gains by
being uncertain. That an order is known takes a difference of scores whose 95 % interval does not
hold zero:

* of two that met in a play-off, the one that it found;
* of two that were graded on at least two GPUs in common, the mean of the differences there;
* of others the difference of their scores, each with the spread between GPUs in its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

import numpy as np

from harness.judge.estimates import Estimate, over_gpus


class Order(Enum):
    """Of two kernels."""

    FASTER = "faster"
    SLOWER = "slower"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A kernel, as far as its place depends on it."""

    code: str
    score: Estimate
    """With the spread between GPUs in its interval."""
    on: dict[str, Estimate]
    """By GPU, without it."""


Decided = Mapping[tuple[str, str], Order]
"""What play-offs say of two programs; both ways round."""


def places(contestants: Sequence[Contestant], decided: Decided) -> list[tuple[int, int]]:
    """Who has which place, best first: by the number among the contestants, who are given best
    score first."""
    faster = known_to_be_faster(contestants, decided)
    place = 1
    placed: list[tuple[int, int]] = []
    for number in _in_order(contestants, decided):
        place = max(place, 1 + faster[number])
        placed.append((number, place))
    return placed


def known_to_be_faster(contestants: Sequence[Contestant], decided: Decided) -> list[int]:
    """How many are, for each contestant. contestants: best score first."""
    values = np.array([each.score.value for each in contestants])
    below = np.array([each.score.below for each in contestants]) ** 2
    above = np.array([each.score.above for each in contestants]) ** 2
    widest = math.sqrt(below.max(initial=0.0))
    # Whoever is beyond the widest interval is known to be faster without being looked at.
    beyond = np.searchsorted(-values, -(values + np.hypot(widest, np.sqrt(above))))
    faster = beyond.copy()
    for i, first in enumerate(beyond):
        gaps = values[first:i] - values[i]
        faster[i] += np.count_nonzero(gaps**2 > below[first:i] + above[i])
    for i, j in _with_more_known(contestants, decided):
        faster[j] -= i < beyond[j] or (values[i] - values[j]) ** 2 > below[i] + above[j]
        found = order(contestants[i], contestants[j], decided)
        faster[i] += found is Order.SLOWER
        faster[j] += found is Order.FASTER
    return [int(count) for count in faster]


def _in_order(contestants: Sequence[Contestant], decided: Decided) -> list[int]:
    """By score; those who met in a play-off have their places among themselves by that."""
    order = list(range(len(contestants)))
    met = {code for pair in decided for code in pair}
    places = [place for place in order if contestants[place].code in met]
    for _ in decided:  # each exchange puts at least one pair right
        wrong = next(
            (
                (i, j)
                for i, j in combinations(places, 2)
                if decided.get((contestants[order[i]].code, contestants[order[j]].code))
                is Order.SLOWER
            ),
            None,
        )
        if wrong is None:
            break
        i, j = wrong
        order[i], order[j] = order[j], order[i]
    return order


def order(one: Contestant, other: Contestant, decided: Decided) -> Order:
    """What is known of the first beside the second."""
    found = decided.get((one.code, other.code))
    return found or _order(difference(one, other))


def difference(one: Contestant, other: Contestant) -> Estimate:
    """Of the logarithms of their scores: how much faster the first is, as a share."""
    common = one.on.keys() & other.on.keys()
    if len(common) > 1:
        return over_gpus([one.on[gpu].minus(other.on[gpu]) for gpu in sorted(common)])
    return one.score.minus(other.score)


def is_known(difference: Estimate) -> bool:
    """Whether its interval does not hold zero."""
    return difference.low > 0 or difference.high < 0


def _order(difference: Estimate) -> Order:
    if difference.low > 0:
        return Order.FASTER
    return Order.SLOWER if difference.high < 0 else Order.UNKNOWN


def _with_more_known(
    contestants: Sequence[Contestant], decided: Decided
) -> Iterator[tuple[int, int]]:
    """The pairs of which more is known than their two scores, whoever stands higher first."""
    several = [i for i, each in enumerate(contestants) if len(each.on) > 1]
    met = {code for pair in decided for code in pair}
    played = [i for i, each in enumerate(contestants) if each.code in met]
    pairs = {
        (i, j)
        for i, j in combinations(several, 2)
        if len(contestants[i].on.keys() & contestants[j].on.keys()) > 1
    }
    pairs |= {
        (i, j)
        for i, j in combinations(played, 2)
        if (contestants[i].code, contestants[j].code) in decided
    }
    yield from pairs
