"""The judge's own kernels, callable; compiled by CuPy once a worker."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from harness.devices.guards import POISON
from problem.reference import MAX_ERROR

_BLOCK = 256
_GRID = 132 * 16


@cache
def _module() -> Any:
    source = Path(__file__).with_name("kernels.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("--std=c++17",))


def draw_uniform(matrix: Any, seed: int) -> None:
    """Fill a float32 matrix with U(-1, 1)."""
    arguments = (matrix, np.uint64(matrix.size), np.uint64(seed))
    _module().get_function("draw_uniform")((_GRID,), (_BLOCK,), arguments)


def poison(matrix: Any) -> None:
    """Make a float32 matrix look as if nobody had written to it."""
    fill(matrix, POISON)


def fill(matrix: Any, bits: np.uint32) -> None:
    """Set every 32-bit word."""
    arguments = (matrix, np.uint64(matrix.size), np.uint32(bits))
    _module().get_function("fill")((_GRID,), (_BLOCK,), arguments)


def freivalds(A: Any, B: Any, C: Any, seed: int) -> float:
    """How far C·x is from A·(B·x) for random signs x, over what is allowed: at most 1 if right.

    Freivalds 1979. Row i of C·x - A·B·x is the sum of the row's errors with random signs: about
    ‖e_i‖₂, and at most MAX_ERROR · ‖S_i‖₂ if every block is within MAX_ERROR (problem.reference),
    with ‖S_i‖₂ = ‖a_i‖₂ · ‖B‖_F / √N. Six standard deviations are allowed: 8192 rows and hundreds
    of launches never reach them by chance, one wrong element does.
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
    S = np.sqrt(norms_A.get() * norms_B.get().sum() / N)
    allowed = 6 * MAX_ERROR * S
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(residual == 0, 0.0, residual / allowed)
    return float(np.where(np.isfinite(ratio), ratio, np.inf).max())
