"""The checker: it draws the inputs of timed launches and checks their results."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import singledispatchmethod
from importlib import import_module
from typing import Any

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.cuda import memory
from harness.devices.cuda.description import description
from harness.devices.cuda.errors import answer_or_fault
from harness.devices.guards import POISON
from harness.protocol.device import Describe
from harness.protocol.report import DeviceInfo, Value
from harness.protocol.request import Done, Request
from harness.protocol.timing import (
    Checked,
    CheckLaunch,
    DrawInputs,
    Fetched,
    FetchLaunch,
    MeasuredErrors,
    MeasureErrors,
    ShareBuffers,
    SharedBuffers,
)
from problem.cases import Case
from problem.grades import Errors


class CudaChecker:
    """The checker. It loads its kernels when it describes the GPU: a measurement would have to wait
    for that."""

    def __init__(self) -> None:
        self._table: _Table | None = None

    def ask(self, request: Request[Any]) -> Value:
        return answer_or_fault(self.answer, request)

    @singledispatchmethod
    def answer(self, request: Request[Any]) -> Value:
        raise TypeError(f"the checker does not answer {type(request).__name__}")

    @answer.register
    def describe(self, request: Describe) -> DeviceInfo:
        if request.on_gpu is not None:
            import_module(request.on_gpu).load()
        return description(request.on_gpu)

    @answer.register
    def share_buffers(self, request: ShareBuffers) -> SharedBuffers:
        self._table = None  # free the previous buffers first
        table = self._table = _Table(request)
        return SharedBuffers(
            arguments=request.arguments,
            handles=tuple(each.handle for each in table.guarded),
            offsets=tuple(each.layout.before for each in table.guarded),
        )

    @answer.register
    def draw_inputs(self, request: DrawInputs) -> Done:
        self._matrices.draw(request.inputs)
        return Done()

    @answer.register
    def check_launch(self, request: CheckLaunch) -> Checked:
        return self._matrices.check()

    @answer.register
    def measure_errors(self, request: MeasureErrors) -> MeasuredErrors:
        return MeasuredErrors(errors=self._matrices.errors(request.seed))

    @answer.register
    def fetch_launch(self, request: FetchLaunch) -> Fetched:
        return self._matrices.fetch()

    @property
    def _matrices(self) -> _Table:
        assert self._table is not None, "lay out first"
        return self._table


class _Table:
    """The buffers of one launch, with guards."""

    def __init__(self, request: ShareBuffers) -> None:
        self._arguments = request.arguments
        self._draw: Callable[..., Any] = import_module(request.on_gpu).Drawn
        self.guarded = [memory.Guarded(buffer) for buffer in request.arguments.buffers]
        self._buffers = [guarded.matrix for guarded in self.guarded]
        l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
        self._flush = cupy.ndarray((2 * l2 // 4,), np.uint32, memptr=memory.allocate(2 * l2))
        self.draw("uniform")

    def draw(self, inputs: str) -> None:
        self._seed = _random_seed()
        case = Case(self._arguments.shape, inputs)
        self._drawn = self._draw(case, self._seed, self._buffers)
        memory.set_words(self._buffers[-1], POISON)
        driver.cuCtxResetPersistingL2Cache()
        memory.set_words(self._flush, np.uint32(0))
        cupy.cuda.runtime.deviceSynchronize()  # another process uses the buffers next

    def check(self) -> Checked:
        changed = self._drawn.changed()
        for place in changed:  # drawn again for the check
            self._drawn.draw(place)
        error = self._drawn.worst_error(_random_seed())
        return Checked(
            error=error,
            changed_inputs=tuple(self._arguments.inputs[place].name for place in changed),
            wrote_outside=tuple(place for each in self.guarded for place in each.overwritten()),
        )

    def errors(self, seed: int) -> Errors:
        found: Errors = self._drawn.errors(seed)
        return found

    def fetch(self) -> Fetched:
        return Fetched(seed=self._seed, output=self._buffers[-1].get())


def _random_seed() -> int:
    """Draw a seed from the operating system: no launch can predict inputs or checks."""
    return int.from_bytes(os.urandom(8), "little")
