"""The cuda device on a real GPU: faults, guards, sanitizer, checks."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol.device import Describe, Finished, Load, Ready, Run, Sanitized
from harness.protocol.report import Array, DeviceInfo, Hazard, Tool
from harness.protocol.request import Fault
from problem.cases import Case, Shape
from problem.reference import compare
from tests.compiled import compiled
from tests.requests import inputs_of, sanitize_on
from tests.sources import kernel

pytestmark = pytest.mark.gpu

INDICES = (
    "int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;"
    "int thread = threadIdx.y * 16 + threadIdx.x;"
)
RIGHT = (
    "if (row >= M || column >= K) return; float sum = 0;\n"
    "for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];\n"
    "C[row * K + column] = sum;"
)
SHAPE = Shape(33, 20, 47)


@pytest.fixture(scope="module")
def device() -> Iterator[Worker]:
    device = Worker(Role.CUDA)
    yield device
    device.close()


@pytest.fixture(scope="module")
def sanitizer() -> Iterator[Worker]:
    sanitizer = Worker(Role.SANITIZER)
    yield sanitizer
    sanitizer.close()


def load(device: Worker, body: str, before: str = "") -> None:
    ready = device.ask(Load(kernel=compiled(kernel(f"{INDICES}\n{body}", before))))
    assert isinstance(ready, Ready), ready


def run(device: Worker, shape: Shape = SHAPE, seconds: float = 20) -> Finished | Fault:
    A, B = Case(shape).draw(1)
    return device.ask(Run(inputs=inputs_of(shape, A, B), seconds=seconds))


def test_a_right_kernel_is_right_and_touches_nothing(device: Worker) -> None:
    load(device, RIGHT)
    answer = run(device)
    assert not isinstance(answer, Fault), answer
    assert answer.changed_inputs == () and answer.wrote_outside == ()
    assert compare(*Case(SHAPE).draw(1), answer.output).passed


@pytest.mark.parametrize(
    ("body", "outside", "changed"),
    [
        ("if (!row && !column) C[M * K] = 1;", ("after C",), ()),
        ("if (!row && !column) C[-1] = 1;", ("before C",), ()),
        ("if (!row && !column) ((float*)A)[M * N - 1] = 1;", (), ("A",)),
        ("if (!row && !column) ((float*)B)[N * K] = 1;", ("after B",), ()),
        ("if (!row && !column) ((float*)B)[0] = 1;", (), ("B",)),
    ],
)
def test_guards_see_writes_next_to_C(
    device: Worker, body: str, outside: tuple[str, ...], changed: tuple[str, ...]
) -> None:
    load(device, body)
    answer = run(device)
    assert not isinstance(answer, Fault), answer
    assert answer.wrote_outside == outside and answer.changed_inputs == changed
    assert np.isnan(answer.output).all()


def test_no_launch_sees_what_another_has_left(device: Worker) -> None:
    """They have the same memory where they need as much, guards and all."""
    for shape in (SHAPE, SHAPE, Shape(700, 20, 900), SHAPE):
        load(device, "if (!row && !column) { C[-1] = C[M * K] = C[0] = 1; }")
        answer = run(device, shape)
        assert isinstance(answer, Finished) and answer.wrote_outside == ("before C", "after C")
        load(device, "if (!row && !column) C[1] = C[-1] + C[M * K];")
        answer = run(device, shape)
        assert isinstance(answer, Finished) and answer.wrote_outside == ()
        written = ~np.isnan(answer.output)
        assert not written.any(), "guards and poison are not numbers"


STATE = """
__device__ int launches;
__device__ int table[3] = {5, 6, 7};
static __device__ int hidden;
"""
COUNTING = (
    RIGHT
    + """
    if (row == 0 && column == 0) {
        C[0] = launches + 10 * hidden + 100 * table[1];
        launches = hidden = 1;
        table[1] = 9;
    }
"""
)


def test_variables_have_their_initial_values_in_every_launch(device: Worker) -> None:
    load(device, COUNTING, STATE)
    for _ in range(3):
        answer = run(device)
        assert not isinstance(answer, Fault) and answer.output[0, 0] == 600


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("*(float*)8 = 1;", "memory"),
        ("C[1ll << 40] = 1;", "memory"),
        ("*(float4*)(C + 1) = make_float4(1, 2, 3, 4);", "memory"),
        ('asm volatile("trap;");', "trap"),
        ("assert(M < 0);", "trap"),
        ("while (*(volatile const float*)A > -9) {}", "time-limit"),
    ],
)
def test_faults_cost_the_worker_and_nothing_else(device: Worker, body: str, cause: str) -> None:
    load(device, body)
    answer = run(device, seconds=3)
    assert isinstance(answer, Fault) and answer.cause == cause, answer
    load(device, RIGHT)
    assert not isinstance(run(device), Fault)


@pytest.mark.parametrize(
    ("body", "tool", "hazard", "array", "line"),
    [
        ("C[0] = A[M * N];", Tool.MEMCHECK, Hazard.OUT_OF_BOUNDS, "A", 4),
        ("C[0] = B[-1];", Tool.MEMCHECK, Hazard.OUT_OF_BOUNDS, "B", 4),
        ("C[M * K] = 0;", Tool.MEMCHECK, Hazard.OUT_OF_BOUNDS, "C", 4),
        ("*(float4*)(C + 1) = make_float4(1, 2, 3, 4);", Tool.MEMCHECK, Hazard.MISALIGNED, "C", 4),
        (
            "__shared__ float s[256]; s[thread] = A[0];\nC[0] = s[255 - thread];",
            Tool.RACECHECK,
            Hazard.RACE,
            Array.SHARED,
            4,
        ),
        ("C[0] += 1;", Tool.INITCHECK, Hazard.UNINITIALISED, "C", 4),
        (
            "if (threadIdx.x < 5)\n__syncthreads();\nC[0] = 1;",
            Tool.SYNCCHECK,
            Hazard.DIVERGENT_BARRIER,
            None,
            5,
        ),
    ],
)
def test_compute_sanitizer_names_the_place(
    sanitizer: Worker, body: str, tool: Tool, hazard: Hazard, array: str | None, line: int
) -> None:
    load(sanitizer, body)
    answer = sanitizer.ask(sanitize_on(SHAPE))
    assert isinstance(answer, Sanitized), answer
    found = [finding for finding in answer.findings if finding.tool is tool]
    assert found, answer
    assert found[0].hazard is hazard and found[0].array == array
    assert found[0].at.line == line


def test_compute_sanitizer_finds_nothing_in_a_right_kernel(sanitizer: Worker) -> None:
    load(sanitizer, RIGHT)
    answer = sanitizer.ask(sanitize_on(SHAPE, Shape(64, 64, 64)))
    assert isinstance(answer, Sanitized), answer
    assert answer.findings == ()
    assert [run.status for run in answer.runs] == ["clean"] * 4, answer
    assert sorted((product.tool, product.launch) for product in answer.products) == sorted(
        (tool, launch) for tool in Tool for launch in range(2)
    )
    for product in answer.products:
        shape = (SHAPE, Shape(64, 64, 64))[product.launch]
        assert compare(*Case(shape).draw(1), product.output).passed
        assert product.changed_inputs == ()


def test_registers_and_occupancy_agree_with_the_driver() -> None:
    import cupy

    from harness.devices.cuda.loading import Loaded

    for path in ("solutions/01_naive.cu", "solutions/02_shared_tile.cu"):
        loaded = compiled(Path(path).read_text(encoding="utf-8"))
        facts, function = loaded.facts, Loaded(loaded).function
        driver = cupy.cuda.driver
        registers = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, function.ptr)
        assert registers == facts.resources.registers
        shared = facts.launch.shared_memory
        blocks = driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, 256, shared)
        assert blocks == facts.occupancy.blocks


def test_the_device_describes_itself(device: Worker) -> None:
    info = device.ask(Describe(on_gpu="problem.gpu"))
    assert isinstance(info, DeviceInfo)
    assert info.baseline_version and info.driver and info.max_clock_mhz and info.fp32_peak_tflops


def test_the_kernels_process_has_no_machine_code_of_the_judge() -> None:
    loaded = "import sys, harness.devices.cuda.device; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True)
    assert b"problem.gpu" not in answer.stdout
