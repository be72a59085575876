"""Timed rounds: the kernel beside the baseline, each launch alone on inputs never seen before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.cuda import helpers, memory
from harness.devices.cuda.baseline import Sgemm
from harness.devices.cuda.clocks import Clocks, Reading
from harness.devices.device import Prepared, RoundTime
from problem.cases import Matrix, Shape

WARM_UP_SECONDS = 0.5
"""Shortest warm-up. A GPU raises its clock within some tens of milliseconds of work."""

HOLD_SECONDS = 0.5e-3
"""How long the GPU waits before each timed launch, so that the launch and both events are queued
when it gets to them. Else the time between the events would have the host's in it, which takes some
0.04 ms to call cuBLAS: longer than a small product."""

STEADY_READINGS = 5
"""The clock is steady when so many readings in a row agree."""

STEADY_MHZ = 15
"""One step of the clock."""


@dataclass(frozen=True, slots=True)
class _Timed:
    ms: float
    host_ms: float
    reading: Reading
    check: float
    changed: tuple[Literal["A", "B"], ...]


class Rounds:
    """Matrices of one shape in device memory, and the two that multiply them."""

    def __init__(self, kernel: Callable[[Any, Any, Any], None], shape: Shape) -> None:
        """kernel: launches once, on A, B and C."""
        self._A = memory.matrix(shape.M, shape.N)
        self._B = memory.matrix(shape.N, shape.K)
        self._C = memory.matrix(shape.M, shape.K)
        self._baseline_C = memory.matrix(shape.M, shape.K)
        l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
        self._flush = cupy.ndarray((2 * l2 // 4,), np.uint32, memptr=memory.allocate(2 * l2))
        self._clocks = Clocks()
        self._sgemm = Sgemm()
        self._kernel = kernel
        self._drawn = _random_draws(surprise=False)

    def warm_up(self, seconds: float) -> Prepared:
        """Launch both in turn until the clock is steady, at most this long."""
        started = time.monotonic()
        launches = 0
        readings: list[int] = []
        while True:
            self._time(self._run_baseline, self._baseline_C)
            timed = self._time(self._run_kernel, self._C)
            launches += 2
            readings = [*readings[-STEADY_READINGS + 1 :], timed.reading.clock_mhz]
            elapsed = time.monotonic() - started
            steady = (
                len(readings) == STEADY_READINGS and max(readings) - min(readings) <= STEADY_MHZ
            )
            if (steady and elapsed >= WARM_UP_SECONDS) or elapsed >= seconds:
                return Prepared(
                    launches=launches, seconds=elapsed, clock_mhz=timed.reading.clock_mhz
                )

    def time(self, kernel_first: bool, surprise: bool = False) -> RoundTime:
        """One launch of each, in this order.

        surprise: on inputs of other magnitudes than usual, timed by the host's clock as well.
        """
        if kernel_first:
            kernel = self._time(self._run_kernel, self._C, surprise)
            baseline = self._time(self._run_baseline, self._baseline_C)
        else:
            baseline = self._time(self._run_baseline, self._baseline_C)
            kernel = self._time(self._run_kernel, self._C, surprise)
        return RoundTime(
            kernel_ms=kernel.ms,
            baseline_ms=baseline.ms,
            clock_mhz=min(kernel.reading.clock_mhz, baseline.reading.clock_mhz),
            power_w=kernel.reading.power_w,
            throttled=tuple(sorted({*kernel.reading.reasons, *baseline.reading.reasons})),
            check=kernel.check,
            baseline_check=baseline.check,
            changed_inputs=kernel.changed,
            kernel_host_ms=kernel.host_ms,
        )

    def fetch(self) -> tuple[Matrix, Matrix, Matrix]:
        """A, B and the kernel's C of the round just timed, if the kernel's launch was its last:
        every launch draws new inputs. A and B are drawn again on the host: whatever became of
        them on the GPU, this is what was asked."""
        (M, N), K = self._A.shape, self._B.shape[1]
        A, B = self._drawn
        return (
            helpers.draw_on_host(M, N, A.seed),
            helpers.draw_on_host(N, K, B.seed),
            self._C.get(),
        )

    def _run_kernel(self) -> None:
        self._kernel(self._A, self._B, self._C)

    def _run_baseline(self) -> None:
        self._sgemm(self._A, self._B, self._baseline_C)

    def _time(self, run: Callable[[], None], C: Any, surprise: bool = False) -> _Timed:
        """Draw inputs, poison both results, empty the L2 cache, launch, check."""
        A, B = self._drawn = _random_draws(surprise)
        helpers.draw(self._A, A)
        helpers.draw(self._B, B)
        helpers.poison(self._C)
        helpers.poison(self._baseline_C)
        driver.cuCtxResetPersistingL2Cache()
        helpers.fill(self._flush, np.uint32(0))
        helpers.hold(HOLD_SECONDS)
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        if surprise:  # nothing else may lie between the two readings of the host's clock
            cupy.cuda.runtime.deviceSynchronize()
        started = time.perf_counter()
        start.record()
        run()
        end.record()
        if surprise:
            end.synchronize()
        host_ms = (time.perf_counter() - started) * 1e3
        reading = self._clocks.read()  # while the launch runs
        end.synchronize()
        changed = self._changed()
        check = helpers.worst_error(self._A, self._B, C, _random_seed())
        ms = cupy.cuda.get_elapsed_time(start, end)
        return _Timed(ms, host_ms if surprise else 0.0, reading, check, changed)

    def _changed(self) -> tuple[Literal["A", "B"], ...]:
        """Which inputs the launch wrote to; they are drawn again, for the check must not believe
        them."""
        found: list[Literal["A", "B"]] = []
        for name, matrix, how in zip(("A", "B"), (self._A, self._B), self._drawn, strict=True):
            if helpers.changed(matrix, how):
                found.append(name)  # type: ignore[arg-type]  # zip forgets the literals
                helpers.draw(matrix, how)
        return tuple(found)


def _random_draws(surprise: bool) -> tuple[helpers.Draw, helpers.Draw]:
    if surprise:
        return (
            helpers.Draw(_random_seed(), helpers.Scaling.ROW_GROUPS),
            helpers.Draw(_random_seed(), helpers.Scaling.COLUMN_GROUPS),
        )
    return helpers.Draw(_random_seed()), helpers.Draw(_random_seed())


def _random_seed() -> int:
    """From the operating system: no launch can know the inputs of the next, or its check."""
    return int.from_bytes(os.urandom(8), "little")
