"""Accuracy: how far a correct kernel is off where FP32 is accurate, as grade A, B or C.

Every full grading computes the grade at a small size, next to plain FP32 sums. On a GPU it does so
at the ranked size, too, next to cuBLAS (`measure`). The grade is no verdict.
"""

from collections.abc import Sequence

from harness.judge.grading import Grading
from harness.judge.stages.verify import launch
from harness.protocol.report import Accuracy, AccuracyAt, InputsAccuracy
from problem import accuracy
from problem.cases import Case, Shape
from problem.grades import Errors

PLAIN_SUMS = "plain FP32 sums"


def grade_accuracy(grading: Grading) -> None:
    """Compute the grade at a small size."""
    if grading.failure or not grading.grades_accuracy:
        return
    grading.progress.step("accuracy on structured inputs")
    found = [_launch(grading, case) for case in grading.problem.accuracy_cases()]
    add(grading, grading.problem.accuracy_shape, PLAIN_SUMS, found)


def _launch(grading: Grading, case: Case) -> InputsAccuracy:
    A, B = case.draw(grading.seed)
    products = (launch(grading, case, (A, B)).output, accuracy.plain_sums(A, B))
    of_kernel, of_baseline = (accuracy.errors(A, B, C) for C in products)
    return graded(case.inputs, case.shape, of_kernel, of_baseline)


def graded(inputs: str, shape: Shape, of_kernel: Errors, of_baseline: Errors) -> InputsAccuracy:
    """Return the errors on one kind of inputs, with their grade."""
    grade = accuracy.grade_of(shape.N, of_kernel, of_baseline)
    return InputsAccuracy(inputs=inputs, grade=grade, kernel=of_kernel, baseline=of_baseline)


def add(grading: Grading, shape: Shape, baseline: str, results: Sequence[InputsAccuracy]) -> None:
    """Add what was found at one size; the grade is the worst of all sizes."""
    before = grading.accuracy.sizes if grading.accuracy else ()
    worst = max(each.grade for each in results)
    at = AccuracyAt(shape=shape, baseline=baseline, grade=worst, results=tuple(results))
    sizes = (*before, at)
    grading.accuracy = Accuracy(grade=max(each.grade for each in sizes), sizes=sizes)
    grading.progress.found([sentence(grading.accuracy)])


def sentence(found: Accuracy) -> str:
    """Say the grade, and the inputs that decide it."""
    sizes = ", ".join(str(each.shape) for each in found.sizes)
    text = f"accuracy {found.grade} ({MEANINGS[found.grade]}) at {sizes}"
    worst = [each for size in found.sizes for each in size.results if each.grade == found.grade]
    if found.grade == "A" or not worst:
        return text
    decides = max(worst, key=lambda each: each.kernel.by_rows)
    return f'{text}; off by {decides.kernel.by_rows:.1e} on "{decides.inputs}"'


MEANINGS = {"A": "componentwise, as FP32", "B": "by rows and columns", "C": "on random inputs only"}
