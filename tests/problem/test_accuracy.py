"""The accuracy grade tells plain FP32 from approximations that pass on random inputs."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from problem import accuracy
from problem.accuracy import Errors, Grade, grade_of, plain_sums
from problem.cases import Shape
from problem.inputs import Matrix
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import compare

SHAPE = Shape(40, 1024, 24)
CASES = replace(MATRIX_MULTIPLICATION, accuracy_shape=SHAPE).accuracy_cases()


def graded(multiply: Callable[[Matrix, Matrix], Matrix]) -> Grade:
    found = []
    for case in CASES:
        A, B = case.draw(5)
        both = (accuracy.errors(A, B, each(A, B)) for each in (multiply, plain_sums))
        found.append(grade_of(SHAPE.N, *both))
    return max(found)


def rounded(matrix: Matrix, bits: int) -> Matrix:
    """The matrix, rounded to so many bits of significand, as splits into narrow types do."""
    fraction, exponent = np.frexp(matrix)
    return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits).astype(np.float32)


def three_products(bits: int) -> Callable[[Matrix, Matrix], Matrix]:
    """The product of high and low parts without the product of both low parts."""

    def multiply(A: Matrix, B: Matrix) -> Matrix:
        high_A, high_B = rounded(A, bits), rounded(B, bits)
        low_A, low_B = rounded(A - high_A, bits), rounded(B - high_B, bits)
        products = ((high_A, high_B), (high_A, low_B), (low_A, high_B))
        return sum(X.astype(np.float64) @ Y for X, Y in products).astype(np.float32)

    return multiply


def strassen(A: Matrix, B: Matrix) -> Matrix:
    """One level of Strassen's algorithm, in FP32."""
    m, n, k = A.shape[0] // 2, A.shape[1] // 2, B.shape[1] // 2
    a, b, c, d = A[:m, :n], A[:m, n:], A[m:, :n], A[m:, n:]
    e, f, g, h = B[:n, :k], B[:n, k:], B[n:, :k], B[n:, k:]
    p1, p2, p3, p4, p5, p6, p7 = (
        plain_sums(X, Y)
        for X, Y in (
            (a, f - h),
            (a + b, h),
            (c + d, e),
            (d, g - e),
            (a + d, e + h),
            (b - d, g + h),
            (a - c, e + f),
        )
    )
    return np.block([[p5 + p4 - p2 + p6, p1 + p2], [p3 + p4, p1 + p5 - p3 - p7]])


def in_blocks(A: Matrix, B: Matrix) -> Matrix:
    """FP32 sums of sums, in another order than the baseline's."""
    parts = range(0, A.shape[1], 64)
    return sum(plain_sums(A[:, n : n + 64], B[n : n + 64]) for n in parts)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("multiply", "expected"),
    [
        (plain_sums, Grade.A),
        (in_blocks, Grade.A),
        (three_products(12), Grade.A),
        (three_products(8), Grade.B),
        (strassen, Grade.C),
        (lambda A, B: plain_sums(rounded(A, 11), rounded(B, 11)), Grade.C),
    ],
    ids=["plain", "blocks", "TF32 in three", "BF16 in three", "Strassen", "TF32"],
)
def test_each_way_to_multiply_has_its_grade(
    multiply: Callable[[Matrix, Matrix], Matrix], expected: Grade
) -> None:
    assert graded(multiply) is expected


@pytest.mark.parametrize(
    ("kernel", "baseline", "expected"),
    [
        (Errors(1e-5, 1, 7.6e-6), Errors(0, 0, 0), Grade.A),
        (Errors(1.1e-5, 1e-6, 7.6e-6), Errors(0, 0, 0), Grade.B),
        (Errors(1e-6, 1e-6, 7.7e-6), Errors(0, 0, 0), Grade.B),
        (Errors(4e-5, 4e-5, 4e-5), Errors(2e-5, 2e-5, 2e-5), Grade.A),
        (Errors(1e-6, 7.7e-6, 7.7e-6), Errors(0, 0, 0), Grade.C),
        (Errors(1, 1.5e-5, 1), Errors(0, 7.6e-6, 0), Grade.B),
        (Errors(1, 1.6e-5, 1), Errors(0, 7.6e-6, 0), Grade.C),
    ],
)
def test_grades_allow_for_errors_of_the_baseline(
    kernel: Errors, baseline: Errors, expected: Grade
) -> None:
    """4 √1024 u is 7.63e-6."""
    assert grade_of(1024, kernel, baseline) is expected


def test_the_block_error_is_that_of_acceptance() -> None:
    A, B = CASES[0].draw(1)
    C = plain_sums(A, B)
    C[3, 4] += 1e-3
    found = accuracy.errors(A, B, C)
    assert found.block == compare(A, B, C).worst
    terms = np.abs(A.astype(np.float64)) @ np.abs(B)
    assert found.by_components == pytest.approx(1e-3 / terms[3, 4], rel=1e-2)
