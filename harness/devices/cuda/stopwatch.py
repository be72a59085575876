"""Time a launch in three ways.

The GPU's events are exact, and no kernel can change the host's clock. Cycles of the multiprocessors
do not depend on the clock rate.

Events store their times in memory that kernels can write to. A kernel that knows the address can
change them; tests/devices/cuda/test_stopwatch.py has one that does.
"""

import gc
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.cuda.clocks import Clocks
from harness.protocol.timing import LaunchTime, SustainedLaunches

QUEUED = 4
"""The number of launches that are queued when launches run back to back."""

_LEGACY_STREAM = 0
_EQUAL = int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ)


class Stopwatch:
    """Times launches on the default stream.

    A single launch, both events and both readings of the cycles are queued behind a wait for a word
    in host memory. Then the word is written. So no clock includes the time to queue them, which is
    longer than a small product. The kernel must have been launched before: the first launch loads
    modules, and may wait for the GPU while the GPU waits for the word.
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

    def sustain(
        self, launch: Callable[[], Any], prepare: Callable[[], Any], seconds: float
    ) -> SustainedLaunches:
        """Launch back to back for so many seconds, with a preparation before each launch that its
        time does not include. Some launches are always queued, so that the GPU never waits."""
        queue: deque[tuple[Any, Any]] = deque()
        launches, milliseconds = 0, 0.0
        joules, started = self._clocks.joules(), time.perf_counter()
        while True:
            over = time.perf_counter() - started > seconds
            if not over:
                start, end = cupy.cuda.Event(), cupy.cuda.Event()
                prepare()
                start.record()
                launch()
                end.record()
                queue.append((start, end))
            if len(queue) > QUEUED or (over and queue):
                start, end = queue.popleft()
                end.synchronize()
                milliseconds += cupy.cuda.get_elapsed_time(start, end)
                launches += 1
            elif over:
                break
        elapsed, joules_after = time.perf_counter() - started, self._clocks.joules()
        if joules is None or joules_after is None:
            used = None
        else:  # the preparations have their part of the energy
            used = (joules_after - joules) * milliseconds / 1e3 / elapsed
        return SustainedLaunches(launches=launches, seconds=milliseconds / 1e3, joules=used)


def _done(answer: tuple[driver.CUresult]) -> None:
    (status,) = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise cupy.cuda.driver.CUDADriverError(int(status))


_SOURCE = """
extern "C" __global__ void read_cycles(unsigned long long* of_multiprocessor) {
    unsigned multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    of_multiprocessor[multiprocessor] = clock64();
}
"""


class CycleCounters:
    """The cycle counters of all multiprocessors, read before and after a launch.

    Cycles measure a launch independently of the clock rate. Four blocks are launched for each
    multiprocessor, because the place of a block is not specified. A multiprocessor that is not read
    twice is left out. The kernel that reads the counters runs in the process of the submission,
    which could overwrite it. So cycles can only lower a score: see `ratio` in the stage that
    scores.
    """

    def __init__(self) -> None:
        self._count = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        # Numbers of multiprocessors may have gaps where a part of the GPU is switched off.
        self._before, self._after = cupy.zeros((2, 2 * self._count), np.uint64)
        self._kernel = cupy.RawModule(code=_SOURCE).get_function("read_cycles")
        self.start()  # the first launch loads modules
        self.stop()

    def start(self) -> None:
        """Queue the first reading."""
        self._kernel((4 * self._count,), (1,), (self._before,))

    def stop(self) -> None:
        """Queue the second reading."""
        self._kernel((4 * self._count,), (1,), (self._after,))

    def cycles(self) -> int:
        """Return the median over the multiprocessors of the cycles between the readings, once both
        are over. Forgets both."""
        before, after = self._before.get(), self._after.get()
        self._before.fill(0)
        self._after.fill(0)
        both = (before > 0) & (after > before)
        return int(np.median((after - before)[both])) if both.any() else 0
