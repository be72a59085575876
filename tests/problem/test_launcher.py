"""The launch is the rules' launch."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from harness.ptxcpu.grid import Clusters
from problem.cases import Shape
from problem.launcher import LaunchLine, launch
from problem.problem import MATRIX_MULTIPLICATION

ARGUMENTS = MATRIX_MULTIPLICATION.arguments(Shape(100, 7, 33))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        *(({"cluster": each}, "a cluster has 1 to 8 blocks") for each in ((0, 1, 1), (2, 5, 1))),
        *(({"tile_rows": each}, "a tile has 1 to 65536 rows") for each in (0, -1, 65_537)),
        *(({"tile_columns": each}, "a tile has 1 to 65536 columns") for each in (0, 65_537)),
        *(({"shared_memory": each}, "is 0 to 1048576 bytes") for each in (-1, (1 << 20) + 1)),
    ],
)
def test_an_impossible_launch_line_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"{message}, not"):
        LaunchLine(**how)
    LaunchLine(1, 65_536, 1 << 20, cluster=(1, 8, 1))  # the limits themselves are allowed


def test_a_kernel_is_launched_once() -> None:
    events: list[Any] = []

    def kernel(grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
        events.append((grid, block, arguments, shared_mem))

    line = LaunchLine(shared_memory=12_345)
    launch(kernel, "ABC", ARGUMENTS, line)
    ((grid, block, arguments, shared),) = events
    assert (grid, block, shared) == ((3, 7, 1), (16, 16, 1), 12_345)
    assert arguments == ("A", "B", "C", 100, 7, 33)
    assert all(isinstance(size, np.int32) for size in arguments[3:])


@pytest.mark.parametrize(
    ("line", "size", "grid"),
    [
        (LaunchLine(), (8192, 4096), (256, 512, 1)),
        (LaunchLine(128, 256), (8192, 4096), (16, 64, 1)),
        (LaunchLine(200, 128), (8192, 4096), (32, 41, 1)),
        (LaunchLine(), (100, 70), (5, 7, 1)),
        (LaunchLine(cluster=(2, 1, 1)), (100, 70), (6, 7, 1)),
        (LaunchLine(cluster=(1, 4, 1)), (100, 70), (5, 8, 1)),
        (LaunchLine(cluster=(2, 2, 2)), (100, 70), (6, 8, 2)),
    ],
)
def test_the_grid_covers_C_with_whole_clusters(line: LaunchLine, size: Any, grid: Any) -> None:
    covering = line.grid(*size)
    assert covering == grid
    assert all(type(number) is int for number in covering), "CUDA takes no 3.0 for 3"


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((6, 4, 1), (3, 2, 1)),
        ((4, 6, 2), (1, 2, 2)),
        ((5, 3, 1), (5, 1, 1)),
        ((2, 3, 1), (1, 1, 1)),
    ],
)
def test_clusters_are_numbered_like_blocks(
    grid: tuple[int, int, int], cluster: tuple[int, int, int]
) -> None:
    places = [(x, y, z) for z, y, x in product(*map(range, reversed(grid)))]
    of = [tuple(n // c for n, c in zip(place, cluster, strict=True)) for place in places]
    numbered = sorted(set(of), key=lambda place: place[::-1])
    line, (columns, rows, _) = LaunchLine(16, 16, cluster=cluster), grid
    size, device = (16 * rows - 1, 16 * columns - 1), Clusters(grid, cluster)
    assert line.grid(*size) == grid and line.clusters(*size) == device.sizes
    blocks = [[n for n, place in enumerate(of) if place == wanted] for wanted in numbered]
    assert [device.blocks(number) for number in range(device.count)] == blocks
    chosen = [*range(device.count)][::-1]
    assert [*line.blocks_of(chosen, *size)] == [n for each in blocks[::-1] for n in each]
