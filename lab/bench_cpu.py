"""Benchmarks of the CPU device: verifying, watching, translation, sanitizing and counting.

Run with `pytest lab/bench_cpu.py --benchmark-only`. The extra info has the GFLOP/s.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.devices.cpu.device import CpuDevice
from harness.protocol.device import Load
from harness.ptxcpu.arguments import Buffer
from harness.ptxcpu.grid import Size
from harness.ptxcpu.kernel import Kernel
from problem.cases import Shape
from tests.compiled import compiled
from tests.ptxcpu.runner import KERNELS, Runner, inputs
from tests.ptxcpu.test_vector_path import kernels, source_of

TILES = ("naive", "tile", "register64", "double128")

TENSOR = {
    **dict.fromkeys(("30", "31", "32"), Shape(512, 512, 512)),
    "33": Shape(800, 1024, 1024),
    **dict.fromkeys(("34", "36"), Shape(864, 1024, 1024)),
}
"""Solutions for tensor cores, and shapes of whole tiles."""

SHAPE = Shape(1536, 512, 2816)
"""The shape for all others. It has as many tiles of 17 and 18 as an H100 has multiprocessors, so
that none is split, like nearly all of the ranked size."""


@dataclass(frozen=True)
class Launch:
    """One launch of a solution, on the vector path if it has one."""

    kernel: Kernel
    grid: Size
    arguments: Sequence[Buffer | int]

    def seconds(self) -> float:
        """Return the seconds of processor time that the launch takes."""
        self.kernel.reset_variables()
        start = time.process_time()
        assert self.kernel.run(self.grid, self.arguments).fault is None
        return time.process_time() - start

    def seconds_watched(self) -> float:
        self.kernel.reset_variables()
        start = time.process_time()
        assert not self.kernel.check(self.grid, self.arguments, seconds=600).findings
        return time.process_time() - start


def launch_of(number: str, shape: Shape) -> Launch:
    source = source_of(f"solutions/{number}")
    vector, threads = kernels(source, optimised=True)
    assert number in TENSOR or vector.units
    a, b = inputs(shape)
    buffers = [Buffer(a), Buffer(b), Buffer(np.empty((shape.M, shape.K), np.float32), True)]
    grid = compiled(source).launch.grid(shape.M, shape.K)
    arguments: list[Buffer | int] = [*buffers, shape.M, shape.N, shape.K]
    return Launch(threads if number in TENSOR else vector, grid, arguments)


@pytest.mark.parametrize("number", [*(f"{number:02}" for number in range(2, 19)), *TENSOR])
def test_verify(benchmark: Any, number: str) -> None:
    """The extra info gives one core's speed as a part of single-threaded NumPy's. Large kernels are
    optimised, which gradings do not do, since their launches are short."""
    shape = TENSOR.get(number, SHAPE)
    launch = launch_of(number, shape)
    spent: list[float] = []
    benchmark.pedantic(lambda: spent.append(launch.seconds()), rounds=5)
    a, b = inputs(shape)
    numpy: list[float] = []
    for _ in range(5):
        start = time.process_time()
        a @ b
        numpy.append(time.process_time() - start)
    benchmark.extra_info["GFLOP per CPU second"] = round(shape.flop / min(spent) / 1e9, 2)
    benchmark.extra_info["of NumPy"] = round(min(numpy) / min(spent), 3)


@pytest.mark.parametrize("number", ["02", "05", "08", "12", "14", "17", "18", *TENSOR])
def test_watch(benchmark: Any, number: str) -> None:
    """The extra info gives the shortest time as a multiple of that for verifying, on one core."""
    launch = launch_of(number, TENSOR.get(number, SHAPE))
    verifying = min(launch.seconds() for _ in range(5))
    launch.kernel.check(launch.grid, launch.arguments, blocks=[0])  # makes the machine code
    watching: list[float] = []
    benchmark.pedantic(lambda: watching.append(launch.seconds_watched()), rounds=5)
    benchmark.extra_info["of verifying"] = round(min(watching) / verifying, 1)


@pytest.mark.parametrize("name", TILES)
def test_translate(benchmark: Any, name: str, tmp_path: Path) -> None:
    """Translate PTX to machine code with an empty cache."""
    kernel = compiled((KERNELS / f"{name}.cu").read_text())
    CpuDevice(tmp_path)

    def translate() -> None:
        for entry in (tmp_path / "cpu").iterdir():
            entry.unlink()
        device.load(Load(kernel=kernel))

    device = CpuDevice(tmp_path)
    benchmark(translate)


@pytest.mark.parametrize("name", TILES)
def test_sanitize(benchmark: Any, name: str) -> None:
    cpu = Runner(CpuDevice())
    cpu.load_file(name)
    benchmark(cpu.findings, Shape(136, 64, 136))


@pytest.mark.parametrize("name", TILES)
def test_count(benchmark: Any, name: str) -> None:
    cpu = Runner(CpuDevice())
    cpu.load_file(name)
    benchmark(cpu.count, Shape(256, 256, 256), 2)
