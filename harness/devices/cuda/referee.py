"""The referee: inputs of timed launches, and their checks, where no submission's kernel comes."""

from __future__ import annotations

import os
from typing import Literal

import cupy
import numpy as np
from cuda.bindings import driver

from harness.devices.cuda import helpers, memory
from harness.devices.cuda.errors import CudaError, fault
from harness.devices.device import (
    Checked,
    CheckLaunch,
    Done,
    DrawInputs,
    Fault,
    FetchLaunch,
    LayOut,
    SharedMatrices,
)
from problem.cases import Matrix


class CudaReferee:
    """A Referee. Nothing touches the GPU before the first request."""

    def __init__(self) -> None:
        self._table: _Table | None = None

    def lay_out(self, request: LayOut) -> SharedMatrices | Fault:
        try:
            self._table = None  # what was there before makes room first
            table = self._table = _Table(request)
            A, B, C = (memory.handle(matrix) for matrix in (table.A, table.B, table.C))
        except CudaError as error:
            return fault(error)
        return SharedMatrices(shape=request.shape, handles=(A, B, C))

    def draw_inputs(self, request: DrawInputs) -> Done | Fault:
        assert self._table is not None
        try:
            self._table.draw(request.surprise)
        except CudaError as error:
            return fault(error)
        return Done()

    def check_launch(self, request: CheckLaunch) -> Checked | Fault:
        assert self._table is not None
        try:
            return self._table.check()
        except CudaError as error:
            return fault(error)

    def fetch_launch(self, request: FetchLaunch) -> tuple[Matrix, Matrix, Matrix] | Fault:
        assert self._table is not None
        try:
            return self._table.fetch()
        except CudaError as error:
            return fault(error)


class _Table:
    """The matrices of one shape."""

    def __init__(self, request: LayOut) -> None:
        shape = request.shape
        self.A = memory.shared_matrix(shape.M, shape.N)
        self.B = memory.shared_matrix(shape.N, shape.K)
        self.C = memory.shared_matrix(shape.M, shape.K)
        l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
        self._flush = cupy.ndarray((2 * l2 // 4,), np.uint32, memptr=memory.allocate(2 * l2))
        self.draw(surprise=False)

    def draw(self, surprise: bool) -> None:
        A, B = self._drawn = _random_draws(surprise)
        helpers.draw(self.A, A)
        helpers.draw(self.B, B)
        helpers.poison(self.C)
        driver.cuCtxResetPersistingL2Cache()
        helpers.fill(self._flush, np.uint32(0))
        cupy.cuda.runtime.deviceSynchronize()  # another process goes on from here

    def check(self) -> Checked:
        changed = self._changed()
        error = helpers.worst_error(self.A, self.B, self.C, _random_seed())
        return Checked(error=error, changed_inputs=changed)

    def fetch(self) -> tuple[Matrix, Matrix, Matrix]:
        """A and B are drawn again on the host: whatever became of them on the GPU, this is what
        was asked."""
        (M, N), K = self.A.shape, self.B.shape[1]
        A, B = self._drawn
        return (
            helpers.draw_on_host(M, N, A.seed),
            helpers.draw_on_host(N, K, B.seed),
            self.C.get(),
        )

    def _changed(self) -> tuple[Literal["A", "B"], ...]:
        """Which inputs the launch wrote to; they are drawn again, for the check must not believe
        them."""
        found: list[Literal["A", "B"]] = []
        for name, matrix, how in zip(("A", "B"), (self.A, self.B), self._drawn, strict=True):
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
