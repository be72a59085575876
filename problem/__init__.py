"""The problem: FP32 matrix multiplication. Says nothing about judging and imports nothing of it."""
