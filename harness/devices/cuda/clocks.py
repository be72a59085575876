"""The GPU's clock, power and reasons for a lowered clock, through NVML."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import pynvml

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

    def read(self) -> Reading:
        reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle)
        return Reading(
            clock_mhz=int(pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM)),
            power_w=pynvml.nvmlDeviceGetPowerUsage(self._handle) / 1000,
            reasons=tuple(name for bit, name in _REASONS.items() if reasons & bit),
        )
