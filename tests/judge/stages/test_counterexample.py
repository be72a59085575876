"""A wrong output is explained by its likely cause."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.devices.guards import POISON
from harness.judge.grading import Compared
from harness.judge.stages.counterexample import block_map, pattern, wrong_answer
from harness.protocol.report import Counterexample, Element, Stage
from problem.cases import ONES_TWOS, Case, Matrix, Shape
from problem.inputs import Tolerance
from problem.problem import MATRIX_MULTIPLICATION as PROBLEM
from problem.reference import Comparison, compare

SHAPE = Shape(70, 40, 90)


def table(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


PLACES, MISSING_PRODUCTS = table("places.csv"), table("missing_products.csv")


def explained(A: Matrix, B: Matrix, C: Matrix, **how: Any) -> Counterexample:
    comparison = compare(A, B, C, **how)
    compared = Compared(Case(SHAPE), (A, B), C, comparison)
    return wrong_answer(PROBLEM, Stage.VERIFY, 77, compared).counterexample


def test_a_counterexample_says_what_is_wrong_and_how_much() -> None:
    A, B = Case(SHAPE).draw(1)
    C = A @ B
    C[:20, :20] += 1
    C[33, 50] += 50
    C[34, 51] += 90
    found, comparison = explained(A, B, C), compare(A, B, C)
    assert (found.case, found.seed, found.error) == (Case(SHAPE), 77, comparison.worst)
    assert (found.wrong_blocks, found.blocks, found.worst_block) == (5, 30, (2, 3))
    assert found.map.rows == ("##....", "##....", "...#..", "......", "......")
    assert found.map.scale == 1 and found.pattern == pattern(PROBLEM, (A, B), C, comparison)
    assert [(e.row, e.column) for e in found.elements[:2]] == [(34, 51), (33, 50)]
    assert found.elements[0].found == pytest.approx(found.elements[0].expected + 90, abs=1e-4)
    assert len(found.elements) == 2  # the errors of others are small


def test_elements_that_are_right_are_not_shown() -> None:
    A, B = Case(Shape(20, 4, 40), ONES_TWOS).draw(1)
    C = A @ B
    C[18, 35] = 7
    (element,) = explained(A, B, C, tolerance=Tolerance.EXACT).elements
    assert element == Element(row=18, column=35, expected=8, found=7)
    # Elements of structured inputs are ordered by their own limits.
    A, B = Case(Shape(20, 1, 40)).draw(1)
    A[3], C = 1e-4, (A * (1 + 1e-6)) @ B
    C[3, 5] *= 1.01
    assert explained(A, B, C, tolerance=Tolerance.STRUCTURED).elements[0].row == 3


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place["wrong"])
def test_the_places_of_wrong_blocks_are_described(place: dict[str, str]) -> None:
    shape = int(place["rows"]), int(place["columns"])
    A, B = Case(Shape(shape[0], 8, shape[1])).draw(1)
    C = np.full(shape, 3, np.float32)
    comparison = Comparison(
        np.array([[cell == "#" for cell in row] for row in place["wrong"].split()]) * 1.0
    )
    found = pattern(PROBLEM, (A, B), C, comparison)
    assert found == f"the values are far from the right ones; {place['expected']}"


@pytest.mark.parametrize(
    ("worst", "expected"),
    [
        (3e-5, "errors up to 3 times the limit look like an accumulator of less than"),
        (5.9e-5, "errors up to 5.9 times the limit look like an accumulator of less than"),
        (6.1e-5, "errors up to 6.1e-05 look like inputs of low precision"),
        (9.9e-3, "errors up to 9.9e-03 look like inputs of low precision"),
        (1e-2, "the values are far from the right ones"),
    ],
)
def test_the_size_of_errors_suggests_a_cause(worst: float, expected: str) -> None:
    A, B = Case(Shape(16, 8, 16)).draw(1)
    C = np.full((16, 16), 0.3, np.float32)
    assert pattern(PROBLEM, (A, B), C, Comparison(np.array([[worst]]))).startswith(expected)


@pytest.mark.parametrize(("size", "errors"), [(1, [[3e-3]]), (48, [[3e-3, 0, 0]] * 3)])
def test_a_few_wrong_places_do_not_suggest_low_precision(
    size: int, errors: list[list[float]]
) -> None:
    A, B = Case(Shape(size, 8, size)).draw(1)
    C = np.full((size, size), 0.3, np.float32)
    found = pattern(PROBLEM, (A, B), C, Comparison(np.array(errors)))
    assert found.startswith("errors up to 3.0e-03;")


@pytest.mark.parametrize("row", MISSING_PRODUCTS, ids=lambda row: row["expected"])
def test_missing_products_are_recognised(row: dict[str, str]) -> None:
    A, B = Case(Shape(33, int(row["n"]), 50)).draw(1)
    kept = slice(int(row["first"]), int(row["end"]))
    C = A[:, kept] @ B[kept]
    found = pattern(PROBLEM, (A, B), C, compare(A, B, C))
    assert found.partition(";")[0] == row["expected"]


@pytest.mark.parametrize("added", [2, 15, 17])
def test_products_of_constant_inputs_are_counted(added: int) -> None:
    A, B = Case(Shape(16, 16, 16), ONES_TWOS).draw(1)
    C = np.full((16, 16), 2.0 * added, np.float32)
    found = pattern(PROBLEM, (A, B), C, compare(A, B, C))
    assert found.startswith(f"as if each sum had {added} products in place of 16; ")


@pytest.mark.parametrize("shape", [(64, 32), (32, 64), (70, 40)])
@pytest.mark.parametrize("step", [1, 16])
def test_swapped_rows_and_columns_are_recognised(shape: tuple[int, int], step: int) -> None:
    M, K = shape
    A, B = Case(Shape(M, 8, K)).draw(1)
    C = np.full(shape, POISON, np.uint32).view(np.float32)
    rows, columns = -(-K // step) * step, -(-M // step) * step
    C[:rows, :columns] = (A @ B)[:rows, :columns]
    assert "as if rows and columns were swapped" in pattern(PROBLEM, (A, B), C, compare(A, B, C))


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (2.0, "every element is 2 times what it should be"),
        (-0.5, "every element is -0.5 times what it should be"),
        (1.005, "every element is 1.005 times what it should be"),
        (1.0005, "errors up to"),
        (0.0, "every element of C is zero"),
    ],
)
def test_a_scaled_output_is_recognised(factor: float, expected: str) -> None:
    A, B = Case(SHAPE).draw(1)
    C = (factor * (A @ B)).astype(np.float32)
    assert pattern(PROBLEM, (A, B), C, compare(A, B, C)).startswith(expected)


def test_errors_of_exact_sums_are_not_called_relative() -> None:
    A, B = Case(Shape(20, 1, 40), ONES_TWOS).draw(1)
    exact = "elements are off by up to 0.001, though float32 can hold every sum exactly; "
    C = A @ B
    C[3, 5] += 1e-3
    assert explained(A, B, C, tolerance=Tolerance.EXACT).pattern.startswith(exact)
    assert explained(A, B, C).pattern.startswith("errors up to")


def test_overflow_is_named_where_numbers_are_large() -> None:
    A, B = Case(SHAPE).draw(1)
    C = A @ B
    C[3, 5] = np.inf
    assert "overflow" not in explained(A, B, C).pattern
    A, C = A * np.float32(1e30), C * np.float32(1e30)
    found = explained(A, B, C).pattern
    assert found.startswith(
        "C is not finite somewhere: perhaps by an overflow (inputs are as large as"
    )
    assert "by a division by zero" in found
    A[3] = 3e38
    with np.errstate(over="ignore"):
        C[3] = A[3] @ B
    assert not np.isfinite(C[3]).all()
    C[7, 7] = np.nan  # the infinities of row 3 are right, and this is not
    assert "overflow" in explained(A, B, C).pattern
    C[7, 7] = A[7] @ B[:, 7]
    C[3] = np.nan_to_num(C[3])
    assert explained(A, B, C).pattern.startswith("elements of C are finite although their sums")


def test_mistakes_are_not_taken_for_others() -> None:
    A, B = Case(SHAPE).draw(1)
    C = np.ascontiguousarray((A @ B).T).reshape(SHAPE.M, SHAPE.K)
    assert explained(A, B, C).pattern.startswith("C is transposed: it was written column by column")
    A, B = Case(Shape(1, 257, 1)).draw(1)
    found = explained(A, B, A[:, :-1] @ B[:-1]).pattern
    assert found.startswith("the last product of each sum is missing"), (
        "a single element is not scaled"
    )
    A, B = Case(Shape(64, 32, 64)).draw(1)
    A[:, 0] *= 2.0**-14  # so small that without it the product is nearly the same
    assert explained(A, B, A @ B * np.float32(1 + 2e-5)).pattern.startswith("errors up to 2 times")


def tiles_transposed(matrix: Matrix) -> Matrix:
    return np.block([[part.T for part in np.split(row, 4, 1)] for row in np.split(matrix, 4)])


def columns_first(matrix: Matrix) -> Matrix:
    return matrix.reshape(matrix.shape[::-1]).T


@pytest.mark.parametrize("matrices", ["B", "A, B", "A, B, C"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (columns_first, "{}: addressed column by column"),
        (tiles_transposed, "as if each 16×16 tile of {} was transposed"),
    ],
)
def test_places_of_elements_are_recognised(change: Any, matrices: str, expected: str) -> None:
    A, B = Case(Shape(64, 64, 64) if change is tiles_transposed else SHAPE).draw(1)
    C = (change(A) if "A" in matrices else A) @ (change(B) if "B" in matrices else B)
    if "C" in matrices:
        C = change(C) if change is tiles_transposed else C.T.reshape(C.shape)
    assert explained(A, B, C).pattern.startswith(expected.format(matrices))


def test_sums_of_low_precision_are_recognised() -> None:
    A, B = Case(SHAPE).draw(1)
    C = (A @ B).astype(np.float16).astype(np.float32)
    assert "at most 11 significant bits" in explained(A, B, C).pattern


@pytest.mark.parametrize(("exponent", "named"), [(-122, True), (-90, False)])
def test_inputs_near_the_smallest_normal_number_are_named(exponent: int, named: bool) -> None:
    A, B = Case(SHAPE).draw(1)
    A = np.ldexp(np.sign(A), exponent).astype(np.float32)
    C = (A @ B) * np.float32(1.0003)
    found = pattern(PROBLEM, (A, B), C, compare(A, B, C))
    assert (f"inputs are as small as 2^{exponent}" in found) == named


@pytest.mark.parametrize(
    ("rows", "columns", "scale"),
    [(20, 64, 1), (21, 64, 2), (20, 65, 2), (40, 65, 2), (41, 9, 3), (5, 193, 4)],
)
def test_a_map_is_as_fine_as_its_room_allows(rows: int, columns: int, scale: int) -> None:
    wrong = np.zeros((rows, columns), np.bool_)
    wrong[0, 0] = wrong[scale, 1] = True
    drawn = block_map(wrong)
    assert drawn.scale == scale
    assert len(drawn.rows) == -(-rows // scale)
    assert {len(row) for row in drawn.rows} == {-(-columns // scale)}
    assert drawn.rows[0].startswith("#.") and drawn.rows[1].startswith("#" if scale > 1 else ".#")


@pytest.mark.parametrize(
    ("inputs", "multiplied", "expected"),
    [
        ("A uniform, NaN; B uniform", True, "is multiplied by zero"),
        ("A uniform; B uniform, infinity", True, "is multiplied by zero"),
        ("A uniform, NaN; B uniform", False, "does not reach all elements of C that it must"),
    ],
)
def test_nan_in_wrong_places_is_explained(inputs: str, multiplied: bool, expected: str) -> None:
    A, B = Case(SHAPE, inputs).draw(1)
    with np.errstate(invalid="ignore"):
        C = A @ B if multiplied else np.nan_to_num(A) @ B
        if multiplied:
            C += A[0, 0] * 0 + B[-1, -1] * 0
    found = explained(A, B, C)
    assert expected in found.pattern
    assert any(np.isfinite(element.expected) == multiplied for element in found.elements)
    assert not any(np.isnan(e.expected) and np.isnan(e.found) for e in found.elements)


@pytest.mark.filterwarnings("error")
def test_a_wrong_element_next_to_infinite_ones_is_shown_alone() -> None:
    A, B = Case(SHAPE, "A uniform; B uniform, infinity").draw(1)
    C = A @ B
    infinite = int(np.argwhere(np.isinf(C[0]))[0, 0])
    C[3, infinite ^ 1] += 5  # in the same block
    (element,) = [each for each in explained(A, B, C).elements if each.found != each.expected][:1]
    assert (element.row, element.column) == (3, infinite ^ 1)
