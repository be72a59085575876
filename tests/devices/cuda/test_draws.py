"""What the judge draws for timed launches, its own kernels run by the CPU device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.devices.cpu.device import CpuDevice
from harness.devices.cuda import __path__ as folder
from harness.protocol.device import Ready
from problem.cases import Matrix, Shape
from tests.ptxcpu.runner import Runner

JUDGE_KERNELS = Path(folder[0], "judge_kernels.cu").read_text(encoding="utf-8")

PLAIN, COLUMN_GROUPS, LONE_ELEMENTS, CHANGING_ROWS, CHANGING_COLUMNS, POSITIVE = 0, 2, 5, 6, 7, 8

DRAWS = """
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    uint64_t i = (uint64_t)row * K + column;
    C[i] = drawn(i, SEED, (uint64_t)M * K, K, SCALING);
}
"""


def drawn(scaling: int, seed: int, rows: int, columns: int) -> Matrix:
    """What `draw` fills a matrix with."""
    runner = Runner(CpuDevice())
    text = DRAWS.replace("SEED", f"{seed}ull").replace("SCALING", str(scaling))
    assert isinstance(runner.load(JUDGE_KERNELS + text), Ready)
    return runner.finish(Shape(rows, 1, columns)).C


def places(matrix: Matrix) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in np.argwhere(matrix == 2.0**20)]


def in_eighths(matrix: Matrix) -> None:
    """One large element a quarter, in eighths of rows and of columns that differ by half or not."""
    found = places(matrix)
    rows, columns = matrix.shape
    assert len({(2 * row // rows, 2 * column // columns) for row, column in found}) == 4
    for at, length in (([row for row, _ in found], rows), ([c for _, c in found], columns)):
        eighths = {8 * place // length % 4 for place in at}
        assert len(found) == len(eighths) == 4


@pytest.mark.parametrize("shape", [(64, 96), (200, 77)])
def test_lone_elements_lie_one_in_each_quarter(shape: tuple[int, int]) -> None:
    matrices = [drawn(LONE_ELEMENTS, seed, *shape) for seed in (3, 4, 5)]
    for matrix in matrices:
        in_eighths(matrix)
        rest = np.abs(matrix[matrix != 2.0**20])
        assert 0.95 < rest.max() <= 1 and rest.min() < 0.01
    assert len({place for matrix in matrices for place in places(matrix)}) > 9


def test_a_scale_changes_for_each_row_or_column_somewhere_along_it() -> None:
    rows, columns = drawn(CHANGING_ROWS, 3, 48, 800), drawn(CHANGING_COLUMNS, 3, 800, 48)
    assert not np.array_equal(rows, columns.T)
    for lines in (rows, columns.T):
        found = [change(line) for line in lines]
        assert len({place for place, _ in found if place is not None}) > 30
        scales = {round(scale) for _, scale in found}
        assert min(scales) < -8 and max(scales) > 8 and len(scales) > 12


def change(line: Matrix) -> tuple[int | None, float]:
    """Where a line of U(-1, 1) takes another scale, as far as that can be seen, and its log2."""
    sizes = np.abs(line)
    scale = float(np.log2(sizes[-100:].max() / sizes[:100].max()))
    assert abs(np.log2(sizes[:100].max())) < 0.5 and abs(scale) < 10.5
    behind = [at for at in range(100, 701) if sizes[at : at + 50].max() < 0.2]
    beyond = np.flatnonzero(sizes > 1)
    places = [*behind[:1], *beyond[:1]]
    assert all(100 <= place <= 720 for place in places)
    return (int(places[0]) if places else None), scale


def test_positive_elements_are_the_magnitudes_of_plain_ones() -> None:
    positive, plain = drawn(POSITIVE, 3, 64, 80), drawn(PLAIN, 3, 64, 80)
    assert plain.min() < -0.99 and np.array_equal(positive, np.abs(plain))


def test_a_scale_changes_along_all_rows_alike_in_groups_of_columns() -> None:
    sizes = np.log2(np.abs(drawn(COLUMN_GROUPS, 3, 64, 80)).max(axis=0)).round().reshape(10, 8)
    assert (sizes == sizes[:, :1]).all() and len({*sizes[:, 0]}) > 4


def test_a_matrix_of_one_row_has_what_there_is_room_for() -> None:
    assert len(places(drawn(LONE_ELEMENTS, 1, 1, 64))) <= 4
