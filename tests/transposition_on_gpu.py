"""Transposition on a GPU: what problem/gpu.py is for matrix multiplication."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from problem.cases import Case
from problem.grades import Errors
from tests.transposition import TRANSPOSITION


class Drawn:
    """The input of one launch, in the memory of the GPU."""

    def __init__(self, case: Case, seed: int, buffers: Sequence[Any]) -> None:
        self._drawn = TRANSPOSITION.draw(case, seed)
        self._input, self._output = buffers
        self.draw(0)

    def draw(self, place: int) -> None:
        self._input.set(self._drawn[place])

    def changed(self) -> list[int]:
        return [] if np.array_equal(self._input.get(), self._drawn[0]) else [0]

    def worst_error(self, seed: int) -> float:
        return 0.0 if np.array_equal(self._output.get(), self._drawn[0].T) else inf

    def errors(self, seed: int) -> Errors:
        return Errors(*(self.worst_error(seed),) * 3)


def baseline() -> Callable[[Any, Any], None]:
    """Return what transposes with CuPy."""

    def transpose(given: Any, output: Any) -> None:
        output[...] = given.T

    return transpose
