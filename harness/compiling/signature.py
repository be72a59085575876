"""The kernel that a submission defines, as its author writes it."""

from __future__ import annotations

KERNEL_NAME = "matrix_multiplication_kernel"
SIGNATURE = "const float* A, const float* B, float* C, int M, int N, int K"
