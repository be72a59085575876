"""A wrong output is explained by its likely cause."""

import numpy as np
import pytest

from harness.judge.stages.counterexample import block_map, counterexample, pattern
from harness.protocol.report import Element
from problem.cases import ONES_TWOS, Case, Matrix, Shape
from problem.inputs import Tolerance
from problem.problem import MATRIX_MULTIPLICATION as PROBLEM
from problem.reference import Comparison, compare

SHAPE = Shape(70, 40, 90)


@pytest.fixture
def right() -> tuple[Matrix, Matrix, Matrix]:
    A, B = Case(SHAPE).draw(1)
    return A, B, A @ B


def test_the_elements_are_the_worst_of_the_worst_block(
    right: tuple[Matrix, Matrix, Matrix],
) -> None:
    A, B, C = right
    C[33, 50] += 5
    C[34, 51] += 9
    found = counterexample(PROBLEM, Case(SHAPE), 1, (A, B), C, compare(A, B, C))
    assert [(e.row, e.column) for e in found.elements[:2]] == [(34, 51), (33, 50)]
    assert found.elements[0].found == pytest.approx(found.elements[0].expected + 9, abs=1e-4)
    assert found.worst_block == (2, 3)


def blocks(rows: int, columns: int, *wrong: tuple[int, int]) -> Comparison:
    """A comparison in which these blocks are wrong, plainly."""
    errors = np.zeros((rows, columns))
    for place in wrong:
        errors[place] = 1.0
    return Comparison(errors)


def everywhere(rows: int, columns: int) -> list[tuple[int, int]]:
    return [(row, column) for row in range(rows) for column in range(columns)]


@pytest.mark.parametrize(
    ("shape", "wrong", "expected"),
    [
        ((16, 16), [(0, 0)], "C is a single block"),
        ((48, 64), everywhere(3, 4), "every block is wrong"),
        ((16, 32), everywhere(1, 2), "every block is wrong"),
        ((48, 64), [(1, 2)], "a single block is wrong"),
        ((48, 64), [(2, 0), (2, 1), (2, 2), (2, 3)], "only the last row of blocks is wrong"),
        (
            (47, 64),
            [(2, 0), (2, 1), (2, 2), (2, 3)],
            "only the last row of blocks is wrong, which has only 15 rows: check the bounds",
        ),
        ((48, 64), [(0, 3), (1, 3), (2, 3)], "only the last column of blocks is wrong"),
        (
            (48, 49),
            [(0, 3), (1, 3), (2, 3)],
            "only the last column of blocks is wrong, which has only 1 column: check the bounds",
        ),
        (
            (48, 64),
            [(2, 0), (2, 1), (2, 2), (2, 3), (0, 3), (1, 3)],
            "exactly the blocks at the lower and right edge are wrong: check the bounds",
        ),
        (
            (48, 64),
            [(i, j) for i in range(3) for j in (1, 2, 3)],
            "every block from column 16 on is wrong",
        ),
        (
            (48, 64),
            [(i, j) for i in range(3) for j in (0, 1)],
            "every block before column 32 is wrong",
        ),
        (
            (48, 64),
            [(i, j) for i in range(3) for j in (0, 2)],
            "whole columns of blocks are wrong, others right",
        ),
        (
            (64, 48),
            [(i, j) for i in (2, 3) for j in range(3)],
            "every block from row 32 on is wrong",
        ),
        ((64, 48), [(i, j) for i in (0,) for j in range(3)], "every block before row 16 is wrong"),
        (
            (64, 48),
            [(i, j) for i in (1, 2) for j in range(3)],
            "whole rows of blocks are wrong, others right",
        ),
        (
            (48, 48),
            [place for place in everywhere(3, 3) if place[0] != place[1]],
            "only the blocks on the diagonal are right: rows and columns are swapped",
        ),
        ((48, 64), [(0, 0), (1, 2), (2, 1)], "25 % of the blocks are wrong, in several places"),
        ((48, 48), [(0, 0), (1, 2), (2, 1)], "33.3 % of the blocks are wrong, in several places"),
        ((48, 64), [(0, 1), (1, 2), (2, 0)], "25 % of the blocks are wrong, in several places"),
        (
            (48, 64),
            [(1, 0), (1, 1), (2, 2), (2, 3)],
            "33.3 % of the blocks are wrong, in several places",
        ),
        ((48, 64), [(0, 1), (1, 1)], "16.7 % of the blocks are wrong, in several places"),
        ((64, 48), [(1, 0), (1, 1)], "16.7 % of the blocks are wrong, in several places"),
    ],
)
def test_the_places_of_wrong_blocks_are_described(
    shape: tuple[int, int], wrong: list[tuple[int, int]], expected: str
) -> None:
    A, B = Case(Shape(shape[0], 8, shape[1])).draw(1)
    C = np.full(shape, 3, np.float32)
    comparison = blocks(-(-shape[0] // 16), -(-shape[1] // 16), *wrong)
    assert (
        pattern(PROBLEM, (A, B), C, comparison)
        == f"the values are far from the right ones; {expected}"
    )


@pytest.mark.parametrize(
    ("worst", "expected"),
    [
        (3e-5, "errors up to 3.0 times the limit look like an accumulator of less than"),
        (5.9e-5, "errors up to 5.9 times the limit look like an accumulator of less than"),
        (6.1e-5, "errors up to 6.1e-05 look like inputs of low precision"),
        (9.9e-3, "errors up to 9.9e-03 look like inputs of low precision"),
        (1e-2, "the values are far from the right ones"),
    ],
)
def test_the_size_of_errors_suggests_a_cause(worst: float, expected: str) -> None:
    A, B = Case(Shape(16, 8, 16)).draw(1)
    C = np.full((16, 16), 3, np.float32)
    assert pattern(PROBLEM, (A, B), C, Comparison(np.array([[worst]]))).startswith(expected)


@pytest.mark.parametrize(
    ("n", "kept", "expected"),
    [
        (40, slice(0, 32), "the last 8 of 40 products of each sum are missing (N mod 16)"),
        (20, slice(0, 16), "the last 4 of 20 products of each sum are missing (N mod 16)"),
        (80, slice(0, 64), "the last 16 of 80 products of each sum are missing (N mod 32)"),
        (12, slice(0, 8), "the last 4 of 12 products of each sum are missing (N mod 8)"),
        (160, slice(0, 128), "the last 32 of 160 products of each sum are missing (N mod 64)"),
        (192, slice(0, 128), "the last 64 of 192 products of each sum are missing (N mod 128)"),
        (14, slice(0, 13), "the last product of each sum is missing"),
        (14, slice(1, 14), "the first product of each sum is missing"),
        (2, slice(0, 1), "the last product of each sum is missing"),
        (2, slice(1, 2), "the first product of each sum is missing"),
        (14, slice(2, 14), "the values are far from the right ones"),
    ],
)
def test_missing_products_are_recognised(n: int, kept: slice, expected: str) -> None:
    A, B = Case(Shape(33, n, 50)).draw(1)
    C = A[:, kept] @ B[kept]
    found = pattern(PROBLEM, (A, B), C, compare(A, B, C))
    assert found.partition(";")[0] == expected


def test_an_inaccurate_result_is_not_taken_for_missing_products() -> None:
    """The first column of A is so small that without it the product is nearly the same."""
    A, B = Case(Shape(64, 32, 64)).draw(1)
    A[:, 0] *= 2.0**-14
    C = A @ B * np.float32(1 + 2e-5)
    found = pattern(PROBLEM, (A, B), C, compare(A, B, C))
    assert found.startswith("errors up to 2.")


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


def test_a_counterexample_says_how_much_is_wrong() -> None:
    A, B = Case(SHAPE).draw(1)
    C = A @ B
    C[:20, :20] += 9
    comparison = compare(A, B, C)
    found = counterexample(PROBLEM, Case(SHAPE), 77, (A, B), C, comparison)
    assert (found.case, found.seed, found.error) == (Case(SHAPE), 77, comparison.worst)
    assert (found.wrong_blocks, found.blocks) == (4, 30)
    assert found.map.rows == ("##....", "##....", "......", "......", "......")
    assert found.map.scale == 1 and found.pattern == pattern(PROBLEM, (A, B), C, comparison)
    assert len(found.elements) == 5


def test_elements_that_are_right_are_not_shown() -> None:
    A, B = Case(Shape(20, 4, 40), ONES_TWOS).draw(1)
    C = A @ B
    C[18, 35] = 7
    (element,) = counterexample(
        PROBLEM,
        Case(SHAPE),
        1,
        (A, B),
        C,
        compare(A, B, C, tolerance=Tolerance.EXACT),
    ).elements
    assert element == Element(row=18, column=35, expected=8, found=7)


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
