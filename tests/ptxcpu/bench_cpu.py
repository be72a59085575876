"""How fast the CPU device is: launches with all checks, translation, sanitizing, counting.

Run with `pytest tests/ptxcpu/bench_cpu.py --benchmark-only`; GFLOP/s are in the extra info.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.devices.cpu.device import CpuDevice
from harness.protocol.device import Load, Run
from harness.protocol.request import Fault
from harness.ptxcpu.arguments import Buffer
from problem.cases import Shape
from problem.launcher import LaunchLine
from tests.ptxcpu.runner import KERNELS, Runner, compiled, inputs
from tests.ptxcpu.test_vector_path import kernels, solution
from tests.requests import inputs_of

SHAPE = Shape(512, 256, 384)
TILES = {"naive": 16, "tile": 16, "register64": 64, "double128": 128}


@pytest.mark.parametrize("name", TILES)
def test_launch(benchmark: Any, cpu: Runner, name: str) -> None:
    kernel = compiled((KERNELS / f"{name}.cu").read_text())
    line = LaunchLine(tile_rows=TILES[name], tile_columns=TILES[name])
    cpu.device.load_ptx(kernel.ptx, kernel.entry, line)
    A, B = inputs(SHAPE)
    request = Run(inputs=inputs_of(SHAPE, A, B), seconds=60)
    result = benchmark(cpu.device.run, request)
    assert not isinstance(result, Fault)
    benchmark.extra_info["GFLOP/s"] = round(SHAPE.flop / benchmark.stats.stats.min / 1e9, 2)


@pytest.mark.parametrize("number", [f"{number:02}" for number in range(2, 19)])
def test_vector_path(benchmark: Any, number: str, cache_directory: Path) -> None:
    """The extra info says which part of single-threaded NumPy's speed one core reaches."""
    source = solution(number)
    vector, _ = kernels(source, cache_directory)
    assert vector.units
    rows, inner, cols = 512, 512, 512
    grid = compiled(source).launch.grid(rows, cols)
    a, c = np.ones((rows, inner), np.float32), np.empty((rows, cols), np.float32)
    arguments = [Buffer(a), Buffer(a), Buffer(c, True), rows, inner, cols]
    spent: list[float] = []

    def launch() -> None:
        vector.reset_variables()
        start = time.process_time()
        vector.run(grid, arguments)
        spent.append(time.process_time() - start)

    benchmark.pedantic(launch, rounds=5)
    numpy: list[float] = []
    for _ in range(5):
        start = time.process_time()
        a @ a
        numpy.append(time.process_time() - start)
    flop = 2 * rows * inner * cols
    benchmark.extra_info["GFLOP per CPU second"] = round(flop / min(spent) / 1e9, 2)
    benchmark.extra_info["of NumPy"] = round(min(numpy) / min(spent), 3)


@pytest.mark.parametrize("name", TILES)
def test_translate(benchmark: Any, name: str, tmp_path: Path) -> None:
    """PTX to machine code, with nothing in the cache."""
    kernel = compiled((KERNELS / f"{name}.cu").read_text())
    CpuDevice(tmp_path)

    def translate() -> None:
        for entry in (tmp_path / "cpu").iterdir():
            entry.unlink()
        device.load(Load(kernel=kernel))

    device = CpuDevice(tmp_path)
    benchmark(translate)


@pytest.mark.parametrize("name", TILES)
def test_sanitize(benchmark: Any, cpu: Runner, name: str) -> None:
    cpu.load_file(name)
    benchmark(cpu.findings, Shape(136, 64, 136))


@pytest.mark.parametrize("name", TILES)
def test_count(benchmark: Any, cpu: Runner, name: str) -> None:
    cpu.load_file(name)
    benchmark(cpu.count, Shape(256, 256, 256), 2)
