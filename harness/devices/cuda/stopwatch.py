"""Time a launch by the GPU's events, which are exact, by the host's clock, which no kernel can
change, and in cycles of the multiprocessors, in which a lowered clock does not show.

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
from harness.devices.cuda.judge_kernels import CycleCounters
from harness.protocol.timing import LaunchTime, SustainedLaunches

SECONDS_OF_A_GROUP = 0.05

_LEGACY_STREAM = 0
_EQUAL = int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ)


class Stopwatch:
    """Times launches on the default stream.

    A single launch, both events and both readings of the cycles are queued behind a wait for a word
    in host memory, which is then written. So no clock includes the time to queue them, which is
    longer than a small product. The kernel must have been launched before: a first launch loads
    things, and may wait for the GPU while the GPU waits for the word.
    """

    def __init__(self) -> None:
        self._clocks = Clocks()
        self._cycles = CycleCounters()
        self._memory = cupy.cuda.alloc_pinned_memory(8)
        self._words = np.frombuffer(self._memory, np.uint32, 2)
        self._cycles_of_nothing = 0
        self._cycles_of_nothing = min(self.time(lambda: None).cycles for _ in range(5))

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
            self._cycles.start()
            start.record()
            launch()
            end.record()
            self._cycles.stop()
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
        host_ms = (time.perf_counter() - started) * 1e3
        return LaunchTime(
            ms=cupy.cuda.get_elapsed_time(start, end),
            host_ms=host_ms,
            cycles=max(0, self._cycles.cycles() - self._cycles_of_nothing),
            clock_mhz=reading.clock_mhz,
            power_w=reading.power_w,
            throttled=reading.reasons,
        )

    def sustain(self, launch: Callable[[], Any], seconds: float) -> SustainedLaunches:
        """Launch back to back for so many seconds. Two groups of launches are queued at any time,
        so that the GPU never waits for the host."""
        group = max(1, int(SECONDS_OF_A_GROUP / max(self.time(launch).ms / 1e3, 1e-6)))
        ends: list[Any] = []
        started, joules = time.perf_counter(), self._clocks.joules()
        while time.perf_counter() - started < seconds:
            for _ in range(group):
                launch()
            ends.append(cupy.cuda.Event())
            ends[-1].record()
            if len(ends) > 1:
                ends[-2].synchronize()
        cupy.cuda.runtime.deviceSynchronize()
        elapsed, joules_after = time.perf_counter() - started, self._clocks.joules()
        used = None if joules is None or joules_after is None else joules_after - joules
        return SustainedLaunches(launches=group * len(ends), seconds=elapsed, joules=used)


def _done(answer: tuple[driver.CUresult]) -> None:
    (status,) = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise cupy.cuda.driver.CUDADriverError(int(status))
