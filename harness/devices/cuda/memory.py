"""GPU memory for one launch: cudaMalloc itself, with a guard on either side of every matrix."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from harness.devices.guards import CANARY, GUARD_BYTES, POISON
from problem.cases import Matrix

_OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation."""

_GUARD = np.full(GUARD_BYTES // 4, CANARY, np.uint32)


def allocate(size: int) -> Any:
    """Device memory without CuPy's pool, so that it lies where nothing else did and goes back at
    once. Raises MemoryError when there is none: that is never the kernel's doing, whose own
    variables are loaded before."""
    try:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status == _OUT_OF_MEMORY:
            raise MemoryError(
                f"the GPU has no {(size >> 20) + 1} MiB left; end what else uses it"
            ) from None
        raise


def matrix(rows: int, columns: int) -> Any:
    """An uninitialised float32 matrix of exactly its size."""
    return cupy.ndarray((rows, columns), np.float32, memptr=allocate(rows * columns * 4))


class Guarded:
    """A float32 matrix with canaries right before and right behind it."""

    def __init__(self, rows: int, columns: int) -> None:
        size = rows * columns * 4
        self._memory = allocate(size + 2 * GUARD_BYTES)
        inside = self._memory + GUARD_BYTES
        self._before = cupy.ndarray(_GUARD.shape, np.uint32, memptr=self._memory)
        self._behind = cupy.ndarray(_GUARD.shape, np.uint32, memptr=inside + size)
        self.matrix = cupy.ndarray((rows, columns), np.float32, memptr=inside)
        self._before.set(_GUARD)
        self._behind.set(_GUARD)

    @classmethod
    def holding(cls, values: Matrix) -> Guarded:
        guarded = cls(values.shape[0], values.shape[1])
        guarded.matrix.set(values)
        return guarded

    @classmethod
    def poisoned(cls, rows: int, columns: int) -> Guarded:
        guarded = cls(rows, columns)
        guarded.matrix.view(np.uint32).set(np.full((rows, columns), POISON, np.uint32))
        return guarded

    def overwritten(self) -> list[str]:
        """The sides on which a canary is gone: "before", "behind"."""
        sides = {"before": self._before, "behind": self._behind}
        return [side for side, guard in sides.items() if (guard.get() != CANARY).any()]
