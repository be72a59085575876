"""What the checker draws for a timed launch on the GPU, worked out without it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from problem.cases import Matrix
from problem.threads import available_cores


def draw_on_host(rows: int, columns: int, seed: int) -> Matrix:
    """What `draw` in judge_kernels.cu fills a matrix with (plain)."""
    matrix: Matrix = np.empty((rows, columns), np.float32)
    flat = matrix.reshape(-1)
    step = 1 << 20

    def part(start: int) -> None:
        z = np.arange(start + 1, min(start + step, flat.size) + 1, dtype=np.uint64)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        drawn = (z >> np.uint64(40)).astype(np.float32)
        flat[start : start + step] = drawn * np.float32(2.0**-23) - np.float32(1)

    with ThreadPoolExecutor(available_cores()) as threads:
        list(threads.map(part, range(0, flat.size, step)))
    return matrix
