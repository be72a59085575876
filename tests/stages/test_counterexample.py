"""What a wrong C is taken to mean."""

import numpy as np
import pytest

from harness.devices.guards import poisoned
from harness.stages.counterexample import block_map, counterexample
from problem.cases import Case, Matrix, Shape
from problem.reference import compare

SHAPE = Shape(70, 40, 90)


def explained(A: Matrix, B: Matrix, C: Matrix) -> str:
    found = counterexample(Case(SHAPE), 1, A, B, C, compare(A, B, C, exact=False))
    assert found.elements and found.wrong_blocks > 0
    return found.pattern


@pytest.fixture
def right() -> tuple[Matrix, Matrix, Matrix]:
    A, B = Case(SHAPE).draw(1)
    return A, B, A @ B


def test_nothing_written(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, _ = right
    assert "no element of C was written" in explained(A, B, poisoned(70, 90))


def test_edges_not_written(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, C = right
    partial = poisoned(70, 90)
    partial[:64, :80] = C[:64, :80]
    text = explained(A, B, partial)
    assert "1180 of 6300 elements of C were never written" in text
    assert "exactly the blocks at the lower and right edge" in text


def test_last_row_of_blocks(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, C = right
    C[64:] = 0
    assert "only the last row of blocks is wrong, the one of only 6 rows" in explained(A, B, C)


def test_columns_from_somewhere_on(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, C = right
    C[:, 48:] = 7
    assert "every block from column 48 on is wrong" in explained(A, B, C)


@pytest.mark.parametrize("shape", [Shape(48, 20, 48), Shape(70, 40, 90)])
def test_transposed(shape: Shape) -> None:
    A, B = Case(shape).draw(1)
    by_columns = np.ascontiguousarray((A @ B).T).reshape(shape.M, shape.K)
    assert "C is transposed" in explained(A, B, by_columns)


def test_twice_too_large(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, C = right
    assert "every element is 2 times" in explained(A, B, 2 * C)


def test_last_tile_of_the_sum_dropped(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, _ = right
    assert "the last 8 of 40 products of each sum are missing" in explained(
        A, B, A[:, :32] @ B[:32]
    )


def test_low_precision(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, _ = right
    half = A.astype(np.float16).astype(np.float32) @ B.astype(np.float16).astype(np.float32)
    assert "inputs of low precision" in explained(A, B, half)


def test_not_finite(right: tuple[Matrix, Matrix, Matrix]) -> None:
    A, B, C = right
    C[0, 0] = np.inf
    text = explained(A, B, C)
    assert "not finite" in text and "a single block is wrong" in text


def test_the_elements_are_the_worst_of_the_worst_block(
    right: tuple[Matrix, Matrix, Matrix],
) -> None:
    A, B, C = right
    C[33, 50] += 5
    C[34, 51] += 9
    found = counterexample(Case(SHAPE), 1, A, B, C, compare(A, B, C, exact=False))
    assert [(e.row, e.column) for e in found.elements[:2]] == [(34, 51), (33, 50)]
    assert found.elements[0].found == pytest.approx(found.elements[0].expected + 9, abs=1e-4)
    assert found.worst_block == (2, 3)


def test_a_large_map_is_drawn_coarsely() -> None:
    wrong = np.zeros((512, 256), np.bool_)
    wrong[511, 255] = True
    drawn = block_map(wrong)
    assert len(drawn.rows) <= 20 and drawn.rows[-1].endswith("#")
    assert sum(row.count("#") for row in drawn.rows) == 1
