"""What a GPU says of its own health, through NVML: limits, temperature, memory errors."""

from __future__ import annotations

from collections.abc import Callable

from harness.protocol.report import Value


class Health(Value):
    """What this GPU and its driver do not tell is None."""

    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    default_power_limit_w: float | None = None
    max_clock_mhz: int | None = None
    ecc: bool | None = None
    """Whether memory errors are corrected and counted."""
    corrected_errors: int | None = None
    uncorrected_errors: int | None = None
    """Since the driver was loaded."""
    uncorrected_errors_ever: int | None = None
    rows_remapped_after_errors: int | None = None
    remapping_failed: bool | None = None


def health(uuid: str) -> Health:
    """Of the GPU with this UUID. Raises NVMLError where there is none."""
    import pynvml as nvml

    nvml.nvmlInit()
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)

        def told(ask: Callable[[], object]) -> object:
            try:
                return ask()
            except (nvml.NVMLError, AttributeError):  # not this GPU, or not this driver
                return None

        def errors(kind: int, counter: int) -> object:
            return told(lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter))

        def watts(ask: Callable[[object], int]) -> object:
            found = told(lambda: ask(handle))
            return found / 1000 if isinstance(found, int) else None

        modes = told(lambda: nvml.nvmlDeviceGetEccMode(handle))
        rows = told(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
        now, ever = nvml.NVML_VOLATILE_ECC, nvml.NVML_AGGREGATE_ECC
        corrected = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
        uncorrected = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        return Health.model_validate(
            {
                "temperature_c": told(
                    lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
                ),
                "power_w": watts(nvml.nvmlDeviceGetPowerUsage),
                "power_limit_w": watts(nvml.nvmlDeviceGetEnforcedPowerLimit),
                "default_power_limit_w": watts(nvml.nvmlDeviceGetPowerManagementDefaultLimit),
                "max_clock_mhz": told(
                    lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
                ),
                "ecc": bool(modes[0]) if isinstance(modes, (list, tuple)) else None,
                "corrected_errors": errors(corrected, now),
                "uncorrected_errors": errors(uncorrected, now),
                "uncorrected_errors_ever": errors(uncorrected, ever),
                "rows_remapped_after_errors": (
                    rows[1] if isinstance(rows, (list, tuple)) else None
                ),
                "remapping_failed": (bool(rows[3]) if isinstance(rows, (list, tuple)) else None),
            }
        )
    finally:
        nvml.nvmlShutdown()
