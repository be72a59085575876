"""The judge's own kernels, callable; CuPy compiles them once a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from harness.devices.guards import CANARY

_BLOCK = 256
_GRID = 132 * 16


@cache
def _module() -> Any:
    source = Path(__file__).with_name("judge_kernels.cu").read_text(encoding="utf-8")
    return cupy.RawModule(code=source, options=("--std=c++17",))


def load() -> None:
    """Compile the kernels and load them into the context, which is created if there is none."""
    _module().get_function("fill")


def overwritten(guard: Any) -> bool:
    """Return whether a word of a guard was overwritten, and restore the guard."""
    count = cupy.zeros((1,), np.uint64)
    arguments = (guard, np.uint64(guard.size), np.uint32(CANARY), count)
    _module().get_function("restore")((_GRID,), (_BLOCK,), arguments)
    return bool(count.get()[0])


def fill(matrix: Any, bits: np.uint32) -> None:
    """Set every 32-bit word."""
    arguments = (matrix, np.uint64(matrix.size), np.uint32(bits))
    _module().get_function("fill")((_GRID,), (_BLOCK,), arguments)
