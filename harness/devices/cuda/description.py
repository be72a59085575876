"""The description of a GPU."""

from importlib import import_module

import cupy

from harness.compiling.occupancy import multiprocessor
from harness.devices.available import arch_named
from harness.devices.cuda.clocks import Clocks
from harness.protocol.report import DeviceInfo, DeviceKind


def description(on_gpu: str | None) -> DeviceInfo:
    """Describe the GPU, and the baseline in this module of the problem."""
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    arch = arch_named(properties["major"], properties["minor"])
    clocks = Clocks()
    clock_mhz = clocks.max_mhz
    lanes = multiprocessor(arch).fp32_lanes
    count = properties["multiProcessorCount"]
    return DeviceInfo(
        kind=DeviceKind.CUDA,
        name=properties["name"].decode(),
        arch=arch,
        uuid=clocks.uuid,
        driver=_cuda_version(cupy.cuda.runtime.driverGetVersion()),
        cuda_runtime=_cuda_version(cupy.cuda.runtime.runtimeGetVersion()),
        baseline_version=import_module(on_gpu).baseline_version() if on_gpu else None,
        multiprocessors=count,
        max_clock_mhz=clock_mhz,
        memory_gb_per_s=clocks.memory_gb_per_s,
        l2_bytes=properties["l2CacheSize"],
        fp32_peak_tflops=count * lanes * 2 * clock_mhz * 1e6 / 1e12,
        notes=clocks.notes,
    )


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
