"""Tests of the error bounds of the fastest solutions, on inputs made to break them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.compiling.compiler import translate_source
from harness.devices.cpu.device import CpuDevice
from harness.protocol import files
from harness.protocol.compiler import PtxProgram, Translate
from harness.protocol.device import Finished, Ready, Run
from problem.accuracy import UNIT_ROUNDOFF
from problem.cases import Matrix, Shape
from problem.reference import Float64
from tests.requests import inputs_of

SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"
ACCURATE, FASTEST = "34_wgmma_fp16_scaled", "36_wgmma_one_accumulator"

SHAPE = Shape(48, 2048, 48)
"""A shape small enough for the CPU device and large enough for both solutions' tensor cores."""
SEGMENT = 1024
"""The number of neighbours along N that share a scale in 34."""
PROMOTED = 512
"""The number of products along N that share an accumulator of the tensor cores in 34."""

Pair = tuple[Matrix, Matrix]


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return CpuDevice(files.cache_directory())


@functools.cache
def translated(kernel: str) -> PtxProgram:
    program = translate_source(Translate(source=(SOLUTIONS / f"{kernel}.cu").read_text()))
    assert isinstance(program, PtxProgram), program
    return program


def load(device: CpuDevice, kernel: str) -> None:
    program = translated(kernel)
    ready = device.load_ptx(program.ptx, program.entry, program.launch, (16, 16, 1))
    assert isinstance(ready, Ready), ready


def multiply(device: CpuDevice, A: Matrix, B: Matrix) -> Float64:
    shape = Shape(A.shape[0], A.shape[1], B.shape[1])
    done = device.run(Run(inputs=inputs_of(shape, A, B), seconds=100))
    assert isinstance(done, Finished), done
    return np.asarray(done.output, np.float64)


def largest_of_segments(X: Float64) -> Float64:
    """Return, for each element, the largest absolute value of those that share its scale."""
    rows, inner = X.shape
    largest = np.abs(X).reshape(rows, -1, SEGMENT).max(axis=2)
    return np.repeat(largest, SEGMENT, axis=1).reshape(rows, inner)


def bound(A: Matrix, B: Matrix) -> Float64:
    """Return the bound in the first comment of 34, for every element of C."""
    a, b = np.abs(A.astype(np.float64)), np.abs(B.astype(np.float64))
    n = A.shape[1]
    sums = (2 * min(n, PROMOTED) + n / PROMOTED + 13) * UNIT_ROUNDOFF * (a @ b)
    far_below_the_largest = 2.0**-36 * (largest_of_segments(a) @ b + a @ largest_of_segments(b.T).T)
    return np.asarray(sums + far_below_the_largest)


def random(seed: int = 31) -> tuple[Float64, Float64, np.random.Generator]:
    generator = np.random.default_rng(seed)
    A = generator.uniform(-1, 1, (SHAPE.M, SHAPE.N))
    B = generator.uniform(-1, 1, (SHAPE.N, SHAPE.K))
    return A, B, generator


def uniform() -> tuple[Float64, Float64]:
    A, B, _ = random()
    return A, B


def positive() -> tuple[Float64, Float64]:
    """Return positive elements, so that all additions are truncated in the same direction."""
    A, B, _ = random()
    return abs(A), abs(B)


def constants_between_two_halves() -> tuple[Float64, Float64]:
    """Return equal elements, which both FP16 parts round by nearly half of their last place."""
    value = 1 + 2.0**-11 + 2.0**-22 + 2.0**-23
    return np.full((SHAPE.M, SHAPE.N), value), np.full((SHAPE.N, SHAPE.K), value)


def small_ones_after_a_large_one() -> tuple[Float64, Float64]:
    """Return one large product for every accumulator, which truncates all later ones."""
    A, B, _ = random()
    A, B = np.abs(A) * 2.0**-13 + 2.0**-13, np.abs(B) * 2.0**-13 + 2.0**-13
    A[:, ::PROMOTED] = 1
    B[::PROMOTED] = 1
    return A, B


def sums_that_cancel() -> tuple[Float64, Float64]:
    """Return neighbours whose products nearly cancel."""
    A, B, _ = random()
    A[:, 1::2] = -A[:, ::2] * (1 + 2.0**-20)
    B[1::2] = B[::2]
    return A, B


def elements_of_all_sizes() -> tuple[Float64, Float64]:
    """Return elements so far below the largest of their scale that FP16 cannot hold them."""
    A, B, generator = random()
    return A * 2.0 ** generator.integers(-45, 1, A.shape), B * 2.0 ** generator.integers(
        -45, 1, B.shape
    )


def large_ones_that_meet_zeros() -> tuple[Float64, Float64]:
    """Return inputs whose largest elements are multiplied by zeros, so that small ones count."""
    A, B, _ = random()
    A[:, ::2] *= 2.0**-24
    B[1::2] *= 2.0**-24
    A[:, 1::4] = 0
    B[2::4] = 0
    return A, B


def rows_of_all_sizes() -> tuple[Float64, Float64]:
    A, B, generator = random()
    A *= 2.0 ** generator.integers(-60, 60, (SHAPE.M, 1))
    B *= 2.0 ** generator.integers(-60, 60, (1, SHAPE.K))
    A[3] = 0
    return A, B


def lone_outliers() -> tuple[Float64, Float64]:
    A, B, _ = random()
    A[7, 9] = B[2000, 11] = 2.0**20
    return A, B


ADVERSARIAL: tuple[Callable[[], tuple[Float64, Float64]], ...] = (
    uniform,
    positive,
    constants_between_two_halves,
    small_ones_after_a_large_one,
    sums_that_cancel,
    elements_of_all_sizes,
    large_ones_that_meet_zeros,
    rows_of_all_sizes,
    lone_outliers,
)


def drawn(make: Callable[[], tuple[Float64, Float64]]) -> Pair:
    A, B = make()
    return A.astype(np.float32), B.astype(np.float32)


def exact(A: Matrix, B: Matrix) -> Float64:
    return A.astype(np.float64) @ B.astype(np.float64)


@pytest.mark.architectures
def test_34_keeps_its_error_bound_on_adversarial_inputs(device: CpuDevice) -> None:
    load(device, ACCURATE)
    for make in ADVERSARIAL:
        A, B = drawn(make)
        error = np.abs(multiply(device, A, B) - exact(A, B))
        assert np.all(error <= bound(A, B)), make.__name__


def test_the_bound_tells_one_fp16_product_from_three() -> None:
    A, B = drawn(constants_between_two_halves)
    rounded = exact(
        A.astype(np.float16).astype(np.float32), B.astype(np.float16).astype(np.float32)
    )
    assert np.all(np.abs(rounded - exact(A, B)) > bound(A, B))


RANGES = {
    "near overflow": (2.0**126, 2.0**-100),
    "beyond the range of a BF16": (float(np.finfo(np.float32).max), 2.0**-110),
    "near the least normal number": (2.0**-120, 2.0**60),
    "subnormal": (2.0**-135, 2.0**100),
}
"""The sizes of the elements of A and of B. Their products are neither huge nor subnormal."""


@pytest.mark.architectures
@pytest.mark.parametrize("kernel", [ACCURATE, FASTEST])
@pytest.mark.parametrize("shape", [Shape(40, 64, 24), SHAPE], ids=str)
def test_extreme_elements_are_multiplied_as_float32(
    kernel: str, shape: Shape, device: CpuDevice
) -> None:
    """Errors are within the bound of any float32 sum, so finite products have finite results."""
    load(device, kernel)
    generator = np.random.default_rng(31)
    for name, (size_a, size_b) in RANGES.items():
        A = (generator.uniform(0.5, 1, (shape.M, shape.N)) * size_a).astype(np.float32)
        B = (generator.uniform(-1, 1, (shape.N, shape.K)) * size_b).astype(np.float32)
        error = np.abs(multiply(device, A, B) - exact(A, B))
        limit = shape.N * UNIT_ROUNDOFF * exact(np.abs(A), np.abs(B))
        assert np.all(error <= limit), name
