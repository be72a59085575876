"""The problem as one object: what the judge's stages ask of it.

The stages receive it as an argument: tests/other_problem.py is another one, with cases, reference
and limits of its own. All problems have this kernel's signature, A (M×N), B (N×K) and C (M×K), and
the launch rule in `launcher.py`. What is timed is checked by `gpu.py`, for this problem alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from problem import accuracy, cases
from problem.cases import Case, Extent, Shape
from problem.inputs import Matrix
from problem.reference import Comparison, Expected


class Comparable(Protocol):
    """What C should be."""

    def compare(self, C: Matrix) -> Comparison: ...


@dataclass(frozen=True)
class Problem:
    """A way to judge matrix multiplication.

    version: results of two versions are not comparable.
    ranked: the case that is scored.
    other_sizes: sizes that are scored for information.
    known, quick_known: cases that every full or quick grading verifies.
    extent: how many unknown cases there are besides, and how large.
    scored_inputs, unscored_inputs: kinds of inputs of timed launches.
    accuracy_inputs, accuracy_shape: kinds of inputs, and the small size, of the accuracy grade.
    """

    version: int = cases.CASES_VERSION
    ranked: Case = cases.RANKED
    other_sizes: tuple[Shape, ...] = cases.OTHER_SIZES
    known: tuple[Case, ...] = cases.CASES
    quick_known: tuple[Case, ...] = cases.QUICK_CASES
    extent: Callable[[bool, bool], Extent] = cases.extent
    scored_inputs: tuple[str, ...] = cases.SCORED_INPUTS
    unscored_inputs: tuple[str, ...] = cases.UNSCORED_INPUTS
    accuracy_inputs: tuple[str, ...] = accuracy.INPUTS
    accuracy_shape: Shape = accuracy.SMALL_SHAPE

    def cases(self, seed: int, *, quick: bool, sampled: bool) -> tuple[Case, ...]:
        """What a grading verifies before the ranked size; part of it is known to nobody before.

        sampled: the device is slow.
        """
        how = self.extent(quick, sampled)
        return (
            *(self.quick_known if quick else self.known),
            *cases.outlier_cases(seed, how.outliers),
            *cases.drawn_cases(seed, how.small, how.small_work),
            *cases.drawn_cases(seed, how.large, how.large_work, how.large_work // 8),
        )

    def small_cases(self, seed: int, count: int, max_work: int) -> Sequence[Case]:
        """Those of the unknown cases that are little work, for slow tools."""
        how = self.extent(False, True)
        drawn = cases.drawn_cases(seed, how.small, how.small_work)
        return [case for case in drawn if cases.work(case.shape) <= max_work][:count]

    def ranked_case(self, seed: int, shape: Shape | None = None) -> Case:
        """How the ranked size, or another in its place, is verified."""
        return cases.ranked_case(shape or self.ranked.shape, seed)

    def smaller(self, flop: float) -> Shape:
        """The ranked shape, made smaller until it is no more work than this."""
        ranked = self.ranked.shape
        scale = min(1.0, (flop / ranked.flop) ** (1 / 3))
        return Shape(*(max(1, int(size * scale)) for size in (ranked.M, ranked.N, ranked.K)))

    def near_cases(self, count: int, kinds: int) -> tuple[tuple[Shape, tuple[str, ...]], ...]:
        """Shapes near the ranked one that nobody can know, and so many kinds for each of them."""
        every = [*self.scored_inputs, *self.unscored_inputs]
        secrets.SystemRandom().shuffle(every)
        shapes = cases.near_shapes(self.ranked.shape, count)
        return tuple(
            (shape, tuple(every[(number * kinds + n) % len(every)] for n in range(kinds)))
            for number, shape in enumerate(shapes)
        )

    def accuracy_cases(self) -> tuple[Case, ...]:
        """The cases from which accuracy is graded at a small size."""
        return tuple(Case(self.accuracy_shape, inputs) for inputs in self.accuracy_inputs)

    def expected(self, case: Case, A: Matrix, B: Matrix) -> Comparable:
        """What C should be."""
        return Expected.of(A, B, tolerance=case.tolerance)

    def compare(self, case: Case, A: Matrix, B: Matrix, C: Matrix) -> Comparison:
        """How far C is from what it should be; A, B and C may be parts of those of the case."""
        return self.expected(case, A, B).compare(C)


MATRIX_MULTIPLICATION = Problem()
