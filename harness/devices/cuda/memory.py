"""GPU memory: cudaMalloc itself, with guards around a matrix or shared with another process."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.guards import CANARY, POISON, Layout
from harness.protocol.timing import SharedMatrices
from problem.cases import Matrix

_OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation."""


def allocate(size: int) -> Any:
    """Allocate device memory without CuPy's pool: whole pieces, which are freed at once.

    Raises MemoryError if there is none. The kernel cannot cause this: its variables were allocated
    when it was loaded.
    """
    try:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status == _OUT_OF_MEMORY:
            raise MemoryError(
                f"the GPU has no {(size >> 20) + 1} MiB left; end what else uses it"
            ) from None
        raise


def matrix(rows: int, columns: int) -> Any:
    """Allocate an uninitialised float32 matrix."""
    return cupy.ndarray((rows, columns), np.float32, memptr=allocate(rows * columns * 4))


class Room:
    """Memory for one matrix after another, which is kept while they need as much: allocating and
    freeing wait for every context that is created on this machine."""

    def __init__(self) -> None:
        self._memory: Any = None

    def of(self, size: int) -> Any:
        """Return memory of exactly this size; the memory returned before becomes invalid."""
        if self._memory is None or self._memory.mem.size != size:
            self._memory = None  # frees it first
            self._memory = allocate(size)
        return self._memory


class Opened:
    """The matrices of another process, as long as that process keeps them."""

    def __init__(self, shared: SharedMatrices) -> None:
        (M, N), K = (shared.shape.M, shared.shape.N), shared.shape.K
        sizes = ((M, N), (N, K), (M, K))
        self._open: list[int] = []
        places = zip(shared.handles, shared.offsets, sizes, strict=True)
        A, B, C = (self._matrix(*place) for place in places)
        self.matrices = (A, B, C)

    def _matrix(self, handle: str, offset: int, size: tuple[int, int]) -> Any:
        place = cupy.cuda.runtime.ipcOpenMemHandle(bytes.fromhex(handle))
        self._open.append(place)
        unowned = cupy.cuda.UnownedMemory(place + offset, size[0] * size[1] * 4, self)
        return cupy.ndarray(size, np.float32, memptr=cupy.cuda.MemoryPointer(unowned, 0))

    def close(self) -> None:
        for place in self._open:
            cupy.cuda.runtime.ipcCloseMemHandle(place)
        self._open.clear()


class Guarded:
    """A float32 matrix with canaries before and behind it, up to the end of its memory.

    The driver sets and reads the canaries, not a kernel: this may be the submission's process.
    """

    def __init__(
        self, rows: int, columns: int, layout: Layout | None = None, room: Room | None = None
    ) -> None:
        """layout: one that was drawn before. room: the memory to use."""
        self.layout = layout = layout or Layout.draw(rows, columns)
        self._memory = (room or Room()).of(layout.total)
        place = self._memory + layout.before
        self.matrix = cupy.ndarray((rows, columns), np.float32, memptr=place)
        self._guards = {
            "before": _words(self._memory, layout.before),
            "behind": _words(place + layout.size, layout.behind),
        }
        for guard in self._guards.values():
            set_words(guard, CANARY)

    @classmethod
    def holding(cls, values: Matrix, layout: Layout, room: Room) -> Guarded:
        guarded = cls(values.shape[0], values.shape[1], layout, room)
        guarded.matrix.set(values)
        return guarded

    @classmethod
    def poisoned(cls, rows: int, columns: int, layout: Layout, room: Room) -> Guarded:
        guarded = cls(rows, columns, layout, room)
        set_words(guarded.matrix, POISON)
        return guarded

    def overwritten(self) -> list[str]:
        """Return the sides on which a canary was overwritten: "before", "behind"."""
        return [side for side, guard in self._guards.items() if (guard.get() != CANARY).any()]

    @property
    def guards(self) -> dict[str, Any]:
        """Return the words of each side."""
        return self._guards

    @property
    def handle(self) -> str:
        """Return the handle with which another process opens the memory."""
        name: bytes = cupy.cuda.runtime.ipcGetMemHandle(self._memory.ptr)
        return name.hex()


def _words(place: Any, size: int) -> Any:
    return cupy.ndarray((size // 4,), np.uint32, memptr=place)


def set_words(array: Any, bits: np.uint32) -> None:
    """Set every 32-bit word with the driver."""
    (status,) = driver.cuMemsetD32(array.data.ptr, int(bits), array.size)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise cupy.cuda.driver.CUDADriverError(int(status))
