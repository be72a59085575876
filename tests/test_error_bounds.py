"""Tests of the error bounds of the fastest solutions, on inputs made to break them."""

import functools
from pathlib import Path

import numpy as np
import pytest

from harness.compiling.compiler import translate_source
from harness.devices.cpu.device import CpuDevice
from harness.protocol.compiler import PtxProgram, Translate
from harness.protocol.device import Finished, Ready, Run
from problem.accuracy import UNIT_ROUNDOFF
from problem.cases import Case, Matrix, Shape
from problem.reference import Float64, compare
from tests.requests import inputs_of

pytestmark = pytest.mark.architectures

SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"
ACCURATE, FASTEST = "34_wgmma_fp16_scaled", "36_wgmma_one_accumulator"

SHAPE = Shape(48, 2048, 48)
"""A shape small enough for the CPU device and large enough for both solutions' tensor cores."""
SMALL_SHAPES = (Shape(40, 64, 24), Shape(16, 16384, 16))
"""Shapes that 34 multiplies in plain FP32."""
TWO_PHASES = Shape(1030, 1400, 1020)
"""The least work, about, that 36 does in two phases."""
SEGMENT = 1024
"""The number of neighbours along N that share a scale in 34."""
PROMOTED = 512
"""The number of products along N that share an accumulator of the tensor cores in 34."""


@functools.cache
def translated(kernel: str) -> PtxProgram:
    program = translate_source(Translate(source=(SOLUTIONS / f"{kernel}.cu").read_text()))
    assert isinstance(program, PtxProgram), program
    return program


def loaded(kernel: str) -> CpuDevice:
    device, program = CpuDevice(), translated(kernel)
    ready = device.load_ptx(program.ptx, program.entry, program.launch, (16, 16, 1))
    assert isinstance(ready, Ready), ready
    return device


def error(device: CpuDevice, A: Matrix, B: Matrix) -> Float64:
    shape = Shape(A.shape[0], A.shape[1], B.shape[1])
    done = device.run(Run(inputs=inputs_of(shape, A, B), seconds=100))
    assert isinstance(done, Finished), done
    return np.abs(done.output.astype(np.float64) - exact(A, B))


def exact(A: Matrix, B: Matrix) -> Float64:
    return A.astype(np.float64) @ B.astype(np.float64)


def largest_of_segments(X: Float64) -> Float64:
    """Return, for each element, the largest absolute value of those that share its scale."""
    rows, inner = X.shape
    whole = np.zeros((rows, -(-inner // SEGMENT) * SEGMENT))
    whole[:, :inner] = np.abs(X)
    largest = whole.reshape(rows, -1, SEGMENT).max(axis=2)
    return np.repeat(largest, SEGMENT, axis=1)[:, :inner]


def bound(A: Matrix, B: Matrix) -> Float64:
    """Return the bound in the first comment of 34, for every element of C."""
    a, b = np.abs(A.astype(np.float64)), np.abs(B.astype(np.float64))
    n = A.shape[1]
    sums = (2 * min(n, PROMOTED) + n / PROMOTED + 13) * UNIT_ROUNDOFF * (a @ b)
    far_below_the_largest = 2.0**-36 * (largest_of_segments(a) @ b + a @ largest_of_segments(b.T).T)
    return np.asarray(sums + far_below_the_largest + n * 2.0**-149)


def adversarial() -> dict[str, tuple[Float64, Float64]]:
    """Return inputs that make an error of each kind as large as it can be."""
    random = np.random.default_rng(31)
    A, B = random.uniform(-1, 1, (SHAPE.M, SHAPE.N)), random.uniform(-1, 1, (SHAPE.N, SHAPE.K))

    # Both FP16 parts of this number are rounded by nearly half of their last place.
    value = 1 + 2.0**-11 + 2.0**-22 + 2.0**-23
    # One large product for every accumulator truncates all later ones.
    large_A, large_B = (abs(each) * 2.0**-13 + 2.0**-13 for each in (A, B))
    large_A[:, ::PROMOTED], large_B[::PROMOTED] = 1, 1
    # The products of neighbours nearly cancel.
    cancelling_A, cancelling_B = A.copy(), B.copy()
    cancelling_A[:, 1::2], cancelling_B[1::2] = -A[:, ::2] * (1 + 2.0**-20), B[::2]
    # The largest elements are multiplied by zeros, so that small ones count.
    zeros_A, zeros_B = A.copy(), B.copy()
    zeros_A[:, ::2] *= 2.0**-24
    zeros_B[1::2] *= 2.0**-24
    zeros_A[:, 1::4], zeros_B[2::4] = 0, 0
    rows_A = A * 2.0 ** random.integers(-60, 60, (SHAPE.M, 1))
    rows_A[3] = 0
    outlier_A, outlier_B = A.copy(), B.copy()
    outlier_A[7, 9] = outlier_B[2000, 11] = 2.0**20
    return {
        "uniform": (A, B),
        "all truncated in one direction": (abs(A), abs(B)),
        "constants between two halves": (np.full_like(A, value), np.full_like(B, value)),
        "small ones after a large one": (large_A, large_B),
        "sums that cancel": (cancelling_A, cancelling_B),
        "far below the largest of their scale": (
            A * 2.0 ** random.integers(-45, 1, A.shape),
            B * 2.0 ** random.integers(-45, 1, B.shape),
        ),
        "large ones that meet zeros": (zeros_A, zeros_B),
        "rows of all sizes": (rows_A, B * 2.0 ** random.integers(-60, 60, (1, SHAPE.K))),
        "lone outliers": (outlier_A, outlier_B),
    }


def test_34_keeps_its_error_bound_on_adversarial_inputs() -> None:
    device = loaded(ACCURATE)
    for name, pair in adversarial().items():
        A, B = (each.astype(np.float32) for each in pair)
        assert np.all(error(device, A, B) <= bound(A, B)), name


def test_36_uses_all_of_int8_for_rows_with_a_large_value() -> None:
    """A power of two as the scale would leave half of the range unused, since 4.1 exceeds 4."""
    random = np.random.default_rng(31)
    A = random.standard_normal((TWO_PHASES.M, TWO_PHASES.N)).clip(-3.9, 3.9).astype(np.float32)
    A[0, ::SEGMENT] = 4.1
    B = random.uniform(-1, 1, (TWO_PHASES.N, TWO_PHASES.K)).astype(np.float32)
    size = np.linalg.norm(A[0]) * np.linalg.norm(B, axis=0) / np.sqrt(TWO_PHASES.N)
    relative = error(loaded(FASTEST), A, B)[0] / size
    assert np.sqrt(np.mean(relative**2)) < 6e-6


RANGES = {
    "near overflow": (2.0**126, 2.0**-100),
    "beyond the range of a BF16": (float(np.finfo(np.float32).max), 2.0**-110),
    "near the least normal number": (2.0**-120, 2.0**60),
    "subnormal": (2.0**-135, 2.0**100),
    "few bits of a subnormal number": (2.0**-147, 2.0**127),
    "with subnormal products": (2.0**-70, 2.0**-72),
}
"""The sizes of the elements of A and of B. Their products are not huge."""


def of_sizes(shape: Shape, size_a: float, size_b: float) -> tuple[Matrix, Matrix]:
    random = np.random.default_rng(31)
    A = random.uniform(0.5, 1, (shape.M, shape.N)) * size_a
    B = random.uniform(-1, 1, (shape.N, shape.K)) * size_b
    return A.astype(np.float32), B.astype(np.float32)


@pytest.mark.parametrize("shape", [SHAPE, *SMALL_SHAPES], ids=str)
def test_34_keeps_its_error_bound_over_the_range_of_floats(shape: Shape) -> None:
    device = loaded(ACCURATE)
    pairs = {name: of_sizes(shape, *sizes) for name, sizes in RANGES.items()}
    pairs["constants"] = (
        np.full((shape.M, shape.N), 1.9, np.float32),
        np.full((shape.N, shape.K), 1.7, np.float32),
    )
    rows, B = of_sizes(shape, 1, 1)
    rows[3:6] *= np.float32([[2.0**-130], [2.0**-90], [2.0**100]])
    pairs["rows of extreme sizes"] = rows, B
    huge_A, huge_B = of_sizes(shape, 1, 1)
    huge_A[7, 9], huge_B[9] = 2.0**120, 0
    huge_A[:, 50], huge_B[50, 5] = 0, 2.0**60
    pairs["huge elements that meet zeros"] = huge_A, huge_B
    for name, (A, B) in pairs.items():
        assert np.all(error(device, A, B) <= bound(A, B)), name


@pytest.mark.parametrize("shape", [SMALL_SHAPES[0], SHAPE, TWO_PHASES], ids=str)
def test_36_multiplies_extreme_elements_as_accurately_as_float32(shape: Shape) -> None:
    device = loaded(FASTEST)
    for name, sizes in RANGES.items():
        A, B = of_sizes(shape, *sizes)
        limit = shape.N * (UNIT_ROUNDOFF * exact(np.abs(A), np.abs(B)) + 2.0**-149)
        assert np.all(error(device, A, B) <= limit), name


STRUCTURED = (
    "A spikes on a background; B positive, without spikes",
    "A spikes on a background; B positive",
    "A positive, inner dimension scaled by 2^-7..2^0; "
    "B constant lines, inverse inner dimension scaled by 2^-7..2^0",
)
"""Inputs on which the errors of low parts would add up, to 2e-5 and more, if they were rounded to
nearest."""


def test_36_does_not_accumulate_errors_of_structured_inputs() -> None:
    device = loaded(FASTEST)
    for kind in STRUCTURED:
        A, B = Case(TWO_PHASES, kind).draw(31)
        done = device.run(Run(inputs=inputs_of(TWO_PHASES, A, B), seconds=100))
        assert isinstance(done, Finished), done
        assert compare(A, B, done.output).worst < 1.2e-5, kind


def with_outliers() -> dict[str, tuple[Float64, Float64]]:
    """Return inputs of which a few elements, or too many, are far larger than the others."""
    random = np.random.default_rng(31)
    A = random.uniform(-1, 1, (TWO_PHASES.M, TWO_PHASES.N))
    B = random.uniform(-1, 1, (TWO_PHASES.N, TWO_PHASES.K))
    few_A, few_B, many_A, many_B = A.copy(), B.copy(), A.copy(), B.copy()
    few_A[[3, 500, -1], [5, 1000, -1]] = 2.0**20, -(2.0**20), 2.0**20
    few_B[[5, 700, -1], [7, 500, -1]] = 2.0**20
    few_A[900, 1000:1006], few_B[1000:1006, 900] = 1000, 2000
    many_A[:, 1200], many_B[300] = 500, 500
    tiny_A = few_A.copy()
    tiny_A[20] *= 2.0**-110
    return {
        "of A": (few_A, B),
        "of B": (A, few_B),
        "of both": (few_A, few_B),
        "in small numbers": (few_A * 2.0**-75, few_B),
        "beside a tiny row": (tiny_A, B),
        "in each row of A": (many_A, B),
        "in each column of B": (A, many_B),
    }


def test_36_multiplies_outliers_apart() -> None:
    """The other elements are multiplied as if there were no outliers. The products of outliers are
    within 2^-16 of the largest product that they could be part of."""
    device = loaded(FASTEST)
    for name, pair in with_outliers().items():
        A, B = (each.astype(np.float32) for each in pair)
        a, b = np.abs(A.astype(np.float64)), np.abs(B.astype(np.float64))
        usual_a, usual_b = (np.where(each > 100 * np.median(each), 0, each) for each in (a, b))
        usual = 2e-5 * np.sqrt(np.square(usual_a) @ np.square(usual_b))
        of_a = (a - usual_a).sum(axis=1, keepdims=True) * b.max(axis=0, keepdims=True)
        of_b = a.max(axis=1, keepdims=True) * (b - usual_b).sum(axis=0, keepdims=True)
        assert np.all(error(device, A, B) <= usual + 2.0**-16 * (of_a + of_b)), name
