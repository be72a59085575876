"""GPU memory: cudaMalloc itself, with guards around a matrix or shared with another process."""

from collections.abc import Iterable
from typing import Any

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.guards import CANARY, Layout
from harness.protocol.timing import SharedBuffers
from problem.signature import Buffer

_OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation."""


def allocate(size: int) -> Any:
    """Allocate device memory without CuPy's pool: whole pieces, which are freed at once.

    Raises MemoryError if too little memory is free. The kernel cannot cause this: its variables
    were allocated when it was loaded.
    """
    try:
        return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status == _OUT_OF_MEMORY:
            raise MemoryError(
                f"the GPU has no {(size >> 20) + 1} MiB left; end other programs that use it"
            ) from None
        raise


def matrix(rows: int, columns: int) -> Any:
    """Allocate an uninitialised float32 matrix."""
    return cupy.ndarray((rows, columns), np.float32, memptr=allocate(rows * columns * 4))


def matrices(buffers: Iterable[Buffer]) -> list[Any]:
    """Allocate an uninitialised matrix for each buffer."""
    return [matrix(buffer.rows, buffer.columns) for buffer in buffers]


class Room:
    """Memory that is reused for one matrix after another of the same size. Allocating and freeing
    would wait for every context that is created on this machine."""

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

    def __init__(self, shared: SharedBuffers) -> None:
        self._open: list[int] = []
        places = zip(shared.handles, shared.offsets, shared.arguments.buffers, strict=True)
        self.matrices = [self._matrix(*place) for place in places]

    def _matrix(self, handle: str, offset: int, buffer: Buffer) -> Any:
        place = cupy.cuda.runtime.ipcOpenMemHandle(bytes.fromhex(handle))
        self._open.append(place)
        size = (buffer.rows, buffer.columns)
        unowned = cupy.cuda.UnownedMemory(place + offset, size[0] * size[1] * 4, self)
        return cupy.ndarray(size, np.float32, memptr=cupy.cuda.MemoryPointer(unowned, 0))

    def close(self) -> None:
        for place in self._open:
            cupy.cuda.runtime.ipcCloseMemHandle(place)
        self._open.clear()


class Guarded:
    """A float32 matrix with canaries before and after it, up to the end of its memory.

    The driver sets and reads the canaries, not a kernel: this may be the submission's process.
    """

    def __init__(
        self, buffer: Buffer, layout: Layout | None = None, room: Room | None = None
    ) -> None:
        """layout: one that was drawn before. room: the memory to use."""
        rows, columns = buffer.rows, buffer.columns
        self.name = buffer.name
        self.layout = layout = layout or Layout.draw(rows, columns)
        self._memory = (room or Room()).of(layout.total)
        place = self._memory + layout.before
        self.matrix = cupy.ndarray((rows, columns), np.float32, memptr=place)
        self._guards = {
            "before": _words(self._memory, layout.before),
            "after": _words(place + layout.size, layout.behind),
        }
        for guard in self._guards.values():
            set_words(guard, CANARY)

    def overwritten(self) -> list[str]:
        """Return the sides on which a canary was overwritten, such as "after C", and restore
        these canaries."""
        found = []
        for side, guard in self._guards.items():
            if (guard.get() != CANARY).any():
                set_words(guard, CANARY)
                found.append(f"{side} {self.name}")
        return found

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
