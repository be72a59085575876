"""The baseline: cuBLAS SGEMM, float32 without TF32."""

from __future__ import annotations

from typing import Any

import numpy as np
from cupy.cuda import cublas

from harness.protocol.timing import Arithmetic

_NO_TRANSPOSE = 0
_MATH_MODES = {Arithmetic.FP32: 0, Arithmetic.TF32: 3}
"""CUBLAS_DEFAULT_MATH, in which SGEMM keeps to FP32, and CUBLAS_TF32_TENSOR_OP_MATH."""

_R_32F, _R_16F, _COMPUTE_32F, _DEFAULT_ALGORITHM = 0, 2, 68, -1


def version() -> str:
    """Return cuBLAS's version, such as 13.1.0."""
    handle = cublas.create()
    try:
        number = cublas.getVersion(handle)
    finally:
        cublas.destroy(handle)
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class Sgemm:
    """Computes C = A · B in row-major float32."""

    def __init__(self, arithmetic: Arithmetic = Arithmetic.FP32) -> None:
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


def half_precision(A: Any, B: Any, C: Any) -> None:
    """Compute C = A · B with A and B rounded to FP16 and sums in FP32."""
    handle = cublas.create()
    (M, N), K = A.shape, B.shape[1]
    half_A, half_B = A.astype(np.float16), B.astype(np.float16)
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    cublas.gemmEx(
        handle,
        _NO_TRANSPOSE,
        _NO_TRANSPOSE,
        K,
        M,
        N,
        one.ctypes.data,
        half_B.data.ptr,
        _R_16F,
        K,
        half_A.data.ptr,
        _R_16F,
        N,
        zero.ctypes.data,
        C.data.ptr,
        _R_32F,
        K,
        _COMPUTE_32F,
        _DEFAULT_ALGORITHM,
    )
