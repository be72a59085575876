"""The judge's own kernels, callable; CuPy compiles them once a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from harness.devices.guards import CANARY, POISON

_BLOCK = 256
_GRID = 132 * 16


@cache
def _module() -> Any:
    source = Path(__file__).with_name("judge_kernels.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("--std=c++17",))


def load() -> None:
    """Compile the kernels and load them into the context, which is created if there is none."""
    _module().get_function("fill")


def overwritten(guard: Any) -> bool:
    """Return whether a word of a guard was overwritten, and restore the guard."""
    count = cupy.zeros((1,), np.uint64)
    arguments = (guard, np.uint64(guard.size), np.uint32(CANARY), count)
    _module().get_function("restore")((_GRID,), (_BLOCK,), arguments)
    return bool(count.get()[0])


def poison(matrix: Any) -> None:
    """Make every element of a float32 matrix the poison."""
    fill(matrix, POISON)


class CycleCounters:
    """The cycle counters of all multiprocessors, read before and after a launch.

    Cycles tell how long a launch takes whatever the clock is. Four blocks are launched for each
    multiprocessor, because nothing says where a block runs; one not read twice is left out.
    """

    def __init__(self) -> None:
        self._count = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        # Numbers of multiprocessors may have gaps where a part of the GPU is switched off.
        self._before, self._after = cupy.zeros((2, 2 * self._count), np.uint64)
        self._kernel = _module().get_function("read_cycles")
        self.start()  # a first launch loads things
        self.stop()

    def start(self) -> None:
        """Queue the first reading."""
        self._kernel((4 * self._count,), (1,), (self._before,))

    def stop(self) -> None:
        """Queue the second reading."""
        self._kernel((4 * self._count,), (1,), (self._after,))

    def cycles(self) -> int:
        """The median over the multiprocessors of the cycles between the readings, once both are
        over. Forgets both."""
        before, after = self._before.get(), self._after.get()
        self._before.fill(0)
        self._after.fill(0)
        both = (before > 0) & (after > before)
        return int(np.median((after - before)[both])) if both.any() else 0


def fill(matrix: Any, bits: np.uint32) -> None:
    """Set every 32-bit word."""
    arguments = (matrix, np.uint64(matrix.size), np.uint32(bits))
    _module().get_function("fill")((_GRID,), (_BLOCK,), arguments)
