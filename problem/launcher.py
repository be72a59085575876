"""solve(): the one launch that every submission gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK = (16, 16, 1)
"""Threads in a block: 16 along x (columns of C), 16 along y (rows of C)."""

MAX_TILE = 65_536
MAX_SHARED_MEMORY = 1 << 20

Launchable = Callable[..., None]
"""A compiled kernel, called as CuPy calls one: kernel(grid, block, arguments, shared_mem=bytes)."""


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """What a submission may say about its launch: `// solve: tile=ROWSxCOLS shared_memory=BYTES`.

    tile_rows, tile_columns: the part of C that one block computes.
    shared_memory: dynamic shared memory of a block, in bytes.
    """

    tile_rows: int = 16
    tile_columns: int = 16
    shared_memory: int = 0

    def __post_init__(self) -> None:
        for name, size in (("rows", self.tile_rows), ("columns", self.tile_columns)):
            if not 1 <= size <= MAX_TILE:
                raise ValueError(f"a tile has 1 to {MAX_TILE} {name}, not {size}")
        if not 0 <= self.shared_memory <= MAX_SHARED_MEMORY:
            raise ValueError(
                f"shared_memory is 0 to {MAX_SHARED_MEMORY} bytes, not {self.shared_memory}"
            )

    @property
    def is_default(self) -> bool:
        return self == LaunchLine()

    def grid(self, M: int, K: int) -> tuple[int, int, int]:
        """Blocks along x, y and z that cover C (M×K)."""
        return (-(-K // self.tile_columns), -(-M // self.tile_rows), 1)


def solve(
    kernel: Launchable,
    A: Any,
    B: Any,
    C: Any,
    M: int,
    N: int,
    K: int,
    line: LaunchLine,
    synchronize: Callable[[], None],
) -> None:
    """C[M×K] = A[M×N] · B[N×K], row-major float32: one launch of 16×16 blocks, then wait for it."""
    launch(kernel, A, B, C, M, N, K, line)
    synchronize()


def launch(
    kernel: Launchable, A: Any, B: Any, C: Any, M: int, N: int, K: int, line: LaunchLine
) -> None:
    """The launch alone, to put a clock around."""
    arguments = (A, B, C, np.int32(M), np.int32(N), np.int32(K))
    kernel(line.grid(M, K), BLOCK, arguments, shared_mem=line.shared_memory)
