"""The error per block catches what it must and lets honest float32 pass."""

import os

import numpy as np
import pytest

from problem.cases import (
    CASES,
    INTEGERS,
    ODD_INTEGERS,
    ZEROS,
    Case,
    Matrix,
    Shape,
    drawn_cases,
    special_cases,
)
from problem.inputs import Tolerance
from problem.reference import MAX_ERROR, MAX_STRUCTURED_ERROR, compare, compare_repeated, repeated
from tests.forked import python

LENGTHS = (1, 16, 17, 512, 6144)


def drawn(N: int) -> tuple[Matrix, Matrix, Matrix]:
    """Uniform inputs of an awkward shape, and C summed in sequential float32."""
    A, B = Case(Shape(50, N, 35)).draw(N)
    return A, B, sequential(A, B)


def sequential(A: Matrix, B: Matrix) -> Matrix:
    C = np.zeros((A.shape[0], B.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for n in range(A.shape[1]):
            C += A[:, n, None] * B[None, n]
    return C


def error(A: Matrix, B: Matrix, C: Matrix) -> float:
    return compare(A, B, C).worst


@pytest.mark.parametrize(
    "case", [*CASES, *drawn_cases(3, 60, 1 << 20), *special_cases(3, 16, 128)], ids=str
)
def test_sequential_float32_passes_everywhere(case: Case) -> None:
    A, B = case.draw(11)
    assert compare(A, B, sequential(A, B), tolerance=case.tolerance).passed


@pytest.mark.parametrize("case", special_cases(3, 16, 128), ids=str)
def test_compensated_sums_pass_with_special_values(case: Case) -> None:
    A, B = case.draw(11)
    C = np.zeros((A.shape[0], B.shape[1]), np.float32)
    lost = np.zeros_like(C)
    with np.errstate(all="ignore"):
        for n in range(A.shape[1]):
            product = A[:, n, None] * B[None, n] - lost
            total = C + product
            lost, C = (total - C) - product, total
    assert compare(A, B, C, tolerance=case.tolerance).passed


@pytest.mark.parametrize("N", LENGTHS)
def test_a_damaged_output_is_wrong(N: int) -> None:
    A, B, C = drawn(N)
    products = A[20] * B[:, 30]
    middling = products[np.abs(products).argsort()[len(products) // 2]]
    largest = np.unravel_index(np.abs(C).argmax(), C.shape)
    damages = {
        "a product of middling size is missing": ((20, 30), C[20, 30] - middling),
        "off by one per cent": (largest, 1.01 * C[largest]),
        "zero": ((49, 34), 0),
        "transposed": (np.s_[:35, :35], C[:35, :35].T),
    }
    for name, (place, value) in damages.items():
        wrong = C.copy()
        wrong[place] = value
        assert error(A, B, wrong) > MAX_ERROR, name


@pytest.mark.parametrize("N", [512, 6144])
def test_tf32_and_bf16_inputs_are_caught(N: int) -> None:
    A, B, _ = drawn(N)
    for bits in (13, 16):  # significand bits that TF32 and BF16 lack
        C = sequential(truncated(A, bits), truncated(B, bits))
        assert error(A, B, C) > 10 * MAX_ERROR
    A, B = Case(Shape(64, 512, 48), ODD_INTEGERS).draw(1)
    assert not compare(A, B, truncated(A, 13) @ truncated(B, 13), tolerance=Tolerance.EXACT).passed


def truncated(matrix: Matrix, bits: int) -> Matrix:
    return (matrix.view(np.uint32) & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)).view(np.float32)


def test_a_block_that_must_be_zero_must_be_exactly_zero() -> None:
    A, B = Case(Shape(32, 8, 32), ZEROS).draw(0)
    C = np.zeros((32, 32), np.float32)
    assert error(A, B, C) == 0
    C[31, 31] = 1e-38
    assert error(A, B, C) == np.inf
    # Other cancellation is judged by the size of the terms.
    A = np.array([[1.0, 1.0]], np.float32)
    B = np.array([[1.0], [-1.0]], np.float32)
    assert error(A, B, np.array([[1e-7]], np.float32)) < MAX_ERROR
    assert error(A, B, np.array([[1e-4]], np.float32)) > MAX_ERROR


def test_a_product_starts_no_threads() -> None:
    program = (
        "import problem.reference, threadpoolctl\n"
        "print(*(each['num_threads'] for each in threadpoolctl.threadpool_info()))"
    )
    other = python("-c", program, env=os.environ | {"OPENBLAS_NUM_THREADS": "2"})
    assert set(other.communicate()[0].split()) == {"1"}


def test_outputs_larger_than_a_panel_are_compared() -> None:
    A, B = Case(Shape(1100, 8, 20)).draw(1)
    A[600:] *= 1000
    C = sequential(A, B)
    C[1030, 18] += 1
    comparison = compare(A, B, C)
    assert comparison.block_errors.shape == (69, 2)
    assert comparison.worst_block == (64, 1) and comparison.wrong.sum() == 1


def test_the_error_follows_the_rule_of_the_problem() -> None:
    A, B, C = drawn(17)
    C[20:40, 20:30] += 1e-3
    R = A.astype(np.float64) @ B.astype(np.float64)
    S = np.outer(np.linalg.norm(A.astype(float), axis=1), np.linalg.norm(B.astype(float), axis=0))
    found = compare(A, B, C).block_errors
    for i, j in np.ndindex(found.shape):
        block = np.s_[16 * i : 16 * i + 16, 16 * j : 16 * j + 16]
        scale = max(np.linalg.norm(R[block]), np.linalg.norm(S[block]) / 17**0.5)
        scale *= (16 * 16 / R[block].size) ** 0.5  # blocks at the edges count as whole ones
        assert found[i, j] == pytest.approx(np.linalg.norm((C - R)[block]) / scale, rel=1e-9)


def test_small_blocks_at_the_edges_do_not_exceed_the_limit_by_chance() -> None:
    kind = "A normal, lone lines scaled by 2^-10..2^10; B normal"
    A, B = Case(Shape(1057, 64, 1057), kind).draw(1)
    R = A.astype(np.float64) @ B.astype(np.float64)
    S = np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=0)) / 8
    noise = np.random.default_rng(1).standard_normal(R.shape) * S
    assert compare(A, B, R + 5e-6 * noise).passed
    for edge in (np.s_[1056:], np.s_[:, 1056:]):  # low precision only there is caught
        C = R.copy()
        C[edge] += 1e-4 * noise[edge]
        assert not compare(A, B, C).passed


def test_the_error_of_exact_inputs_is_the_largest_difference() -> None:
    A, B = Case(Shape(20, 8, 20), INTEGERS).draw(1)
    C = A @ B
    C[3, 4] += 2
    C[5, 6] -= 3
    comparison = compare(A, B, C, tolerance=Tolerance.EXACT)
    assert comparison.block_errors.tolist() == [[3, 0], [0, 0]] and not comparison.passed


@pytest.mark.parametrize("left", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("tolerance", Tolerance)
def test_unexpected_infinities_have_an_infinite_error(left: float, tolerance: Tolerance) -> None:
    A, B, C = drawn(16)
    C[0, 0] = left
    assert compare(A, B, C, tolerance=tolerance).worst == np.inf


@pytest.mark.parametrize("tolerance", Tolerance)
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_values_affect_only_their_rows(tolerance: Tolerance, special: float) -> None:
    A, B, _ = drawn(16)
    A, B = np.rint(4 * A), np.rint(4 * B)
    A[20, 3] = special
    C = sequential(A, B)
    assert compare(A, B, C, tolerance=tolerance).worst < MAX_ERROR
    for row, left in ((20, 1.0), (21, np.nan)):  # a number in that row, and NaN in another
        wrong = C.copy()
        wrong[row, 5] = left
        comparison = compare(A, B, wrong, tolerance=tolerance)
        assert comparison.worst == np.inf and comparison.worst_block == (1, 0)


def test_an_overflow_must_not_be_finite() -> None:
    A, B, C = drawn(16)
    A[20] *= np.float32(2.0**127)
    B = np.abs(B) + 1
    A[20] = np.abs(A[20])
    C = sequential(A, B)
    assert np.isinf(C[20]).all() and compare(A, B, C).passed
    C[20, 3] = 1
    assert not compare(A, B, C).passed


@pytest.mark.parametrize("tolerance", [Tolerance.RANDOM, Tolerance.STRUCTURED])
def test_results_near_the_largest_number_may_overflow(tolerance: Tolerance) -> None:
    A, B = np.ones((3, 64), np.float32), np.full((64, 1), 2.0**122, np.float32)
    A[1] -= np.float32(2.0**-24)
    A[2] /= 8
    largest = np.finfo(np.float32).max
    expected = np.array([largest, largest, 2.0**125], np.float32)[:, None]
    for row, accepted in ((0, True), (1, True), (2, False)):
        for value in (expected[row, 0], np.inf, np.nan, 0):
            C = expected.copy()
            C[row] = value
            found = compare(A, B, C, tolerance=tolerance)
            right = value == expected[row, 0] or (accepted and not np.isfinite(value))
            assert found.passed == right, (row, value)


@pytest.mark.parametrize("tolerance", [Tolerance.RANDOM, Tolerance.STRUCTURED])
def test_parts_of_sums_may_be_flushed_to_zero(tolerance: Tolerance) -> None:
    A, B = Case(Shape(128, 192, 130), "A uniform; B uniform, all scaled by 2^-126..2^-126").draw(1)

    def flushed(matrix: Matrix) -> Matrix:
        return np.where(np.abs(matrix) < np.finfo(np.float32).tiny, 0, matrix)

    parts = [A[:, part] @ B[part] for part in (np.s_[:48], np.s_[48:])]
    C = flushed(flushed(parts[0]) + flushed(parts[1]))
    assert not np.array_equal(C, A @ B)
    assert compare(A, B, C, tolerance=tolerance).passed
    assert not compare(A, B, A @ flushed(B), tolerance=tolerance).passed


def test_structured_inputs_are_judged_by_norms_of_rows_and_columns() -> None:
    A, B = np.full((20, 64), 1.1, np.float32), np.full((64, 20), 1.3, np.float32)
    C = sequential(A, B)
    size = float(np.linalg.norm(A[0].astype(float)) * np.linalg.norm(B[:, 0].astype(float)))
    assert compare(A, B, C, tolerance=Tolerance.STRUCTURED).worst < 1e-6
    for factor, passed in ((0.9, True), (1.1, False)):
        wrong = C.copy()
        wrong[17, 3] += factor * MAX_STRUCTURED_ERROR * size
        comparison = compare(A, B, wrong, tolerance=Tolerance.STRUCTURED)
        assert comparison.passed is passed and comparison.worst_block == (1, 0)
        assert comparison.worst == pytest.approx(factor * MAX_STRUCTURED_ERROR, rel=0.02)
    A, B = np.full((20, 640), 1.1, np.float32), np.full((640, 20), 1.3, np.float32)
    for wrong in (truncated(A, 13) @ truncated(B, 13), A[:, 1:] @ B[1:]):
        assert not compare(A, B, wrong, tolerance=Tolerance.STRUCTURED).passed


def test_comparing_repeated_rows_equals_comparing_the_whole() -> None:
    rows, columns = Case(Shape(32, 24, 48)).draw(4)
    A, B = repeated(rows, 96, rows.shape[1]), repeated(columns, columns.shape[0], 144)
    assert A.shape == (96, 24) and B.shape == (24, 144)
    assert np.array_equal(A[32:64], rows) and np.array_equal(B[:, 96:], columns)
    C = sequential(A, B)
    C[70, 100] += 1e-3
    C[40, 10] = np.nan
    found = compare_repeated(rows, columns, C).block_errors
    whole = compare(A, B, C).block_errors
    assert found.shape == whole.shape == (6, 9) and found[2, 0] == np.inf
    found[2, 0] = whole[2, 0] = 0
    assert np.allclose(found, whole, rtol=1e-6) and found.argmax() == 4 * 9 + 6


def test_cancellation_among_repeated_rows_is_judged_by_its_terms() -> None:
    rows, columns = np.full((16, 24), 8, np.float32), np.full((24, 16), 8, np.float32)
    columns[::2] *= -1
    C = np.full((32, 32), 1e-4, np.float32)
    whole = compare(repeated(rows, 32, rows.shape[1]), repeated(columns, columns.shape[0], 32), C)
    found = compare_repeated(rows, columns, C)
    assert np.allclose(found.block_errors, whole.block_errors, rtol=1e-6)
    assert 0 < found.worst < MAX_ERROR
