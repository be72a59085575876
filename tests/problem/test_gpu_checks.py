"""The checks of a timed launch on a GPU: what each of them sees that the others do not."""

from typing import Any

import numpy as np
import pytest

from problem.cases import SCORED_INPUTS, UNSCORED_INPUTS
from problem.inputs import Kind, Tolerance, draws
from problem.reference import MAX_ERROR, MAX_STRUCTURED_ERROR, compare

M, N, K = 2048, 3072, 1024
UNIFORM = Kind.parse("uniform")

pytestmark = pytest.mark.gpu


def product(kind: Kind, M: int = M, N: int = N, K: int = K) -> Any:
    """A, B of this kind and their product on the GPU."""
    from harness.devices.cuda import memory
    from problem import gpu
    from problem.gpu import Sgemm

    A, B, C = memory.matrix(M, N), memory.matrix(N, K), memory.matrix(M, K)
    for matrix, how in zip((A, B), draws(kind, 7), strict=True):
        gpu.draw(matrix, how)
    Sgemm()(A, B, C)
    return A, B, C


@pytest.mark.parametrize("inputs", [*SCORED_INPUTS, *UNSCORED_INPUTS])
def test_the_gpu_draws_what_numpy_draws_and_cublas_is_right(inputs: str) -> None:
    from problem import gpu

    kind = Kind.parse(inputs)
    A, B, C = product(kind)
    for matrix, how in zip((A, B), draws(kind, 7), strict=True):
        expected = how.matrix(*matrix.shape)
        if "normal" in inputs:
            assert np.allclose(matrix.get(), expected, rtol=1e-6, atol=0)
        else:
            assert matrix.get().tobytes() == expected.tobytes()
        assert not gpu.changed(matrix, how)
    assert gpu.worst_error(A, B, C, kind, 3) < 0.7
    assert compare(A.get(), B.get(), C.get(), tolerance=kind.tolerance).passed


def test_an_error_in_every_block_is_found() -> None:
    from problem import gpu

    A, B, C = product(UNIFORM)
    right = C.get()
    signs = np.random.default_rng(0).choice((-1, 1), right.shape)
    C.set((right + 1.5 * MAX_ERROR * np.sqrt(N) / 3 * signs).astype(np.float32))
    assert gpu.freivalds(A, B, C, Tolerance.RANDOM, 3) > 1.2
    assert gpu.worst_error(A, B, C, UNIFORM, 3) > 1.2


@pytest.mark.parametrize(
    ("inputs", "inner", "limit"),
    [
        ("positive", N, MAX_ERROR),
        ("constant lines", 1024, MAX_STRUCTURED_ERROR),
        ("constant lines", 7168, 7168 * 2.0**-24),  # what a plain float32 sum may be off
    ],
)
def test_errors_of_one_sign_have_the_same_limit(inputs: str, inner: int, limit: float) -> None:
    from problem import gpu

    kind = Kind.parse(inputs)
    A, B, _ = product(kind, N=inner)
    C = A.astype(np.float64) @ B.astype(np.float64)
    for factor, passed in ((0.8, True), (1.25, False)):
        wrong = (C * (1 - factor * limit)).astype(np.float32)
        for seed in range(9):
            assert (gpu.worst_error(A, B, wrong, kind, seed) <= 1) is passed
        assert compare(A.get(), B.get(), wrong.get(), tolerance=kind.tolerance).passed is passed


def test_rare_inaccurate_blocks_are_found_by_the_block_rule() -> None:
    from problem import gpu

    A, B, C = product(UNIFORM)
    wrong = C.get()
    for row in range(0, M, 16):
        column = row % K
        wrong[row : row + 16, column : column + 16] *= np.float32(1 + 1e-4)
    C.set(wrong)
    assert gpu.freivalds(A, B, C, Tolerance.RANDOM, 3) < 1.5
    assert gpu.worst_error(A, B, C, UNIFORM, 3) > 5
