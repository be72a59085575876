"""The problem's own kernels on a GPU, callable: they draw A and B, and check C.

CuPy compiles gpu.cu once a process. Matrices are CuPy's, float32.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from problem.inputs import Distribution, Draw, Kind, Tolerance
from problem.reference import LIMITS, MAX_ERROR, long_sums

_BLOCK = 256
_GRID = 132 * 16


@cache
def _module() -> Any:
    source = Path(__file__).with_name("gpu.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("--std=c++17",))


def load() -> None:
    """Compile the kernels and load them into the context, which is created where there is none."""
    _module().get_function("draw")


def draw(matrix: Any, how: Draw) -> None:
    """Fill a matrix."""
    _module().get_function("draw")((_GRID,), (_BLOCK,), _drawing(matrix, how))


def changed(matrix: Any, how: Draw) -> bool:
    """Whether a matrix is no longer what was drawn, bit for bit."""
    count = cupy.zeros((1,), np.uint64)
    arguments = (*_drawing(matrix, how), count)
    _module().get_function("count_changed")((_GRID,), (_BLOCK,), arguments)
    return bool(count.get()[0])


def _drawing(matrix: Any, how: Draw) -> tuple[Any, ...]:
    rows, columns = matrix.shape
    return (
        matrix,
        np.uint64(rows),
        np.uint64(columns),
        *(np.int32(code) for code in how.codes),
        np.float32(how.recipe.outlier),
        np.uint64(how.seed),
        np.uint64(how.shared_seed),
    )


def worst_error(A: Any, B: Any, C: Any, kind: Kind, seed: int) -> float:
    """How far C is from A · B, over what is allowed: at most 1 if correct.

    Some blocks are compared as the rule itself does. Where errors may be told from a sum of random
    signs, every row and all rows together are looked at too: what escapes one look is caught by
    another.
    """
    found = worst_block(A, B, C, kind.tolerance, ~seed & (1 << 64) - 1)
    if Distribution.POSITIVE in (kind.A.distribution, kind.B.distribution):
        return found  # R is far larger than S
    return max(found, freivalds(A, B, C, kind.tolerance, seed))


_BLOCKS_COMPARED = 1024
"""Blocks for each launch. If one block in a hundred is wrong, 30 launches miss it with a chance of
1e-134; one in 10 000, 5 %, and so few are not worth cheating for."""


def worst_block(A: Any, B: Any, C: Any, tolerance: Tolerance, seed: int) -> float:
    """The largest error of some blocks of C, chosen by the seed, over what is allowed."""
    by_block, by_norms, _ = block_errors(A, B, C, seed)
    if tolerance is Tolerance.STRUCTURED:
        return by_norms / LIMITS[tolerance]
    return by_block / MAX_ERROR


def block_errors(A: Any, B: Any, C: Any, seed: int) -> tuple[float, float, float]:
    """The largest errors of some blocks of C, chosen by the seed, in float64: by the block rule,
    |C - R| / (‖a‖₂ ‖b‖₂), and |C - R| / (|A| |B|)."""
    (M, N), K = A.shape, B.shape[1]
    errors = cupy.ndarray((_BLOCKS_COMPARED, 3), np.float64)
    sizes = (np.int32(M), np.int32(N), np.int32(K))
    arguments = (A, B, C, *sizes, np.uint64(seed), errors)
    _module().get_function("block_errors")((_BLOCKS_COMPARED,), (_BLOCK,), arguments)
    worst = np.nan_to_num(errors.get(), nan=np.inf, posinf=np.inf).max(axis=0)
    return float(worst[0]), float(worst[1]), float(worst[2])


def freivalds(A: Any, B: Any, C: Any, tolerance: Tolerance, seed: int) -> float:
    """How far C·x is from A·(B·x) for random signs x, over what is allowed: at most 1 if correct.

    Freivalds 1979. Row i of C·x - A·B·x is the sum of the row's errors with random signs: about
    ‖e_i‖₂, and at most LIMIT · ‖S_i‖₂ if every block is within the limit (problem.reference), with
    ‖S_i‖₂ = ‖a_i‖₂ · ‖B‖_F / √N, or times long_sums(N) where inputs are structured. Six deviations
    are allowed: 8192 rows and hundreds of launches never reach them by chance, one wrong element
    does. All rows together are known far better than one: the root of the sum of their squares is
    ‖C - A·B‖_F to within 1/√(2M), and is allowed six such deviations more than LIMIT · ‖S‖_F.
    """
    M, N = A.shape
    K = B.shape[1]
    module = _module()
    x = cupy.ndarray((K,), np.float64)
    blocks = ((K + _BLOCK - 1) // _BLOCK,)
    module.get_function("draw_signs")(blocks, (_BLOCK,), (x, np.uint64(K), np.uint64(seed)))
    Bx, ABx, Cx = (cupy.ndarray((rows,), np.float64) for rows in (N, M, M))
    norms_A, norms_B = (cupy.ndarray((rows,), np.float64) for rows in (M, N))
    multiply = module.get_function("multiply")
    square_norms = module.get_function("square_norms")
    multiply((N,), (_BLOCK,), (B, x, Bx, np.int32(K)))
    multiply((M,), (_BLOCK,), (A, Bx, ABx, np.int32(N)))
    multiply((M,), (_BLOCK,), (C, x, Cx, np.int32(K)))
    square_norms((M,), (_BLOCK,), (A, norms_A, np.int32(N)))
    square_norms((N,), (_BLOCK,), (B, norms_B, np.int32(K)))
    residual = np.abs(Cx.get() - ABx.get())
    size = long_sums(N) if tolerance is Tolerance.STRUCTURED else 1 / np.sqrt(N)
    S = size * np.sqrt(norms_A.get() * norms_B.get().sum())
    limit = LIMITS[tolerance]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(residual == 0, 0.0, residual / (6 * limit * S))
        together = np.linalg.norm(residual) / np.linalg.norm(limit * S)
    if residual.any():
        ratio = np.append(ratio, together / (1 + 6 / np.sqrt(2 * M)))
    return float(np.where(np.isfinite(ratio), ratio, np.inf).max())
