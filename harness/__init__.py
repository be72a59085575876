"""A judge for FP32 matrix multiplication kernels.

docs/architecture.md says what is where.
"""

__version__ = "0.2.0"
