"""The problem as one object, which the judge receives as an argument.

tests/transposition.py is another problem. All problems share the launch rule in `launcher.py`, and
their inputs and outputs are float32 matrices.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from problem import accuracy, cases
from problem.cases import Case, Extent, Shape
from problem.hints import hint
from problem.inputs import Matrix
from problem.reference import Comparison, Expected, Float64, compare_repeated, reference
from problem.signature import SIGNATURE, Arguments, Buffer, Signature

Inputs = tuple[Matrix, ...]
"""The inputs of a launch, in the order of the kernel's parameters."""

_FEW = 256
"""Rows of A and columns of B in the first launches, which repeat them."""


class Comparable(Protocol):
    """The expected output."""

    def compare(self, output: Matrix, /) -> Comparison: ...


@dataclass(frozen=True)
class Problem:
    """All that the judge needs to know of a problem; this one is matrix multiplication.

    signature: the name of the kernel and its parameters.
    on_gpu: the module that draws, checks and computes the baseline on a GPU, such as
    problem/gpu.py.
    baseline: the name of the baseline.
    version: results of different versions are not comparable.
    ranked: the case that is scored.
    other_sizes: sizes that are scored for information.
    counted_shapes: sizes at which whole launches are counted, in the order in which they are
        tried; the last is tried first where tensor cores multiply.
    known, quick_known: cases that every full or quick grading verifies.
    extent: the number and size of the unknown cases.
    scored_inputs, unscored_inputs: kinds of inputs of timed launches.
    accuracy_inputs, accuracy_shape: kinds of inputs, and the small size, of the accuracy grade.
    """

    signature: Signature = SIGNATURE
    on_gpu: str = "problem.gpu"
    baseline: str = "cuBLAS"
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
        """Return the arguments of a launch at this shape."""
        M, N, K = shape.M, shape.N, shape.K
        return Arguments(
            shape, (Buffer("A", M, N), Buffer("B", N, K)), Buffer("C", M, K), (M, N, K)
        )

    def draw(self, case: Case, seed: int) -> Inputs:
        """Return the inputs. They are the same for the same case and seed."""
        return case.draw(seed)

    def part(self, inputs: Inputs, rows: slice, columns: slice) -> Inputs:
        """Return the parts of the inputs on which these rows and columns of the output depend."""
        A, B = inputs
        return A[rows], B[:, columns]

    def cases(self, seed: int, *, quick: bool, sampled: bool) -> tuple[Case, ...]:
        """Return the cases that a grading verifies before the ranked size; some are unknown before.

        sampled: the device is slow.
        """
        how = self.extent(quick, sampled)
        return (
            *(self.quick_known if quick else self.known),
            *cases.outlier_cases(seed, how.outliers),
            *cases.special_cases(seed, how.special, how.special_size),
            *cases.drawn_cases(seed, how.small, how.small_work),
            *cases.drawn_cases(seed, how.large, how.large_work, how.large_work // 8),
        )

    def small_cases(self, seed: int, count: int, max_work: int) -> Sequence[Case]:
        """Return the unknown cases with little work, for slow tools."""
        how = self.extent(False, True)
        drawn = cases.drawn_cases(seed, how.small, how.small_work)
        return [case for case in drawn if cases.work(case.shape) <= max_work][:count]

    def ranked_case(self, seed: int, shape: Shape | None = None) -> Case:
        """Return the case that verifies the ranked size, or another size instead. The inputs are of
        kinds that are not scored."""
        number = np.random.default_rng([seed, cases.CASES_VERSION, 6]).integers(2)
        return Case(shape or self.ranked.shape, cases.LARGE_INPUTS[number])

    def watched_cases(
        self, rows: int, columns: int, seed: int, *, quick: bool, max_work: int
    ) -> tuple[Case, ...]:
        """Return the cases on which a kernel with tiles of this size is sanitized. max_work: the
        limit for those that are verified, too."""
        found = cases.edge_cases(rows, columns, seed, quick=quick)
        return found if quick else (*found, *self.small_cases(seed, 2, max_work))

    def many_blocks_case(self, rows: int, columns: int, seed: int, max_flop: int) -> Case:
        """Return a case with more tiles of this size than an H100 has multiprocessors, or as many
        as this work permits, but at least four. A kernel is sanitized on it if its blocks depend on
        one another. Persistent blocks share tiles, or take several, only if there are many. Those
        that share the iterations of a tile need sums of several."""
        generator = np.random.default_rng([seed, cases.CASES_VERSION, 8])
        N, most = 2 * int(generator.integers(16, 25)) + 1, 12
        if max_flop // (2 * rows * columns * most**2) >= 3 * N:
            N *= 3
        side = min(most, max(2, math.isqrt(max_flop // (2 * N * rows * columns))))
        M, K = (side * size - int(generator.integers(0, 16)) for size in (rows, columns))
        return Case(Shape(M, N, K))

    def mid_size_case(self, seed: int) -> Case:
        """Return one more case for compute-sanitizer, on which an instrumented kernel does not take
        long."""
        generator = np.random.default_rng([seed, cases.CASES_VERSION, 3])
        M, K = (int(size) for size in generator.integers(513, 1000, 2))
        return Case(Shape(M, int(generator.integers(17, 49)), K))

    def counting_inputs(self, seed: int) -> Inputs:
        """Return the inputs with which memory accesses are counted, at any shape: their elements
        are repeated, which is faster than to draw and send more."""
        return self.draw(cases.COUNTED_PART, seed)

    def smaller(self, flop: float) -> Shape:
        """Return the ranked shape, reduced until it is no more work than this."""
        ranked = self.ranked.shape
        scale = min(1.0, (flop / ranked.flop) ** (1 / 3))
        return Shape(*(max(1, int(size * scale)) for size in (ranked.M, ranked.N, ranked.K)))

    def near_cases(self, count: int, kinds: int) -> tuple[tuple[Shape, tuple[str, ...]], ...]:
        """Return cases of unknown shapes near the ranked one, with so many kinds for each shape."""
        every = [*self.scored_inputs, *self.unscored_inputs]
        secrets.SystemRandom().shuffle(every)
        shapes = cases.near_shapes(self.ranked.shape, count)
        return tuple(
            (shape, tuple(every[(number * kinds + n) % len(every)] for n in range(kinds)))
            for number, shape in enumerate(shapes)
        )

    def accuracy_cases(self) -> tuple[Case, ...]:
        """Return the cases from which accuracy is graded at a small size."""
        return tuple(Case(self.accuracy_shape, inputs) for inputs in self.accuracy_inputs)

    def reference(self, inputs: Inputs) -> Float64:
        """Return the output in float64."""
        return reference(*inputs)

    def expected(self, case: Case, inputs: Inputs) -> Comparable:
        """Return the expected output of a case, with the case's tolerance."""
        return Expected.of(*inputs, tolerance=case.tolerance)

    def compare(self, case: Case, inputs: Inputs, output: Matrix) -> Comparison:
        """Compare the output with the expected one; both may be parts of those of the case."""
        return self.expected(case, inputs).compare(output)

    def hint(self, inputs: Inputs, output: Matrix) -> str | None:
        """Return a typical mistake that explains a wrong output, in one sentence."""
        A, B = inputs
        return hint(A, B, output)

    def first_inputs(self, seed: int) -> Inputs:
        """Return a part of each input of the first launches at the ranked shape. These launches
        repeat it down and across, so that their output can be compared quickly."""
        return Case(Shape(_FEW, self.ranked.shape.N, _FEW)).draw(seed)

    def compare_first(self, parts: Inputs, output: Matrix) -> Comparison:
        """Compare the output with that of the repeated parts."""
        rows, columns = parts
        return compare_repeated(rows, columns, output)


MATRIX_MULTIPLICATION = Problem()
