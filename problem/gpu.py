"""The problem on a GPU: `Drawn` draws A and B and checks C, `baseline` is cuBLAS.

CuPy compiles gpu.cu once per process. Matrices are float32 arrays of CuPy.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas

from problem.cases import Case
from problem.grades import Errors
from problem.inputs import Distribution, Draw, Kind, Tolerance
from problem.reference import LIMITS, MAX_ERROR, norms_scale

_BLOCK = 256
_GRID = 132 * 16


@cache
def _module() -> Any:
    source = Path(__file__).with_name("gpu.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("--std=c++17",))


def load() -> None:
    """Compile the kernels and load them into the context, which is created if necessary."""
    _module().get_function("draw")


class Drawn:
    """The inputs of one launch, in the memory of the GPU."""

    def __init__(self, case: Case, seed: int, buffers: Sequence[Any]) -> None:
        """Fill A and B of the buffers A, B and C."""
        self._kind = Kind.parse(case.inputs)
        self._draws = case.draws(seed)
        self._A, self._B, self._C = buffers
        for place in range(len(self._draws)):
            self.draw(place)

    def draw(self, place: int) -> None:
        """Draw one of the inputs. Every call draws the same values."""
        draw((self._A, self._B)[place], self._draws[place])

    def changed(self) -> list[int]:
        """Return the indices of the inputs that have changed since they were drawn."""
        matrices = zip((self._A, self._B), self._draws, strict=True)
        return [place for place, each in enumerate(matrices) if changed(*each)]

    def worst_error(self, seed: int) -> float:
        """Return the error of C, divided by the limit."""
        return worst_error(self._A, self._B, self._C, self._kind, seed)

    def errors(self, seed: int) -> Errors:
        """Return the errors of C in blocks that the seed chooses."""
        return block_errors(self._A, self._B, self._C, seed)


def draw(matrix: Any, how: Draw) -> None:
    _module().get_function("draw")((_GRID,), (_BLOCK,), _drawing(matrix, how))


def changed(matrix: Any, how: Draw) -> bool:
    """Return whether any bit of a matrix has changed since it was drawn."""
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
    """Return the error of C, divided by the limit: at most 1 if C is correct.

    Some blocks are compared by the error rule itself. If the rule permits Freivalds' check, every
    row and all rows together are checked, too: each of the three detects errors that the others
    miss.
    """
    tolerance, found = kind.tolerance, block_errors(A, B, C, ~seed & (1 << 64) - 1)
    if tolerance is Tolerance.STRUCTURED:
        worst = found.by_rows / norms_scale(tolerance, A.shape[1]) / LIMITS[tolerance]
    else:
        worst = found.block / MAX_ERROR
    if Distribution.POSITIVE in (kind.A.distribution, kind.B.distribution):
        return worst  # R is far larger than S
    return max(worst, freivalds(A, B, C, tolerance, seed))


_BLOCKS_COMPARED = 1024
"""The number of blocks compared after each launch. If one block in a hundred is wrong, 30 launches
miss that with a probability of 1e-134. If one in 10 000 is wrong, it is 5 %, but so few save no
time."""


def block_errors(A: Any, B: Any, C: Any, seed: int) -> Errors:
    """Return the largest errors of some blocks of C, which the seed chooses."""
    (M, N), K = A.shape, B.shape[1]
    errors = cupy.ndarray((_BLOCKS_COMPARED, 3), np.float64)
    sizes = (np.int32(M), np.int32(N), np.int32(K))
    arguments = (A, B, C, *sizes, np.uint64(seed), errors)
    _module().get_function("block_errors")((_BLOCKS_COMPARED,), (_BLOCK,), arguments)
    worst = np.nan_to_num(errors.get(), nan=np.inf, posinf=np.inf).max(axis=0)
    return Errors(*map(float, worst))


def freivalds(A: Any, B: Any, C: Any, tolerance: Tolerance, seed: int) -> float:
    """Return the difference of C·x and A·(B·x) for random signs x, divided by the limit.

    Freivalds 1979. Row i of C·x - A·B·x is the sum of the row's errors with random signs: about
    ‖e_i‖₂, and at most LIMIT · ‖S_i‖₂ if every block is within the limit (problem.reference), with
    ‖S_i‖₂ = ‖a_i‖₂ · ‖B‖_F · norms_scale(tolerance, N). Six deviations are allowed: 8192 rows and
    hundreds of launches do not reach them by chance, but one wrong element does. The estimate for
    all rows together is far more precise, unless structured inputs give their errors the same sign.
    The root of the sum of their squares is ‖C - A·B‖_F to within 1/√(2M). It may exceed LIMIT ·
    ‖S‖_F by six such deviations.
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
    S = norms_scale(tolerance, N) * np.sqrt(norms_A.get() * norms_B.get().sum())
    limit = LIMITS[tolerance]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(residual == 0, 0.0, residual / (6 * limit * S))
        together = np.linalg.norm(residual) / np.linalg.norm(limit * S)
    if residual.any() and tolerance is not Tolerance.STRUCTURED:
        ratio = np.append(ratio, together / (1 + 6 / np.sqrt(2 * M)))
    return float(np.where(np.isfinite(ratio), ratio, np.inf).max())


# ------------------------------------------------------------------------------------ baseline

_NO_TRANSPOSE = 0
_MATH_MODES = {"fp32": 0, "tf32": 3}
"""CUBLAS_DEFAULT_MATH, with which SGEMM computes in FP32, and CUBLAS_TF32_TENSOR_OP_MATH."""


def baseline_version() -> str:
    """Return cuBLAS's version, such as 13.1.0. It needs no handle, for which a full GPU has no
    memory."""
    number = cublas.getVersion(0)
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class Sgemm:
    """A function that computes C = A · B in row-major float32."""

    def __init__(self, arithmetic: str = "fp32") -> None:
        self._handle = cublas.create()
        cublas.setMathMode(self._handle, _MATH_MODES[arithmetic])
        self._one, self._zero = np.ones(1, np.float32), np.zeros(1, np.float32)

    def __call__(self, A: Any, B: Any, C: Any) -> None:
        """Compute Cᵀ = Bᵀ · Aᵀ, because cuBLAS is column-major."""
        (M, N), K = A.shape, B.shape[1]
        cublas.sgemm(
            self._handle,
            _NO_TRANSPOSE,
            _NO_TRANSPOSE,
            K,
            M,
            N,
            self._one.ctypes.data,
            B.data.ptr,
            K,
            A.data.ptr,
            N,
            self._zero.ctypes.data,
            C.data.ptr,
            K,
        )


baseline = Sgemm
"""Returns a function that computes C = A · B with cuBLAS."""
