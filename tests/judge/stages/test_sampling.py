"""Tiles that a sample of blocks has written are compared with their product."""

import pytest

from harness.devices.guards import poisoned
from harness.judge.stages.verify import (
    Prepared,
    Tile,
    Written,
    check_blocks,
    prepare,
    sampled_blocks,
)
from harness.ptxcpu.grid import Clusters
from problem.cases import Case, Matrix, Shape
from problem.launcher import LaunchLine
from problem.problem import MATRIX_MULTIPLICATION
from tests.judge.stages.fakes import FakeDevice, grading, on_cpu, outcome_of

LINE = LaunchLine(32, 64)


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(MATRIX_MULTIPLICATION, Case(Shape(128, 40, 192)), 1, whole=False)


def check(
    prepared: Prepared, C: Matrix, *blocks: int, line: LaunchLine = LINE
) -> tuple[float, set[Tile], Written]:
    return check_blocks(grading(on_cpu(FakeDevice()), launch=line), prepared, C, blocks)


def test_a_wrong_element_is_named_by_its_place_in_C(prepared: Prepared) -> None:
    A, B = prepared.inputs
    C = poisoned(128, 192)
    C[64:96, 64:128] = (A @ B)[64:96, 64:128]
    C[70, 70] += 9
    answer = outcome_of(check, prepared, C, 0)
    first = answer.counterexample.elements[0]
    assert (first.row, first.column) == (70, 70)
    assert answer.message.endswith("; only the part from row 64, column 64 on was compared")
    C = poisoned(128, 192)
    C[:32, :64] = (A @ B)[:32, :64]
    missing = outcome_of(check, prepared, C, 0, 1).counterexample.elements[0]
    assert (missing.row, missing.column) == (0, 64)


def test_blocks_may_compute_rows_of_several_tiles(prepared: Prepared) -> None:
    """Two blocks with tiles of 2048 elements compute 22 whole rows of 192."""
    A, B = prepared.inputs
    C = poisoned(128, 192)
    C[3:20] = (A @ B)[3:20]
    C[30:35] = (A @ B)[30:35]
    error, _, written = check(prepared, C, 4, 5)
    assert error < 1e-5 and written.sum() == 22 * 192
    C[34, 100] += 9
    first = outcome_of(check, prepared, C, 4, 5).counterexample.elements[0]
    assert (first.row, first.column) == (34, 100)
    C[30:35] = poisoned(5, 192)
    assert "never written" in outcome_of(check, prepared, C, 4, 5).message


def test_blocks_that_fill_a_cluster_have_no_own_tile(prepared: Prepared) -> None:
    """Three columns of tiles and four rows, in a grid that is rounded up, two deep."""
    line, (A, B) = LaunchLine(32, 64, cluster=(2, 1, 2)), prepared.inputs
    _, own, written = check(prepared, A @ B, *range(32), line=line)
    assert written.all() and own == {(row, column) for row in range(4) for column in range(3)}


@pytest.mark.parametrize("cluster", [(2, 1, 1), (2, 4, 1), (1, 1, 2)])
def test_samples_are_of_whole_clusters(cluster: tuple[int, int, int]) -> None:
    line, shape = LaunchLine(128, 256, cluster=cluster), Shape(8192, 6144, 4000)
    clusters = Clusters(line.grid(shape.M, shape.K), cluster)
    first, second = sampled_blocks(line, shape.M, shape.K)
    assert first and not {*first} & {*second}
    for sample in (first, second):
        whole = [block for block in sample for block in clusters.blocks(clusters.of(block))]
        assert {*whole} == {*sample}


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
