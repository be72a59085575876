"""Tiles that a sample of blocks has written are compared with their product."""

import pytest

from harness.devices.guards import poisoned
from harness.judge.stages.verify import CheckedBlocks, check_blocks, sampled_blocks
from harness.protocol.report import Stage, WrongAnswer
from harness.ptxcpu.grid import Clusters
from problem.cases import Case, Matrix, Shape
from problem.launcher import LaunchLine

CASE = Case(Shape(128, 40, 192))
LINE = LaunchLine(32, 64)
BLOCKS = (0, 4, 11)


def tile(block: int) -> tuple[slice, slice]:
    row, column = divmod(block, 3)
    return slice(row * 32, row * 32 + 32), slice(column * 64, column * 64 + 64)


def check(C: Matrix) -> CheckedBlocks | WrongAnswer:
    return check_blocks(CASE, 1, CASE.draw(1), C, LINE, BLOCKS, Stage.VERIFY)


def computed(*blocks: int) -> Matrix:
    A, B = CASE.draw(1)
    C = poisoned(128, 192)
    for block in blocks:
        C[tile(block)] = (A @ B)[tile(block)]
    return C


@pytest.mark.parametrize("blocks", [(), (0, 4)])
def test_leaving_out_an_own_tile_is_wrong(blocks: tuple[int, ...]) -> None:
    answer = check(computed(*blocks))
    assert isinstance(answer, WrongAnswer)


def test_a_wrong_element_is_named_by_its_place_in_C() -> None:
    C = computed(1, 7, 9)
    C[70, 70] += 9
    answer = check(C)
    assert isinstance(answer, WrongAnswer)
    first = answer.counterexample.elements[0]
    assert (first.row, first.column) == (70, 70)


@pytest.mark.parametrize("cluster", [(2, 1, 1), (2, 4, 1), (1, 1, 2)])
def test_samples_are_of_whole_clusters(cluster: tuple[int, int, int]) -> None:
    line, shape = LaunchLine(128, 256, cluster=cluster), Shape(8192, 6144, 4000)
    clusters = Clusters(line.grid(shape.M, shape.K), cluster)
    first, second = sampled_blocks(line, shape.M, shape.K)
    assert first and not {*first} & {*second}
    for sample in (first, second):
        whole = [block for block in sample for block in clusters.blocks(clusters.of(block))]
        assert {*whole} == {*sample}


def test_blocks_that_fill_a_cluster_have_no_own_tile() -> None:
    """Three columns of tiles and four rows, in a grid that is rounded up, two deep."""
    line = LaunchLine(32, 64, cluster=(2, 1, 2))
    A, B = CASE.draw(1)
    checked = check_blocks(CASE, 1, (A, B), A @ B, line, tuple(range(32)), Stage.VERIFY)
    assert isinstance(checked, CheckedBlocks)
    assert (
        checked.own == checked.written == {(row, column) for row in range(4) for column in range(3)}
    )


def test_samples_are_disjoint_secret_and_have_the_corners() -> None:
    shape = Shape(8192, 6144, 4096)
    for line in (LaunchLine(), LaunchLine(128, 256), LaunchLine(8192, 4096)):
        columns, rows, _ = line.grid(shape.M, shape.K)
        samples = [sampled_blocks(line, shape.M, shape.K) for _ in range(8)]
        for first, second in samples:
            assert not {*first} & {*second} and first
            assert {0, columns - 1, columns * (rows - 1), columns * rows - 1} <= {*first, *second}
        assert rows * columns < 100 or len({*samples}) == 8
    first, second = sampled_blocks(LaunchLine(), shape.M, shape.K)
    assert len(first) == len(second) == 32
