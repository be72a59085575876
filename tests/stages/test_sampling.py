"""A sample of the ranked size's blocks is held to the product of the tiles that it wrote."""

import numpy as np
import pytest

from harness.devices.guards import poisoned
from harness.report import Stage, WrongAnswer
from harness.stages.verify import CheckedBlocks, check_blocks, sampled_blocks
from problem.cases import Case, Matrix, Shape
from problem.launcher import LaunchLine

CASE = Case(Shape(128, 40, 192))
LINE = LaunchLine(32, 64)
BLOCKS = (0, 4, 11)


def tile(block: int) -> tuple[slice, slice]:
    row, column = divmod(block, 3)
    return slice(row * 32, row * 32 + 32), slice(column * 64, column * 64 + 64)


def check(C: Matrix) -> CheckedBlocks | WrongAnswer:
    return check_blocks(CASE, 1, *CASE.draw(1), C, LINE, BLOCKS, Stage.VERIFY)


def computed(*blocks: int) -> Matrix:
    A, B = CASE.draw(1)
    C = poisoned(128, 192)
    for block in blocks:
        C[tile(block)] = (A @ B)[tile(block)]
    return C


def test_the_blocks_own_tiles() -> None:
    assert isinstance(check(computed(*BLOCKS)), CheckedBlocks)


def test_tiles_in_another_order() -> None:
    assert isinstance(check(computed(1, 7, 9)), CheckedBlocks)


@pytest.mark.parametrize("blocks", [(), (0, 4)])
def test_a_tile_of_its_own_that_is_left_out_is_wrong(blocks: tuple[int, ...]) -> None:
    answer = check(computed(*blocks))
    assert isinstance(answer, WrongAnswer)


def test_a_wrong_element_is_named_by_its_place_in_C() -> None:
    C = computed(1, 7, 9)
    C[70, 70] += 9
    answer = check(C)
    assert isinstance(answer, WrongAnswer)
    first = answer.counterexample.elements[0]
    assert (first.row, first.column) == (70, 70)


def test_a_tile_written_in_part_is_wrong() -> None:
    C = computed(1, 7, 9)
    C[70, 70] = np.float32(np.nan)
    assert isinstance(check(C), WrongAnswer)


def test_samples_are_disjoint_have_the_corners_and_are_never_the_same() -> None:
    shape = Shape(8192, 6144, 4096)
    for line in (LaunchLine(), LaunchLine(128, 256), LaunchLine(8192, 4096)):
        columns, rows, _ = line.grid(shape.M, shape.K)
        samples = [sampled_blocks(line, shape) for _ in range(8)]
        for first, second in samples:
            assert not {*first} & {*second} and first
            assert {0, columns - 1, columns * (rows - 1), columns * rows - 1} <= {*first, *second}
        assert rows * columns < 100 or len({*samples}) == 8
    first, second = sampled_blocks(LaunchLine(), shape)
    assert len(first) == len(second) == 32
