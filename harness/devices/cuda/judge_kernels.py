"""The judge's own kernels, callable; compiled by CuPy once a worker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from harness.devices.guards import CANARY, POISON
from harness.protocol.timing import TimedInputs
from problem.reference import MAX_ERROR

_BLOCK = 256
_GRID = 132 * 16


@cache
def _module() -> Any:
    source = Path(__file__).with_name("judge_kernels.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("--std=c++17",))


def load() -> None:
    """Compile them and load them into the context, which is created where there is none."""
    _module().get_function("draw")


class Scaling(IntEnum):
    """What U(-1, 1) is multiplied by: as `enum Scaling` in judge_kernels.cu."""

    PLAIN = 0
    ROW_GROUPS = 1
    COLUMN_GROUPS = 2
    LONE_ROWS = 3
    LONE_COLUMNS = 4
    LONE_ELEMENTS = 5
    CHANGING_ROWS = 6
    CHANGING_COLUMNS = 7
    POSITIVE = 8


SCALINGS: dict[TimedInputs, tuple[tuple[Scaling, Scaling], ...]] = {
    TimedInputs.UNIFORM: ((Scaling.PLAIN, Scaling.PLAIN),),
    TimedInputs.RESCALED: (
        (Scaling.ROW_GROUPS, Scaling.COLUMN_GROUPS),
        (Scaling.LONE_ROWS, Scaling.PLAIN),
        (Scaling.PLAIN, Scaling.LONE_COLUMNS),
    ),
    TimedInputs.LONE_ELEMENTS: (
        (Scaling.LONE_ELEMENTS, Scaling.PLAIN),
        (Scaling.PLAIN, Scaling.LONE_ELEMENTS),
    ),
    TimedInputs.CHANGING_SCALE: (
        (Scaling.COLUMN_GROUPS, Scaling.PLAIN),
        (Scaling.PLAIN, Scaling.ROW_GROUPS),
        (Scaling.CHANGING_ROWS, Scaling.PLAIN),
        (Scaling.PLAIN, Scaling.CHANGING_COLUMNS),
    ),
    TimedInputs.POSITIVE: ((Scaling.POSITIVE, Scaling.POSITIVE),),
}
"""Of A and B, to choose from. Lone rows and columns not at once: a single element would decide the
error of its block. Lone elements not at once: who looks at all of one matrix is to see none. Scales
that change along N not at once: few products would decide an element."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How the elements of a matrix were drawn, which is all that is needed to draw them again."""

    seed: int
    scaling: Scaling = Scaling.PLAIN


def draw(matrix: Any, how: Draw) -> None:
    """Fill a float32 matrix."""
    _module().get_function("draw")((_GRID,), (_BLOCK,), _drawing(matrix, how))


def changed(matrix: Any, how: Draw) -> bool:
    """Whether a matrix is no longer what was drawn, bit for bit."""
    count = cupy.zeros((1,), np.uint64)
    arguments = (*_drawing(matrix, how), count)
    _module().get_function("count_changed")((_GRID,), (_BLOCK,), arguments)
    return bool(count.get()[0])


def _drawing(matrix: Any, how: Draw) -> tuple[Any, ...]:
    seed, columns, scaling = np.uint64(how.seed), np.int32(matrix.shape[1]), np.int32(how.scaling)
    return matrix, np.uint64(matrix.size), seed, columns, scaling


def overwritten(guard: Any) -> bool:
    """Whether a word is no canary any more; it is one again afterwards."""
    count = cupy.zeros((1,), np.uint64)
    arguments = (guard, np.uint64(guard.size), np.uint32(CANARY), count)
    _module().get_function("restore")((_GRID,), (_BLOCK,), arguments)
    return bool(count.get()[0])


def poison(matrix: Any) -> None:
    """Make every element of a float32 matrix the poison."""
    fill(matrix, POISON)


def fill(matrix: Any, bits: np.uint32) -> None:
    """Set every 32-bit word."""
    arguments = (matrix, np.uint64(matrix.size), np.uint32(bits))
    _module().get_function("fill")((_GRID,), (_BLOCK,), arguments)


def worst_error(A: Any, B: Any, C: Any, seed: int) -> float:
    """How far C is from A · B, over what is allowed: at most 1 if right.

    Three looks, for what escapes one is caught by another: at every row (freivalds), at all rows
    together (freivalds), and at some blocks as the rule itself does (problem.reference).
    """
    return max(freivalds(A, B, C, seed), worst_block(A, B, C, ~seed & (1 << 64) - 1))


_BLOCKS_LOOKED_AT = 1024
"""Per launch. If one block in a hundred is wrong, 30 launches miss it with a chance of 1e-134; one
in 10 000, 5 %, and so few are not worth cheating for."""


def worst_block(A: Any, B: Any, C: Any, seed: int) -> float:
    """The largest error of some blocks of C, chosen by the seed, in float64, over what is allowed.
    Of positive inputs it is all that can be said: errors of one sign are no sum of random signs."""
    (M, N), K = A.shape, B.shape[1]
    errors = cupy.ndarray((_BLOCKS_LOOKED_AT,), np.float64)
    sizes = (np.int32(M), np.int32(N), np.int32(K))
    arguments = (A, B, C, *sizes, np.uint64(seed), errors)
    _module().get_function("block_errors")((_BLOCKS_LOOKED_AT,), (_BLOCK,), arguments)
    return float(np.nan_to_num(errors.get(), nan=np.inf).max()) / MAX_ERROR


def freivalds(A: Any, B: Any, C: Any, seed: int) -> float:
    """How far C·x is from A·(B·x) for random signs x, over what is allowed: at most 1 if right.

    Freivalds 1979. Row i of C·x - A·B·x is the sum of the row's errors with random signs: about
    ‖e_i‖₂, and at most MAX_ERROR · ‖S_i‖₂ if every block is within MAX_ERROR (problem.reference),
    with ‖S_i‖₂ = ‖a_i‖₂ · ‖B‖_F / √N. Six standard deviations are allowed: 8192 rows and hundreds
    of launches never reach them by chance, one wrong element does. All rows together are known far
    better than one: the root of the sum of their squares is ‖C - A·B‖_F to within 1/√(2M), and is
    allowed six such deviations more than MAX_ERROR · ‖S‖_F.
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
        together = np.linalg.norm(residual) / np.linalg.norm(MAX_ERROR * S)
    if residual.any():
        ratio = np.append(ratio, together / (1 + 6 / np.sqrt(2 * M)))
    return float(np.where(np.isfinite(ratio), ratio, np.inf).max())
