"""The launch is the rules' launch."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest

from problem.cases import Shape
from problem.launcher import Clusters, LaunchLine, launch, solve
from problem.problem import MATRIX_MULTIPLICATION

ARGUMENTS = MATRIX_MULTIPLICATION.arguments(Shape(100, 7, 33))


def test_solve_launches_once_and_waits() -> None:
    events: list[Any] = []

    def kernel(grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
        events.append((grid, block, arguments, shared_mem))

    solve(kernel, "ABC", ARGUMENTS, LaunchLine(), lambda: events.append("waited"))
    grid, block, arguments, shared = events[0]
    assert (grid, block, shared) == ((3, 7, 1), (16, 16, 1), 0)
    assert arguments == ("A", "B", "C", 100, 7, 33)
    assert all(isinstance(size, np.int32) for size in arguments[3:])
    assert events[1:] == ["waited"]


@pytest.mark.parametrize(
    ("line", "grid"),
    [
        (LaunchLine(), (256, 512, 1)),
        (LaunchLine(128, 256), (16, 64, 1)),
        (LaunchLine(200, 128), (32, 41, 1)),
    ],
)
def test_the_grid_covers_C(line: LaunchLine, grid: tuple[int, int, int]) -> None:
    assert line.grid(8192, 4096) == grid
    assert are_counts(line.grid(8191, 4095))


def are_counts(numbers: Iterable[object]) -> bool:
    """CUDA takes no 3.0 for 3."""
    return all(type(number) is int for number in numbers)


@pytest.mark.parametrize(
    ("cluster", "grid"),
    [
        ((1, 1, 1), (5, 7, 1)),
        ((2, 1, 1), (6, 7, 1)),
        ((1, 4, 1), (5, 8, 1)),
        ((2, 2, 2), (6, 8, 2)),
    ],
)
def test_the_grid_has_whole_clusters(
    cluster: tuple[int, int, int], grid: tuple[int, int, int]
) -> None:
    covering = LaunchLine(cluster=cluster).grid(100, 70)
    assert covering == grid and are_counts(covering)


@pytest.mark.parametrize("cluster", [(0, 1, 1), (1, -1, 1), (1, 1, 0), (9, 1, 1), (2, 5, 1)])
def test_impossible_clusters_are_refused(cluster: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"^a cluster has 1 to 8 blocks, not \(\S+ \S+ \S+\)$"):
        LaunchLine(cluster=cluster)
    assert LaunchLine(cluster=(1, 8, 1)).cluster == (1, 8, 1)


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((6, 4, 2), (3, 2, 1)),
        ((4, 6, 6), (1, 2, 3)),
        ((5, 3, 2), (5, 1, 2)),
        ((2, 3, 4), (1, 1, 1)),
    ],
)
def test_clusters_are_numbered_like_blocks(
    grid: tuple[int, int, int], cluster: tuple[int, int, int]
) -> None:
    """Against their definition: x runs fastest, then y, then z, over the grid and in a cluster."""
    clusters = Clusters(grid, cluster)
    places = [(x, y, z) for z, y, x in product(*map(range, reversed(grid)))]
    of = [tuple(n // c for n, c in zip(place, cluster, strict=True)) for place in places]
    numbered = sorted(set(of), key=lambda place: place[::-1])
    assert clusters.sizes == tuple(n // c for n, c in zip(grid, cluster, strict=True))
    assert clusters.count == len(numbered)
    assert are_counts((*clusters.sizes, clusters.count))
    for number, wanted in enumerate(numbered):
        members = [block for block, place in enumerate(of) if place == wanted]
        assert clusters.blocks(number) == members and are_counts(clusters.blocks(number))
        assert {clusters.of(block) for block in members} == {number}
        assert are_counts(map(clusters.of, members))


@pytest.mark.parametrize("size", [0, -1, 65_537])
def test_impossible_tiles_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"a tile has 1 to 65536 rows, not {size}$"):
        LaunchLine(size, 16)
    with pytest.raises(ValueError, match=f"a tile has 1 to 65536 columns, not {size}$"):
        LaunchLine(16, size)


@pytest.mark.parametrize("size", [-1, (1 << 20) + 1])
def test_impossible_shared_memory_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"shared_memory is 0 to 1048576 bytes, not {size}$"):
        LaunchLine(16, 16, size)


def test_the_limits_themselves_are_allowed() -> None:
    assert LaunchLine(1, 65_536, 0) != LaunchLine(65_536, 1, 1 << 20)
    assert LaunchLine(1, 1).grid(7, 9) == (9, 7, 1)


def test_dynamic_shared_memory_is_passed_on() -> None:
    given: list[dict[str, Any]] = []
    line = LaunchLine(32, 64, 12_345)
    launch(lambda *_, **how: given.append(how), "ABC", ARGUMENTS, line)
    assert given == [{"shared_mem": 12_345}]


def test_another_tile_or_shared_memory_is_not_the_default() -> None:
    assert LaunchLine(16, 16, 0).is_default
    assert not any(line.is_default for line in (LaunchLine(32), LaunchLine(shared_memory=4)))
