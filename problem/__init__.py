"""The problem: FP32 matrix multiplication. It imports nothing of the judge."""
