"""The CPU device compared with a GPU: the same bits, and the same counters."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.protocol.device import Run
from harness.protocol.request import Fault
from problem.cases import Matrix, Shape
from problem.launcher import BLOCK, LaunchLine
from tests.ptxcpu.runner import KERNELS, Runner, compiled, inputs
from tests.ptxcpu.test_cpu_tensor import small_integers, wgmma_source
from tests.requests import inputs_of

pytestmark = pytest.mark.gpu

SHAPES = [
    Shape(1, 1, 1),
    Shape(16, 16, 16),
    Shape(17, 33, 18),
    Shape(1, 100, 1),
    Shape(100, 1, 100),
    Shape(31, 257, 63),
    Shape(64, 64, 64),
    Shape(65, 127, 66),
    Shape(128, 96, 160),
    Shape(200, 300, 100),
    Shape(256, 512, 128),
    Shape(333, 77, 222),
]
PLAIN = {
    "naive": 16,
    "tile": 16,
    "register64": 64,
    "functions": 16,
    "shuffle_sum": 16,
    "cp_async": 16,
}


def on_gpu(cubin: bytes, entry: str, line: LaunchLine, A: Matrix, B: Matrix) -> Matrix:
    import cupy

    function = cupy.cuda.function.Module()
    function.load(cubin)
    kernel = function.get_function(entry)
    if line.shared_memory > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = line.shared_memory
    M, N, K = A.shape[0], A.shape[1], B.shape[1]
    C = cupy.full((M, K), np.nan, np.float32)
    arguments: tuple[Any, ...] = (cupy.asarray(A), cupy.asarray(B), C)
    arguments += (np.int32(M), np.int32(N), np.int32(K))
    kernel(line.grid(M, K), BLOCK, arguments, shared_mem=line.shared_memory)
    return np.asarray(cupy.asnumpy(C))


def same_bits(cpu: Runner, source: str, tile: int, A: Matrix, B: Matrix) -> None:
    kernel = compiled(source)
    line = LaunchLine(tile, tile) if tile else kernel.launch
    cpu.device.load_ptx(kernel.ptx, kernel.entry, line)
    shape = Shape(A.shape[0], A.shape[1], B.shape[1])
    done = cpu.device.run(Run(inputs=inputs_of(shape, A, B), seconds=60))
    assert not isinstance(done, Fault), done.message
    other = on_gpu(kernel.cubin, kernel.entry, line, A, B)
    assert np.array_equal(done.output.view(np.uint32), other.view(np.uint32))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PLAIN)
def test_plain_fma_kernels_give_the_same_bits(cpu: Runner, name: str, shape: Shape) -> None:
    same_bits(cpu, (KERNELS / f"{name}.cu").read_text(), PLAIN[name], *inputs(shape))


@pytest.mark.parametrize("name", ["mma_tf32", "ldmatrix_f16"])
def test_fragments_have_the_layout_of_the_gpu(cpu: Runner, name: str) -> None:
    """Small integers, so that the order of sums does not matter."""
    same_bits(cpu, (KERNELS / f"{name}.cu").read_text(), 16, *small_integers(Shape(20, 24, 36)))


def test_bulk_copies(cpu: Runner) -> None:
    same_bits(cpu, (KERNELS / "bulk_copy.cu").read_text(), 0, *inputs(Shape(20, 36, 24)))


WGMMA = [
    (kind, width, swizzle, registers, False, False)
    for kind in ("tf32", "f16", "bf16")
    for width in (8, 64, 256)
    for swizzle in (0, 32, 64, 128)
    for registers in (False, True)
] + [
    ("f16", 64, swizzle, False, trans_a, trans_b)
    for swizzle in (0, 32, 64, 128)
    for trans_a, trans_b in ((True, False), (False, True), (True, True))
]


@pytest.mark.parametrize("form", WGMMA, ids=str)
def test_wgmma_reads_shared_memory_as_the_gpu_does(
    cpu: Runner, form: tuple[str, int, int, bool, bool, bool]
) -> None:
    source, shape = wgmma_source(*form)
    same_bits(cpu, source, 0, *small_integers(shape))


# ---- counters

METRICS = {
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}
SCRIPT = """
import sys
from pathlib import Path
from tests.ptxcpu.runner import inputs
from tests.ptxcpu.test_agreement import on_gpu
from problem.cases import Shape
from problem.launcher import LaunchLine
entry, cubin = sys.argv[1:3]
tile, *sizes = map(int, sys.argv[3:])
on_gpu(Path(cubin).read_bytes(), entry, LaunchLine(tile, tile), *inputs(Shape(*sizes)))
"""


def hardware(cubin: Path, entry: str, tile: int, shape: Shape) -> dict[str, int]:
    """The hardware's counters of one launch, through Nsight Compute."""
    command = ["ncu", "--csv", "--metrics", ",".join(METRICS.values())]
    command += ["--kernel-name", "matrix_multiplication_kernel"]
    command += [sys.executable, "-c", SCRIPT, entry, str(cubin), str(tile)]
    command += [str(x) for x in (shape.M, shape.N, shape.K)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or "ERR_NVGPUCTRPERM" in done.stdout:
        pytest.skip(f"ncu cannot read the counters here: {(done.stdout + done.stderr)[-900:]}")
    table = done.stdout[done.stdout.index('"ID"') :]
    rows = {r["Metric Name"]: r["Metric Value"] for r in csv.DictReader(io.StringIO(table))}
    return {name: int(rows[metric].replace(",", "")) for name, metric in METRICS.items()}


@pytest.mark.skipif(shutil.which("ncu") is None, reason="needs Nsight Compute")
@pytest.mark.parametrize(("name", "tile"), [("naive", 16), ("tile", 16), ("register64", 64)])
@pytest.mark.parametrize("shape", [Shape(64, 64, 64), Shape(128, 96, 192)], ids=str)
def test_counters_equal_those_of_the_hardware(
    cpu: Runner, tmp_path: Path, name: str, tile: int, shape: Shape
) -> None:
    kernel = compiled((KERNELS / f"{name}.cu").read_text())
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(kernel.cubin)
    cpu.device.load_ptx(kernel.ptx, kernel.entry, LaunchLine(tile, tile))
    ours = cpu.count(shape)
    theirs = hardware(cubin, kernel.entry, tile, shape)
    assert {n: getattr(ours, n) for n in theirs} == theirs
