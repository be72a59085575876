"""The problem: FP32 matrix multiplication. It does not depend on the judge and imports nothing of
it."""
