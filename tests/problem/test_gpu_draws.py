"""The GPU draws what inputs.py defines: its own function, run by the CPU device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import problem
from harness.devices.cpu.device import CpuDevice
from harness.protocol.device import Finished, Ready, Run
from problem.cases import Shape
from problem.inputs import Distribution, Draw, Magnitude, Matrix, Outliers, Recipe, Structure
from tests.ptxcpu.runner import Runner
from tests.requests import inputs_of

SOURCE = Path(problem.__path__[0], "gpu.cu").read_text(encoding="utf-8")

DRAWS = """
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    Recipe how = {(int)A[0], (int)A[1], (int)A[2], (int)A[3], (int)A[4], (int)A[5], (int)A[6],
                  A[7], SEEDull, SHAREDull};
    uint64_t i = (uint64_t)row * K + column;
    C[i] = drawn(how, i, M, K);
}
"""

SHAPES = ((65, 51), (7, 90))

RECIPES = (
    *(Recipe(distribution) for distribution in Distribution),
    *(Recipe(structure=structure) for structure in Structure),
    Recipe(Distribution.CONSTANT, Structure.RANK_ONE),
    *(Recipe(Distribution.POSITIVE, magnitude=each, low=-9, high=8) for each in Magnitude),
    Recipe(magnitude=Magnitude.ELEMENTS, low=-126, high=60),
    Recipe(outliers=Outliers.LARGE),
    Recipe(Distribution.LEVELS, Structure.BANDED, Magnitude.LINES, -3, 3, Outliers.LARGE),
)


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    runner = Runner(CpuDevice())
    text = DRAWS.replace("SEED", str(SEED)).replace("SHARED", str(SHARED))
    assert isinstance(runner.load(SOURCE + text), Ready)
    return runner.device


SEED, SHARED = 2**63 + 7, 11


def drawn(device: CpuDevice, how: Draw, rows: int, columns: int) -> Matrix:
    A = np.zeros((rows, 8), np.float32)
    A[0] = (*how.codes, how.recipe.outlier)
    B = np.zeros((8, columns), np.float32)
    done = device.run(Run(inputs=inputs_of(Shape(rows, 8, columns), A, B), seconds=20))
    assert isinstance(done, Finished), done
    return done.output


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_gpu_draws_what_numpy_draws(device: CpuDevice, recipe: Recipe) -> None:
    for rows, columns in SHAPES:
        for by_column in (False, True):
            how = Draw(recipe, SEED, SHARED, by_column)
            found, expected = drawn(device, how, rows, columns), how.matrix(rows, columns)
            if recipe.distribution is Distribution.NORMAL:  # logarithms may differ in the last bit
                assert np.allclose(found, expected, rtol=1e-6, atol=0)
            else:
                assert found.tobytes() == expected.tobytes()
