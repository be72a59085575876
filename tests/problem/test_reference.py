"""The error per block catches what it must and lets honest float32 pass."""

import os
import subprocess
import sys

import numpy as np
import pytest

from problem.cases import CASES, Case, Inputs, Matrix, Shape
from problem.reference import (
    MAX_ERROR,
    Comparison,
    Expected,
    Float64,
    compare,
    compare_repeated,
    reference,
    repeated,
)

LENGTHS = (1, 16, 17, 512, 6144)


def drawn(N: int) -> tuple[Matrix, Matrix, Matrix]:
    """Uniform inputs of an awkward shape, and C summed in sequential float32."""
    A, B = Case(Shape(50, N, 35)).draw(N)
    return A, B, sequential(A, B)


def sequential(A: Matrix, B: Matrix) -> Matrix:
    C = np.zeros((A.shape[0], B.shape[1]), np.float32)
    for n in range(A.shape[1]):
        C += A[:, n, None] * B[None, n]
    return C


def error(A: Matrix, B: Matrix, C: Matrix) -> float:
    return compare(A, B, C, exact=False).worst


@pytest.mark.parametrize("case", [*CASES, Case(Shape(16, 16384, 16))], ids=str)
def test_sequential_float32_passes_everywhere(case: Case) -> None:
    A, B = case.draw(11)
    assert compare(A, B, sequential(A, B), exact=case.exact).passed


@pytest.mark.parametrize("N", LENGTHS)
def test_one_dropped_product_is_caught(N: int) -> None:
    A, B, C = drawn(N)
    products = A[20] * B[:, 30]
    C[20, 30] -= products[np.abs(products).argsort()[N // 2]]  # of middling size
    assert error(A, B, C) > MAX_ERROR


@pytest.mark.parametrize("N", LENGTHS)
def test_one_element_wrong_by_one_percent_is_caught(N: int) -> None:
    A, B, C = drawn(N)
    row, column = np.unravel_index(np.abs(C).argmax(), C.shape)
    C[row, column] *= 1.01
    assert error(A, B, C) > MAX_ERROR


@pytest.mark.parametrize("N", LENGTHS)
@pytest.mark.parametrize("left", [0.0, np.nan])
def test_one_unwritten_element_is_caught(N: int, left: float) -> None:
    A, B, C = drawn(N)
    C[49, 34] = left
    assert error(A, B, C) > MAX_ERROR


@pytest.mark.parametrize("N", LENGTHS)
def test_a_transposed_C_is_caught(N: int) -> None:
    A, B = Case(Shape(48, N, 48)).draw(5)
    assert error(A, B, np.ascontiguousarray(sequential(A, B).T)) > MAX_ERROR


@pytest.mark.parametrize("N", LENGTHS)
def test_a_missing_last_row_is_caught(N: int) -> None:
    A, B, C = drawn(N)
    C[-1] = 0
    comparison = compare(A, B, C, exact=False)
    assert comparison.wrong[-1].all() and not comparison.wrong[:-1].any()


@pytest.mark.parametrize("N", [512, 6144])
def test_tf32_and_bf16_inputs_are_caught(N: int) -> None:
    A, B, _ = drawn(N)
    for bits in (13, 16):  # significand bits that TF32 and BF16 lack
        C = sequential(truncated(A, bits), truncated(B, bits))
        assert error(A, B, C) > 10 * MAX_ERROR


def test_odd_integers_are_wrong_in_tf32() -> None:
    A, B = Case(Shape(64, 512, 48), Inputs.ODD_INTEGERS).draw(1)
    assert not compare(A, B, truncated(A, 13) @ truncated(B, 13), exact=True).passed


def truncated(matrix: Matrix, bits: int) -> Matrix:
    return (matrix.view(np.uint32) & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)).view(np.float32)


def test_a_block_that_must_be_zero_must_be_exactly_zero() -> None:
    A, B = Case(Shape(32, 8, 32), Inputs.ZEROS).draw(0)
    C = np.zeros((32, 32), np.float32)
    assert error(A, B, C) == 0
    C[31, 31] = 1e-38
    assert error(A, B, C) == np.inf


def test_cancellation_is_judged_by_the_size_of_the_terms() -> None:
    A = np.array([[1.0, 1.0]], np.float32)
    B = np.array([[1.0], [-1.0]], np.float32)
    assert error(A, B, np.array([[1e-7]], np.float32)) < MAX_ERROR
    assert error(A, B, np.array([[1e-4]], np.float32)) > MAX_ERROR


def test_blocks_at_the_edges_are_their_own() -> None:
    A, B, C = drawn(17)
    assert compare(A, B, C, exact=False).block_errors.shape == (4, 3)


def test_panels_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    A, B, C = drawn(17)
    whole = compare(A, B, C, exact=False).block_errors
    monkeypatch.setattr("problem.reference._PANEL_ROWS", 16)
    assert np.allclose(compare(A, B, C, exact=False).block_errors, whole, rtol=1e-9)


def test_rows_are_multiplied_a_few_at_once_and_each_of_them_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A, B, _ = drawn(17)
    multiplied: list[Float64] = []
    multiply = np.matmul

    def noted(rows: Float64, columns: Float64, out: Float64) -> None:
        multiplied.append(rows)
        multiply(rows, columns, out=out)

    monkeypatch.setattr("problem.reference._PANEL_ROWS", 16)
    monkeypatch.setattr(np, "matmul", noted)
    found = Expected.of(A, B, exact=True)
    assert sorted(rows.shape for rows in multiplied) == [(2, 17), (16, 17), (16, 17), (16, 17)]
    assert {tuple(row) for rows in multiplied for row in rows} == {tuple(row) for row in A}
    assert np.allclose(found.R, reference(A, B), rtol=1e-12)


def test_a_product_has_no_threads_of_its_own() -> None:
    program = (
        "import problem.reference, threadpoolctl\n"
        "print(*(each['num_threads'] for each in threadpoolctl.threadpool_info()))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(ended.stdout.split()) == {"1"}


def test_more_rows_than_a_panel_are_compared_whole() -> None:
    A, B = Case(Shape(1100, 8, 20)).draw(1)
    C = sequential(A, B)
    C[1030, 18] += 1
    comparison = compare(A, B, C, exact=False)
    assert comparison.block_errors.shape == (69, 2)
    assert comparison.worst_block == (64, 1) and comparison.wrong.sum() == 1


def test_the_error_is_the_one_that_the_problem_states() -> None:
    A, B, C = drawn(17)
    C[20:40, 20:30] += 1e-3
    R = A.astype(np.float64) @ B.astype(np.float64)
    S = np.outer(np.linalg.norm(A.astype(float), axis=1), np.linalg.norm(B.astype(float), axis=0))
    found = compare(A, B, C, exact=False).block_errors
    for i, j in np.ndindex(found.shape):
        block = np.s_[16 * i : 16 * i + 16, 16 * j : 16 * j + 16]
        scale = max(np.linalg.norm(R[block]), np.linalg.norm(S[block]) / 17**0.5)
        assert found[i, j] == pytest.approx(np.linalg.norm((C - R)[block]) / scale, rel=1e-9)


def test_the_error_of_exact_inputs_is_the_largest_difference() -> None:
    A, B = Case(Shape(20, 8, 20), Inputs.INTEGERS).draw(1)
    C = A @ B
    C[3, 4] += 2
    C[5, 6] -= 3
    comparison = compare(A, B, C, exact=True)
    assert comparison.block_errors.tolist() == [[3, 0], [0, 0]] and not comparison.passed


@pytest.mark.parametrize("left", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("exact", [False, True])
def test_what_is_not_finite_is_infinitely_wrong(left: float, exact: bool) -> None:
    A, B, C = drawn(16)
    C[0, 0] = left
    assert compare(A, B, C, exact=exact).worst == np.inf


def test_the_limit_itself_is_allowed() -> None:
    errors = np.array([[MAX_ERROR, np.nextafter(MAX_ERROR, 1)]])
    comparison = Comparison(errors)
    assert comparison.wrong.tolist() == [[False, True]] and comparison.worst_block == (0, 1)
    assert Comparison(errors[:, :1]).passed and MAX_ERROR == 1e-5


def test_a_comparison_of_repeated_rows_and_columns_is_that_of_the_whole() -> None:
    rows, columns = Case(Shape(32, 24, 48)).draw(4)
    A, B = repeated(rows, 96, axis=0), repeated(columns, 144, axis=1)
    assert A.shape == (96, 24) and B.shape == (24, 144)
    assert np.array_equal(A[32:64], rows) and np.array_equal(B[:, 96:], columns)
    C = sequential(A, B)
    C[70, 100] += 1e-3
    C[40, 10] = np.nan
    found = compare_repeated(rows, columns, C).block_errors
    whole = compare(A, B, C, exact=False).block_errors
    assert found.shape == whole.shape == (6, 9) and found[2, 0] == np.inf
    found[2, 0] = whole[2, 0] = 0
    assert np.allclose(found, whole, rtol=1e-6) and found.argmax() == 4 * 9 + 6


def test_cancellation_among_repeated_rows_is_judged_by_the_size_of_the_terms() -> None:
    rows, columns = np.full((16, 24), 8, np.float32), np.full((24, 16), 8, np.float32)
    columns[::2] *= -1
    C = np.full((32, 32), 1e-4, np.float32)
    whole = compare(repeated(rows, 32, 0), repeated(columns, 32, 1), C, exact=False)
    found = compare_repeated(rows, columns, C)
    assert np.allclose(found.block_errors, whole.block_errors, rtol=1e-6)
    assert 0 < found.worst < MAX_ERROR
