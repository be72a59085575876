"""A second problem, which shows that `harness` is independent of the problem: transpose a matrix.

A shape's M and K are the rows and columns of the input; its N is 1.
"""

from dataclasses import dataclass

import numpy as np

from problem import cases
from problem.cases import Case, Extent, Shape
from problem.inputs import Matrix, Tolerance
from problem.problem import Inputs, Problem
from problem.reference import BLOCK_SIZE, Comparison, Float64, repeated
from problem.signature import Arguments, Buffer, Signature


@dataclass(frozen=True)
class Expected:
    """The transposed input, of which every element must be the same."""

    output: Matrix

    def compare(self, output: Matrix) -> Comparison:
        wrong = np.where(output == self.output, 0.0, np.inf)
        rows = np.maximum.reduceat(wrong, range(0, wrong.shape[0], BLOCK_SIZE), axis=0)
        blocks = np.maximum.reduceat(rows, range(0, wrong.shape[1], BLOCK_SIZE), axis=1)
        return Comparison(blocks, Tolerance.EXACT)


class Transposition(Problem):
    def arguments(self, shape: Shape) -> Arguments:
        rows, columns = shape.M, shape.K
        given, wanted = Buffer("input", rows, columns), Buffer("output", columns, rows)
        return Arguments(shape, (given,), wanted, (rows, columns))

    def draw(self, case: Case, seed: int) -> Inputs:
        return Case(Shape(case.shape.M, case.shape.K, 1), case.inputs).draw(seed)[:1]

    def part(self, inputs: Inputs, rows: slice, columns: slice) -> Inputs:
        return (inputs[0][columns, rows],)

    def reference(self, inputs: Inputs) -> Float64:
        return inputs[0].T.astype(np.float64)

    def expected(self, case: Case, inputs: Inputs) -> Expected:
        return Expected(inputs[0].T)

    def hint(self, inputs: Inputs, output: Matrix) -> str | None:
        return None

    def first_inputs(self, seed: int) -> Inputs:
        return self.draw(Case(Shape(64, 1, 64)), seed)

    def compare_first(self, parts: Inputs, output: Matrix) -> Comparison:
        whole = repeated(parts[0], *output.shape[::-1])
        return self.compare(self.ranked, (whole,), output)

    def cases(self, seed: int, *, quick: bool, sampled: bool) -> tuple[Case, ...]:
        return tuple(map(flat, super().cases(seed, quick=quick, sampled=sampled)))

    def watched_cases(
        self, rows: int, columns: int, seed: int, *, quick: bool, max_work: int
    ) -> tuple[Case, ...]:
        found = super().watched_cases(columns, rows, seed, quick=quick, max_work=max_work)
        return tuple(map(flat, found))

    def mid_size_case(self, seed: int) -> Case:
        return flat(super().mid_size_case(seed))

    def counting_inputs(self, seed: int) -> Inputs:
        return self.draw(flat(cases.COUNTED_PART), seed)


def flat(case: Case) -> Case:
    return Case(Shape(case.shape.M, 1, case.shape.K), case.inputs)


KNOWN = (Case(Shape(16, 1, 16)), Case(Shape(33, 1, 20)), Case(Shape(1, 1, 40), "normal"))

TRANSPOSITION = Transposition(
    signature=Signature("transposition_kernel", ("input",), "output", ("rows", "columns")),
    on_gpu="tests.transposition_on_gpu",
    baseline="CuPy",
    version=1,
    ranked=Case(Shape(1024, 1, 1536)),
    counted_shapes=(Shape(256, 1, 256),),
    known=KNOWN,
    quick_known=KNOWN[:2],
    extent=lambda quick, sampled: Extent(3, 0, 1, 0, 1 << 20, 1 << 22, 0),
    accuracy_inputs=(),
)
