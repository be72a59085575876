"""The GPU's clock, power and reasons for a lowered clock, through NVML."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import cupy
import pynvml
from cuda.bindings import driver

from harness.devices.available import notes

T = TypeVar("T")

_REASONS = {
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "software thermal slowdown",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hardware thermal slowdown",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of the GPU at one moment."""

    clock_mhz: int
    power_w: float
    reasons: tuple[str, ...]


class Clocks:
    """The GPU that CuPy uses, as NVML sees it."""

    def __init__(self) -> None:
        pynvml.nvmlInit()
        bus = cupy.cuda.runtime.deviceGetPCIBusId(0)
        self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus)

    @property
    def uuid(self) -> str:
        """Return the GPU's permanent name, such as GPU-1f3c…"""
        found = pynvml.nvmlDeviceGetUUID(self._handle)
        return found if isinstance(found, str) else found.decode()

    @property
    def max_mhz(self) -> int:
        """Return the highest clock of the multiprocessors."""
        return int(pynvml.nvmlDeviceGetMaxClockInfo(self._handle, pynvml.NVML_CLOCK_SM))

    @property
    def memory_gb_per_s(self) -> float:
        """Return the bandwidth of the GPU's memory: bus width × highest clock × 2 (DDR)."""
        clock_mhz = pynvml.nvmlDeviceGetMaxClockInfo(self._handle, pynvml.NVML_CLOCK_MEM)
        bits = pynvml.nvmlDeviceGetMemoryBusWidth(self._handle)
        return float(clock_mhz * 2 * bits / 8 / 1000)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a message for each property that makes times on this GPU less steady."""
        displays = supported(pynvml.nvmlDeviceGetDisplayActive, self._handle, 0)
        drawing = supported(pynvml.nvmlDeviceGetGraphicsRunningProcesses, self._handle, list[Any]())
        time_limit = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT
        return notes(
            drives_display=bool(displays or drawing),
            ends_long_kernels=bool(cupy.cuda.runtime.deviceGetAttribute(int(time_limit), 0)),
            wsl="microsoft" in platform.release().lower(),
        )

    def joules(self) -> float | None:
        """Return the energy that the GPU has used since the driver was loaded, if it counts it."""
        millijoules = supported(pynvml.nvmlDeviceGetTotalEnergyConsumption, self._handle, None)
        return None if millijoules is None else millijoules / 1000

    def read(self) -> Reading:
        """Return the present state of the GPU. Values that the driver does not report are 0 or
        empty."""
        reasons = supported(pynvml.nvmlDeviceGetCurrentClocksEventReasons, self._handle, 0)
        return Reading(
            clock_mhz=int(pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM)),
            power_w=supported(pynvml.nvmlDeviceGetPowerUsage, self._handle, 0) / 1000,
            reasons=tuple(name for bit, name in _REASONS.items() if reasons & bit),
        )


def supported(question: Callable[[Any], T], handle: Any, otherwise: T) -> T:
    """Query a value of NVML that not every GPU and driver supports."""
    try:
        return question(handle)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        return otherwise
