"""The cycle counters of the multiprocessors, which tell how long a launch takes at any clock.

They are read by a kernel of the judge in the process of the submission, which could overwrite it.
So they are never a proof for a kernel, only against it: see `ratio` in the stage that scores.
"""

from __future__ import annotations

import cupy
import numpy as np

_SOURCE = """
extern "C" __global__ void read_cycles(unsigned long long* of_multiprocessor) {
    unsigned multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    of_multiprocessor[multiprocessor] = clock64();
}
"""


class CycleCounters:
    """The cycle counters of all multiprocessors, read before and after a launch.

    Cycles tell how long a launch takes whatever the clock is. Four blocks are launched for each
    multiprocessor, because nothing says where a block runs; one not read twice is left out.
    """

    def __init__(self) -> None:
        self._count = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        # Numbers of multiprocessors may have gaps where a part of the GPU is switched off.
        self._before, self._after = cupy.zeros((2, 2 * self._count), np.uint64)
        self._kernel = cupy.RawModule(code=_SOURCE).get_function("read_cycles")
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
