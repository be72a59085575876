"""Time a launch by two clocks: the GPU's events, which are exact, and the host's clock, which no
kernel can change.

Events store their times in memory that kernels can write to. A kernel that knows the address can
change them; tests/devices/cuda/test_stopwatch.py has one that does.
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
    """Times single launches on the default stream.

    The launch and both events are queued behind a wait for a word in host memory, which is then
    written. So neither clock includes the time to queue them, which is longer than a small product.
    The kernel must have been launched before: a first launch loads things, and may wait for the GPU
    while the GPU waits for the word.
    """

    def __init__(self) -> None:
        self._clocks = Clocks()
        self._memory = cupy.cuda.alloc_pinned_memory(8)
        self._words = np.frombuffer(self._memory, np.uint32, 2)

    def time(self, launch: Callable[[], Any]) -> LaunchTime:
        """Time one launch. Raises the errors in harness.devices.cuda.errors."""
        begin, over = np.frombuffer(os.urandom(8), np.uint32) | np.uint32(1)
        self._words[:] = 0
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        _done(driver.cuCtxResetPersistingL2Cache())
        cupy.cuda.runtime.deviceSynchronize()
        place = self._memory.ptr
        gc.disable()  # freeing GPU memory would wait for the launch, which waits for the word
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
        # A kernel could also fake the end of an event. This word is written behind the launch in
        # the same queue, and its value is secret.
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
