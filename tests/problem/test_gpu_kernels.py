"""The kernels that draw A and B and check C on a GPU, run by the CPU device."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import problem
from harness.protocol.files import cache_directory
from harness.ptxcpu import nvrtc
from harness.ptxcpu.arguments import Argument, Buffer, ParameterKind
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.kernel import Kernel
from problem.accuracy import errors
from problem.cases import Case, Shape
from problem.inputs import Distribution, Draw, Magnitude, Matrix, Outliers, Recipe, Structure

NUMBER = ParameterKind.NUMBER
SHAPE = Shape(37, 60, 21)


@cache
def ptx() -> str:
    text = Path(problem.__path__[0], "gpu.cu").read_text(encoding="utf-8")
    options = ["-arch=compute_90", "--std=c++17"]
    return nvrtc.compile_to_ptx(nvrtc.Source(text, "gpu.cu"), options).ptx


@cache
def kernel(entry: str, *kinds: ParameterKind) -> Kernel:
    cache = Cache(cache_directory())
    return Kernel(ptx(), entry, block=(256, 1, 1), kinds=kinds, cache=cache)


def run(entry: str, grid: int, *arguments: Argument) -> None:
    kinds = [each.kind if isinstance(each, Buffer) else NUMBER for each in arguments]
    result = kernel(entry, *kinds).run((grid, 1, 1), list(arguments))
    assert result.fault is None, result.fault


def drawn(inputs: str, wrong: float) -> tuple[Matrix, Matrix, Matrix]:
    A, B = Case(SHAPE, inputs).draw(1)
    C = A @ B
    C[20, 20] += wrong
    return A, B, C


@pytest.mark.parametrize("inputs", ["uniform", "constant lines", "four levels"])
@pytest.mark.parametrize("wrong", [0.0, 1e-3, np.nan])
def test_block_errors_are_those_of_the_host(inputs: str, wrong: float) -> None:
    A, B, C = drawn(inputs, np.float32(wrong))
    found = np.zeros((32, 3))
    buffers = [Buffer(each) for each in (A, B, C)]
    sizes = (SHAPE.M, SHAPE.N, SHAPE.K)
    run("block_errors", 32, *buffers, *sizes, 7, Buffer(found, writable=True))
    worst = np.nan_to_num(found, nan=np.inf, posinf=np.inf).max(axis=0)
    expected = errors(A, B, C)
    assert worst == pytest.approx([expected.block, expected.by_rows, expected.by_components])


def test_rows_are_multiplied_and_their_norms_squared() -> None:
    A, _, _ = drawn("normal", 0)
    x = np.random.default_rng(1).standard_normal(SHAPE.N)
    y, norms = np.zeros(SHAPE.M), np.zeros(SHAPE.M)
    run("multiply", SHAPE.M, Buffer(A), Buffer(x), Buffer(y, writable=True), SHAPE.N)
    run("square_norms", SHAPE.M, Buffer(A), Buffer(norms, writable=True), SHAPE.N)
    assert y == pytest.approx(A.astype(np.float64) @ x)
    assert norms == pytest.approx(np.square(A.astype(np.float64)).sum(axis=1))


def test_a_changed_element_is_counted() -> None:
    x, changed = np.zeros((30, 40), np.float32), np.zeros(1, np.uint64)
    recipe = (0, 0, 0, 0, 0, 0, 0, 0.0, 5, 6)
    run("draw", 2, Buffer(x, writable=True), 30, 40, *recipe)
    assert len({*x.reshape(-1)}) > 1190 and np.abs(x).max() <= 1
    x[3, 4] += 1
    counting = (Buffer(x), 30, 40, *recipe, Buffer(changed, writable=True))
    run("count_changed", 2, *counting)
    assert changed[0] == 1


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
SEED, SHARED = 2**63 + 7, 11


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_gpu_draws_what_numpy_draws(recipe: Recipe) -> None:
    for rows, columns in SHAPES:
        for by_column in (False, True):
            how = Draw(recipe, SEED, SHARED, by_column)
            found, expected = np.zeros((rows, columns), np.float32), how.matrix(rows, columns)
            numbers = (rows, columns, *how.codes, how.recipe.outlier, SEED, SHARED)
            run("draw", 2, Buffer(found, writable=True), *numbers)
            if recipe.distribution is Distribution.NORMAL:  # logarithms may differ in the last bit
                assert np.allclose(found, expected, rtol=1e-6, atol=0)
            else:
                assert found.tobytes() == expected.tobytes()
