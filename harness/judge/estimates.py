"""Estimates with 95 % intervals, and how a play-off combines them.

An estimate is the logarithm of a score. The difference of two says how much faster one kernel is,
as a share. The formulas:

* The interval of a difference follows from both intervals by MOVER, the "method of variance
  estimates recovery" (Zou and Donner, Statistics in Medicine 27, 2008, 1693-1702).
* A difference on several GPUs has Student's interval for paired differences. It is never narrower
  than the noise of the single differences makes it (Röver, Knapp and Friede, BMC Medical Research
  Methodology 15:99, 2015).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean, stdev

NORMAL = NormalDist().inv_cdf(0.975)
"""Half the width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A logarithm, and how far its 95 % interval reaches below and above it."""

    value: float
    below: float
    above: float

    @classmethod
    def of_ratio(cls, ratio: float, low: float, high: float) -> Estimate:
        return cls(math.log(ratio), math.log(ratio / low), math.log(high / ratio))

    @property
    def low(self) -> float:
        return self.value - self.below

    @property
    def high(self) -> float:
        return self.value + self.above

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference of two independent estimates."""
        return Estimate(
            self.value - other.value,
            math.hypot(self.below, other.above),
            math.hypot(self.above, other.below),
        )


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates of one quantity, all with the same weight."""
    count = len(estimates)
    return Estimate(
        fmean(each.value for each in estimates),
        math.hypot(*(each.below for each in estimates)) / count,
        math.hypot(*(each.above for each in estimates)) / count,
    )


def over_gpus(differences: Sequence[Estimate]) -> Estimate:
    """Return the difference on any GPU of a model, given the differences on at least two."""
    noise, count = mean(differences), len(differences)
    scatter = stdev(each.value for each in differences) / math.sqrt(count)
    margin = student(count - 1) * scatter
    return Estimate(noise.value, max(noise.below, margin), max(noise.above, margin))


@cache
def student(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's distribution: half the width of a 95 % interval."""
    low, high = 0.0, 13.0  # 12.7 for one degree, the most that there is
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if below_student(middle, degrees) < 0.975 else (low, middle)
    return high


def below_student(t: float, degrees: int) -> float:
    """Return Student's distribution function, by its series for whole degrees of freedom
    (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees, 2):
        term *= (k - 1) / k * cosine**2
        total += term
    within = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return (1 + within) / 2
