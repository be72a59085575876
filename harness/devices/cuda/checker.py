"""The checker: it draws the inputs of timed launches and checks their results."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import singledispatchmethod
from typing import Any, Literal

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.cuda import judge_kernels, memory
from harness.devices.cuda.errors import CudaError, faults_told
from harness.protocol.report import Value
from harness.protocol.request import Done, Request
from harness.protocol.timing import (
    Checked,
    CheckLaunch,
    DrawInputs,
    Fetched,
    FetchLaunch,
    LayOut,
    MeasuredErrors,
    MeasureErrors,
    SharedMatrices,
)
from problem import gpu
from problem.inputs import Kind, draws


class CudaChecker:
    """A Checker. It loads its kernels at once: a measurement would have to wait for that."""

    def __init__(self) -> None:
        self._table: _Table | None = None
        with suppress(*CudaError):  # the first request meets the same error, and says so
            judge_kernels.load()
            gpu.load()

    def ask(self, request: Request[Any]) -> Value:
        return faults_told(self.answer, request)

    @singledispatchmethod
    def answer(self, request: Request[Any]) -> Value:
        raise TypeError(f"the checker does not answer {type(request).__name__}")

    @answer.register
    def lay_out(self, request: LayOut) -> SharedMatrices:
        self._table = None  # what was there before makes room first
        table = self._table = _Table(request)
        A, B, C = table.guarded.values()
        return SharedMatrices(
            shape=request.shape,
            handles=(A.handle, B.handle, C.handle),
            offsets=(A.layout.before, B.layout.before, C.layout.before),
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
        return self._matrices.errors(request.seed)

    @answer.register
    def fetch_launch(self, request: FetchLaunch) -> Fetched:
        return self._matrices.fetch()

    @property
    def _matrices(self) -> _Table:
        assert self._table is not None, "lay out first"
        return self._table


class _Table:
    """The matrices of one shape, with guards."""

    def __init__(self, request: LayOut) -> None:
        shape = request.shape
        sizes = {"A": (shape.M, shape.N), "B": (shape.N, shape.K), "C": (shape.M, shape.K)}
        self.guarded = {name: memory.Guarded(*size) for name, size in sizes.items()}
        self.A, self.B, self.C = (guarded.matrix for guarded in self.guarded.values())
        l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
        self._flush = cupy.ndarray((2 * l2 // 4,), np.uint32, memptr=memory.allocate(2 * l2))
        self.draw("uniform")

    def draw(self, inputs: str) -> None:
        self._kind = Kind.parse(inputs)
        A, B = self._drawn = draws(self._kind, _random_seed())
        gpu.draw(self.A, A)
        gpu.draw(self.B, B)
        judge_kernels.poison(self.C)
        driver.cuCtxResetPersistingL2Cache()
        judge_kernels.fill(self._flush, np.uint32(0))
        cupy.cuda.runtime.deviceSynchronize()  # another process uses the matrices next

    def check(self) -> Checked:
        changed = self._changed()
        error = gpu.worst_error(self.A, self.B, self.C, self._kind, _random_seed())
        outside = tuple(
            f"{side} {name}"
            for name, guarded in self.guarded.items()
            for side, words in guarded.guards.items()
            if judge_kernels.overwritten(words)
        )
        return Checked(error=error, changed_inputs=changed, wrote_outside=outside)

    def errors(self, seed: int) -> MeasuredErrors:
        block, by_rows, by_components = gpu.block_errors(self.A, self.B, self.C, seed)
        return MeasuredErrors(block=block, by_rows=by_rows, by_components=by_components)

    def fetch(self) -> Fetched:
        A, B = self._drawn
        return Fetched(seed_of_A=A.seed, seed_of_B=B.seed, C=self.C.get())

    def _changed(self) -> tuple[Literal["A", "B"], ...]:
        """Return which inputs the launch has changed, and draw these again for the check."""
        found: list[Literal["A", "B"]] = []
        for name, matrix, how in zip(("A", "B"), (self.A, self.B), self._drawn, strict=True):
            if gpu.changed(matrix, how):
                found.append(name)  # type: ignore[arg-type]  # zip forgets the literals
                gpu.draw(matrix, how)
        return tuple(found)


def _random_seed() -> int:
    """Draw a seed from the operating system: no launch can predict inputs or checks."""
    return int.from_bytes(os.urandom(8), "little")
