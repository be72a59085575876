"""GPU memory: cudaMalloc itself, with guards around a matrix or shared with another process."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from harness.devices.guards import CANARY, GUARD_BYTES, POISON
from harness.protocol.timing import SharedMatrices
from problem.cases import Matrix

_OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation."""

_PIECE = 2 << 20
"""cudaMalloc lays what is smaller side by side in one piece, and a handle opens the whole piece."""

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


def shared_matrix(rows: int, columns: int) -> Any:
    """An uninitialised float32 matrix that another process can open, and nothing else with it."""
    size = -(-rows * columns * 4 // _PIECE) * _PIECE
    return cupy.ndarray((rows, columns), np.float32, memptr=allocate(size))


def handle(matrix: Any) -> str:
    """What another process opens a shared matrix with."""
    name: bytes = cupy.cuda.runtime.ipcGetMemHandle(matrix.data.ptr)
    return name.hex()


class Opened:
    """The matrices of another process's, for as long as it keeps them."""

    def __init__(self, shared: SharedMatrices) -> None:
        (M, N), K = (shared.shape.M, shared.shape.N), shared.shape.K
        sizes = ((M, N), (N, K), (M, K))
        self._open: list[int] = []
        A, B, C = (self._matrix(*pair) for pair in zip(shared.handles, sizes, strict=True))
        self.matrices = (A, B, C)

    def _matrix(self, handle: str, size: tuple[int, int]) -> Any:
        place = cupy.cuda.runtime.ipcOpenMemHandle(bytes.fromhex(handle))
        self._open.append(place)
        unowned = cupy.cuda.UnownedMemory(place, size[0] * size[1] * 4, self)
        return cupy.ndarray(size, np.float32, memptr=cupy.cuda.MemoryPointer(unowned, 0))

    def close(self) -> None:
        for place in self._open:
            cupy.cuda.runtime.ipcCloseMemHandle(place)
        self._open.clear()


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
