"""What the CUDA runtime's error codes mean for a submission."""

from __future__ import annotations

from typing import Literal

import cupy

from harness.devices.device import Fault

CudaError = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)

_Cause = Literal["memory", "trap", "launch-refused", "time-limit", "out-of-memory"]

_CAUSES: dict[int, tuple[_Cause, str]] = {
    2: ("out-of-memory", "the GPU has not enough memory"),
    1: ("launch-refused", "the GPU refused the launch"),
    98: ("launch-refused", "the GPU refused the launch"),
    209: ("launch-refused", "the machine code is not for this GPU"),
    700: ("memory", "the GPU stopped the kernel at an illegal memory access"),
    701: ("launch-refused", "the launch takes more resources than the GPU has"),
    702: ("time-limit", "the driver stopped a kernel that ran too long"),
    710: ("trap", "an assert in the kernel failed"),
    714: ("trap", "the GPU stopped the kernel at an error on its stack"),
    715: ("trap", "the kernel executed a trap or an illegal instruction"),
    716: ("memory", "the GPU stopped the kernel at a misaligned address"),
    717: ("memory", "the GPU stopped the kernel at an access to the wrong address space"),
    718: ("trap", "the GPU stopped the kernel at an invalid program counter"),
    719: ("trap", "the GPU stopped the kernel: unspecified launch failure"),
    720: ("launch-refused", "the cooperative launch is too large"),
}
"""Codes of cudaError_t and CUresult, which agree where both have them."""


def fault(error: Exception) -> Fault:
    """The Fault for an error of the CUDA runtime or driver."""
    code = getattr(error, "status", None)
    name = str(error).partition(":")[0]
    if code in _CAUSES:
        cause, message = _CAUSES[code]
        return Fault(cause=cause, message=f"{message} ({name})")
    return Fault(cause="judge", message=f"CUDA failed: {error}")
