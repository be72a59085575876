"""Estimates with 95 % intervals, how they are combined, and how much GPUs of one model differ.

An estimate is the logarithm of a score: what is multiplied adds up, and a difference of two is how
much faster one is, as a share. Where the formulas are from:

* Sums and differences of estimates of which only the intervals are known: MOVER, "method of
  variance estimates recovery" (Zou and Donner, Statistics in Medicine 27, 2008, 1693-1702).
* How much GPUs differ beyond the noise of each: the moment estimator of the random-effects model
  (DerSimonian and Laird, Controlled Clinical Trials 7, 1986, 177-188), its sums taken over kernels.
* A difference on several GPUs: Student's interval for paired differences, never narrower than the
  noise of the single ones alone would make it (the modification of Knapp and Hartung's interval by
  Röver, Knapp and Friede, BMC Medical Research Methodology 15:99, 2015).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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

    @property
    def deviation(self) -> float:
        """As a standard deviation."""
        return (self.below + self.above) / (2 * NORMAL)

    def widened(self, margin: float) -> Estimate:
        """With another, independent, source of error, whose interval is ± margin."""
        return Estimate(self.value, math.hypot(self.below, margin), math.hypot(self.above, margin))

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two that are independent."""
        return Estimate(
            self.value - other.value,
            math.hypot(self.below, other.above),
            math.hypot(self.above, other.below),
        )


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """Of estimates of one quantity that are independent, and of which none counts more."""
    count = len(estimates)
    return Estimate(
        fmean(each.value for each in estimates),
        math.hypot(*(each.below for each in estimates)) / count,
        math.hypot(*(each.above for each in estimates)) / count,
    )


def over_gpus(differences: Sequence[Estimate]) -> Estimate:
    """A difference on any GPU of the model, from what it is on each of at least two."""
    noise, count = mean(differences), len(differences)
    scatter = stdev(each.value for each in differences) / math.sqrt(count)
    margin = student(count - 1) * scatter
    return Estimate(noise.value, max(noise.below, margin), max(noise.above, margin))


def variance_between(groups: Iterable[Sequence[Estimate]]) -> float:
    """How much estimates of one group vary beyond their noise: the variance that all groups share.

    A group has at least two. With w = 1/variance, Q = Σ w (y - ȳ)² and its expectation
    n - 1 + τ² (Σw - Σw²/Σw) in each group, both summed over the groups, τ² makes them equal.
    """
    excess = per_variance = 0.0
    for group in groups:
        weights = [1 / max(each.deviation, _LEAST) ** 2 for each in group]
        total = math.fsum(weights)
        middle = math.fsum(w * each.value for w, each in zip(weights, group, strict=True)) / total
        q = math.fsum(
            w * (each.value - middle) ** 2 for w, each in zip(weights, group, strict=True)
        )
        excess += q - (len(group) - 1)
        per_variance += total - math.fsum(w * w for w in weights) / total
    return max(0.0, excess / per_variance) if per_variance else 0.0


_LEAST = 1e-6
"""No measurement is better than that: a weight that is infinite would be the only one."""


@cache
def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's distribution: half the width of a 95 % interval."""
    low, high = 0.0, 13.0  # 12.7 for one degree, the most that there is
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if below_student(middle, degrees) < 0.975 else (low, middle)
    return high


def below_student(t: float, degrees: int) -> float:
    """Student's distribution function, by its finite series for whole degrees of freedom
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
