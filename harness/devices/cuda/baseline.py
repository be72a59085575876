"""The baseline: cuBLAS SGEMM, float32 without TF32."""

from __future__ import annotations

from typing import Any

import numpy as np
from cupy.cuda import cublas

_NO_TRANSPOSE = 0
_DEFAULT_MATH = 0
"""CUBLAS_DEFAULT_MATH: SGEMM keeps to FP32 unless TF32 is asked for."""


def version() -> str:
    """cuBLAS's version, such as 13.1.0."""
    handle = cublas.create()
    try:
        number = cublas.getVersion(handle)
    finally:
        cublas.destroy(handle)
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class Sgemm:
    """C = A · B, row-major float32."""

    def __init__(self) -> None:
        self._handle = cublas.create()
        cublas.setMathMode(self._handle, _DEFAULT_MATH)
        self._one, self._zero = np.ones(1, np.float32), np.zeros(1, np.float32)

    def __call__(self, A: Any, B: Any, C: Any) -> None:
        """cuBLAS is column-major: it is asked for Cᵀ = Bᵀ · Aᵀ."""
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
