"""The problem as one object: what the judge asks of it.

The judge receives it as an argument: tests/transposition.py is another one. All problems have the
launch rule in `launcher.py` in common, and that inputs and output are float32 matrices.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from problem import accuracy, cases
from problem.cases import Case, Extent, Shape
from problem.hints import hint
from problem.inputs import Matrix
from problem.reference import Comparison, Expected, Float64, compare_repeated, reference
from problem.signature import SIGNATURE, Arguments, Buffer, Signature

Inputs = tuple[Matrix, ...]
"""The inputs of a launch, in the order of the kernel's parameters."""

ARITHMETICS = ("fp32", "tf32", "fp16 inputs")
"""The precisions in which the baseline's library can multiply; scores are of the first."""

_FEW = 256
"""Rows of A and columns of B in the first launches, which repeat them."""


class Comparable(Protocol):
    """What the output should be."""

    def compare(self, output: Matrix, /) -> Comparison: ...


@dataclass(frozen=True)
class Problem:
    """A way to judge a kernel; this one is matrix multiplication.

    signature: what the kernel is called, and its parameters.
    on_gpu: the module that draws, checks and computes the baseline on a GPU, as problem/gpu.py.
    baseline: the name of what a kernel is timed against. arithmetics: the precisions that it has.
    version: results of two versions are not comparable.
    ranked: the case that is scored.
    other_sizes: sizes that are scored for information.
    counted_shapes: sizes at which whole launches are counted, the smallest first.
    known, quick_known: cases that every full or quick grading verifies.
    extent: how many unknown cases there are besides, and how large.
    scored_inputs, unscored_inputs: kinds of inputs of timed launches.
    accuracy_inputs, accuracy_shape: kinds of inputs, and the small size, of the accuracy grade.
    """

    signature: Signature = SIGNATURE
    on_gpu: str = "problem.gpu"
    baseline: str = "cuBLAS"
    arithmetics: tuple[str, ...] = ARITHMETICS
    version: int = cases.CASES_VERSION
    ranked: Case = cases.RANKED
    other_sizes: tuple[Shape, ...] = cases.OTHER_SIZES
    counted_shapes: tuple[Shape, ...] = cases.COUNTED_SHAPES
    known: tuple[Case, ...] = cases.CASES
    quick_known: tuple[Case, ...] = cases.QUICK_CASES
    extent: Callable[[bool, bool], Extent] = cases.extent
    scored_inputs: tuple[str, ...] = cases.SCORED_INPUTS
    unscored_inputs: tuple[str, ...] = cases.UNSCORED_INPUTS
    accuracy_inputs: tuple[str, ...] = accuracy.INPUTS
    accuracy_shape: Shape = accuracy.SMALL_SHAPE

    def arguments(self, shape: Shape) -> Arguments:
        """What the kernel is launched with at this shape."""
        M, N, K = shape.M, shape.N, shape.K
        return Arguments(
            shape, (Buffer("A", M, N), Buffer("B", N, K)), Buffer("C", M, K), (M, N, K)
        )

    def draw(self, case: Case, seed: int) -> Inputs:
        """The inputs, the same for the same case and seed."""
        return case.draw(seed)

    def part(self, inputs: Inputs, rows: slice, columns: slice) -> Inputs:
        """The parts of the inputs from which these rows and columns of the output follow."""
        A, B = inputs
        return A[rows], B[:, columns]

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
        """Return the unknown cases that are little work, for slow tools."""
        how = self.extent(False, True)
        drawn = cases.drawn_cases(seed, how.small, how.small_work)
        return [case for case in drawn if cases.work(case.shape) <= max_work][:count]

    def ranked_case(self, seed: int, shape: Shape | None = None) -> Case:
        """How the ranked size, or another in its place, is verified."""
        return cases.ranked_case(shape or self.ranked.shape, seed)

    def watched_cases(
        self, rows: int, columns: int, seed: int, *, quick: bool, max_work: int
    ) -> tuple[Case, ...]:
        """The cases that a kernel with tiles of this size is sanitized on; max_work: of those that
        are verified, too."""
        found = cases.edge_cases(rows, columns, seed, quick=quick)
        return found if quick else (*found, *self.small_cases(seed, 2, max_work))

    def mid_size_case(self, seed: int) -> Case:
        """One more for the sanitizer of a GPU."""
        return cases.mid_size_case(seed)

    def counting_inputs(self, shape: Shape, seed: int) -> Inputs:
        """Inputs with which memory accesses are counted."""
        return cases.counting_inputs(shape, seed)

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

    def reference(self, inputs: Inputs) -> Float64:
        """The output in float64."""
        return reference(*inputs)

    def expected(self, case: Case, inputs: Inputs) -> Comparable:
        """What the output should be."""
        return Expected.of(*inputs, tolerance=case.tolerance)

    def compare(self, case: Case, inputs: Inputs, output: Matrix) -> Comparison:
        """How far the output is from what it should be; both may be parts of those of the case."""
        return self.expected(case, inputs).compare(output)

    def hint(self, inputs: Inputs, output: Matrix) -> str | None:
        """A mistake of this problem that explains a wrong output, in one sentence."""
        A, B = inputs
        return hint(A, B, output)

    def first_inputs(self, seed: int) -> Inputs:
        """A part of each input of the first launches at the ranked shape, which repeat it down and
        across, so that their output can be compared quickly."""
        return Case(Shape(_FEW, self.ranked.shape.N, _FEW)).draw(seed)

    def compare_first(self, parts: Inputs, output: Matrix) -> Comparison:
        """How far the output is from that of the repeated parts."""
        rows, columns = parts
        return compare_repeated(rows, columns, output)


MATRIX_MULTIPLICATION = Problem()
