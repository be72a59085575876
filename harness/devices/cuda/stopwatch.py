"""One launch by two clocks: the GPU's events, which are exact, and the host's, which no kernel
reaches.

Events keep their times in memory that is mapped where kernels write. A kernel that knows the place
can change them; tests/devices/cuda/test_stopwatch.py has one that does.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.cuda.clocks import Clocks
from harness.protocol.timing import LaunchTime

_LEGACY_STREAM = 0
_EQUAL = int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ)


class Stopwatch:
    """Times launches on the default stream, each alone on the GPU.

    The launch and both events are queued behind a wait for a word in host memory, which is then
    written: so neither clock has the host's time to queue them in it, which is longer than a small
    product. Whatever is launched must have been launched before: what a first launch loads may
    wait for the GPU, which would wait for us.
    """

    def __init__(self) -> None:
        self._clocks = Clocks()
        self._memory = cupy.cuda.alloc_pinned_memory(8)
        self._words = np.frombuffer(self._memory, np.uint32, 2)

    def time(self, launch: Callable[[], Any]) -> LaunchTime:
        """One launch. Raises the errors in harness.devices.cuda.errors."""
        begin, over = np.frombuffer(os.urandom(8), np.uint32) | np.uint32(1)
        self._words[:] = 0
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        _done(driver.cuCtxResetPersistingL2Cache())
        cupy.cuda.runtime.deviceSynchronize()
        place = self._memory.ptr
        gc.disable()  # what it frees on the GPU would wait for the launch, and the launch for us
        _done(driver.cuStreamWaitValue32(_LEGACY_STREAM, place, int(begin), _EQUAL))
        try:
            start.record()
            launch()
            end.record()
        finally:
            started = time.perf_counter()
            self._words[0] = begin
            gc.enable()
        reading = self._clocks.read()  # while the launch runs
        end.synchronize()
        # What says that an event is over lies where kernels write, too. This word comes through the
        # same queue, behind the launch, and nobody knows its value before.
        _done(driver.cuStreamWriteValue32(_LEGACY_STREAM, place + 4, int(over), 0))
        while self._words[1] != over:
            pass
        return LaunchTime(
            ms=cupy.cuda.get_elapsed_time(start, end),
            host_ms=(time.perf_counter() - started) * 1e3,
            clock_mhz=reading.clock_mhz,
            power_w=reading.power_w,
            throttled=reading.reasons,
        )


def _done(answer: tuple[driver.CUresult]) -> None:
    (status,) = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise cupy.cuda.driver.CUDADriverError(int(status))
