"""Correct kernels give the correct product at every size; wrong ones always the same wrong one."""

import gc
import tracemalloc

import numpy as np
import pytest

from harness.protocol.compiler import PtxProgram
from harness.protocol.device import Load, Ready
from harness.protocol.request import Fault
from problem.cases import Shape
from tests.compiled import compiled
from tests.ptxcpu.runner import KERNELS, Runner, inputs, product
from tests.requests import sanitize_on
from tests.sources import kernel


def test_a_kernel_is_loaded_from_its_ptx_alone(cpu: Runner) -> None:
    tile = compiled((KERNELS / "tile.cu").read_text())
    program = PtxProgram(entry=tile.entry, ptx=tile.ptx, launch=tile.launch)
    ready = cpu.device.load(Load(kernel=program, mostly_watched=True))
    assert ready == Ready(has_mergeable_loads=True)
    assert cpu.error(Shape(17, 33, 18)) < 1e-5 * 33**0.5


def test_variables_have_their_initial_values_in_every_launch(cpu: Runner) -> None:
    body = """if (threadIdx.x + threadIdx.y) return;
        C[0] = launches + 100 * table[1];
        launches = 1;
        table[1] = 9;"""
    source = kernel(body, "__device__ int launches, table[3] = {5, 6, 7};")
    assert isinstance(cpu.device.load(Load(kernel=compiled(source))), Ready)
    assert [cpu.finish(Shape(1, 1, 1)).output[0, 0] for _ in range(3)] == [600] * 3
    sanitized = cpu.device.sanitize(sanitize_on(*[Shape(1, 1, 1)] * 3))
    assert [each.output[0, 0] for each in sanitized.products] == [600] * 3


def test_a_fault_has_its_launch_and_line_and_what_was_printed(cpu: Runner) -> None:
    trap = '__device__ void halt(int M) { if (M > 16) { printf("before it"); __trap(); } }\n'
    cpu.load(kernel("halt(M - 16);\nhalt(M);", trap))
    shapes = Shape(16, 16, 16), Shape(32, 16, 16)
    assert cpu.fault(shapes[1]).printed.startswith("before it")
    (stopped,) = cpu.device.sanitize(sanitize_on(*shapes)).stopped
    assert stopped.launch == 1 and stopped.fault.at == cpu.fault(shapes[1]).at
    assert (stopped.fault.at.line, stopped.fault.at.caller) == (1, 5)
    counts = 'asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 1, 256;");'
    cpu.load(kernel(f"if (threadIdx.y < 4) {counts}"))
    assert cpu.fault(shapes[0]).cause == "deadlock"


def test_a_grid_is_as_large_as_a_gpu_allows(cpu: Runner) -> None:
    cpu.load(kernel("if (blockIdx.x + threadIdx.x + threadIdx.y == 0) C[0] = 1;"))
    assert cpu.finish(Shape(1, 1, 16 << 16)).output[0, 0] == 1
    assert cpu.fault(Shape(16 << 16, 1, 1)).cause == "launch-refused"


def test_variables_of_earlier_launches_are_not_kept(cpu: Runner) -> None:
    source = kernel("C[0] = pool[M];", "__device__ char pool[64 << 20];")
    assert isinstance(cpu.device.load(Load(kernel=compiled(source))), Ready)
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(4):
            cpu.finish(Shape(1, 1, 1))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert most < 3 * (64 << 20)


@pytest.mark.parametrize("name", ["naive", "tile"])
def test_sums_are_fused_and_in_order(cpu: Runner, name: str) -> None:
    shape = Shape(20, 40, 24)
    A, B = inputs(shape)
    cpu.load_file(name)
    C = cpu.finish(shape).output
    expected = np.zeros((shape.M, shape.K), np.float32)
    for i in range(shape.N):
        # the product is exact in 64 bits of mantissa, and so is nearly every sum
        exact = A[:, i : i + 1].astype(np.longdouble) * B[i].astype(np.longdouble) + expected
        expected = exact.astype(np.float32)
    assert np.array_equal(C, expected)


@pytest.mark.parametrize("name", ["no_barrier_after_store", "no_barrier_after_load"])
def test_a_missing_barrier_gives_the_same_wrong_result_each_time(cpu: Runner, name: str) -> None:
    cpu.load_file(name)
    shape = Shape(64, 64, 64)
    results = [cpu.finish(shape).output for _ in range(3)]
    assert np.nanmax(np.abs(results[0] - product(*inputs(shape)))) > 1e-2
    assert all(np.array_equal(results[0], other, equal_nan=True) for other in results[1:])


def test_only_the_blocks_asked_for_run(cpu: Runner) -> None:
    cpu.load_file("tile")
    shape = Shape(64, 32, 64)  # 4x4 blocks
    result = cpu.run(shape, blocks=(5, 14))
    assert not isinstance(result, Fault)
    C = result.output
    right = product(*inputs(shape))
    written = np.zeros_like(C, dtype=bool)
    for row, column in ((1, 1), (3, 2)):
        written[16 * row : 16 * row + 16, 16 * column : 16 * column + 16] = True
    assert np.isnan(C[~written]).all()
    assert np.abs(C[written] - right[written]).max() < 1e-5
