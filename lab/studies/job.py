"""The work that a study gives a GPU, and its results: series of times, copies and errors."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, PositiveInt

from harness.protocol.compiler import Kernel
from harness.protocol.report import Value
from problem.cases import Shape


class Timed(Value):
    """One kernel at one size, in blocks of any shape. kernel: by its name; cuBLAS where None."""

    series: str
    kernel: str | None
    block: tuple[PositiveInt, PositiveInt, PositiveInt] = (16, 16, 1)
    tile: tuple[PositiveInt, PositiveInt]
    """Rows and columns of C that one block computes."""
    shape: Shape


class StudyJob(Value):
    """timed: each launched until its median is steady. errors_at: lengths of the sum at which the
    error of every arithmetic is measured. copied: bytes to copy from each kind of host memory."""

    kernels: dict[str, Kernel]
    timed: tuple[Timed, ...]
    errors_at: tuple[PositiveInt, ...]
    errors_of: tuple[str, ...]
    """Kernels beside cuBLAS."""
    copied: tuple[PositiveInt, ...]


class Time(Value):
    series: str
    kernel: str | None
    block: tuple[int, int, int]
    shape: Shape
    ms: NonNegativeFloat
    """The median."""
    low_ms: NonNegativeFloat
    high_ms: NonNegativeFloat
    launches: PositiveInt

    @property
    def gflops(self) -> float:
        return self.shape.flop / self.ms / 1e6


class ErrorAt(Value):
    """The worst 16×16 block of C, by the problem's rule."""

    arithmetic: str
    N: PositiveInt
    error: NonNegativeFloat


class Copies(Value):
    """Host memory of one size, allocated and then copied to the GPU several times."""

    kind: Literal["pageable", "pinned"]
    bytes: PositiveInt
    allocate_ms: NonNegativeFloat
    first_copy_ms: NonNegativeFloat
    copy_ms: NonNegativeFloat
    """The median of those behind the first."""


class StudyResults(Value):
    """Everything that one study measured on one GPU."""

    schema_version: Literal[1] = 1
    gpu: str
    date: str
    times: tuple[Time, ...]
    errors: tuple[ErrorAt, ...]
    copies: tuple[Copies, ...]
