"""The launch is the rules' launch."""

from typing import Any

import numpy as np
import pytest

from problem.launcher import LaunchLine, solve


def test_solve_launches_once_and_waits() -> None:
    events: list[Any] = []

    def kernel(grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
        events.append((grid, block, arguments, shared_mem))

    solve(kernel, "A", "B", "C", 100, 7, 33, LaunchLine(), lambda: events.append("waited"))
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


@pytest.mark.parametrize("values", [(0, 16), (16, 0), (16, 1 << 20), (-1, 16)])
def test_impossible_tiles_are_refused(values: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="a tile has 1 to"):
        LaunchLine(*values)


def test_impossible_shared_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="shared_memory"):
        LaunchLine(16, 16, -1)
