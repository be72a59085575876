"""The meaning of errors of CUDA and NVML for a submission."""

from collections.abc import Callable
from typing import Any, Literal

import cupy
import pynvml

from harness.protocol.report import Value
from harness.protocol.request import Fault, Request

CudaError = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError, pynvml.NVMLError)

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
    912: (
        "launch-refused",
        "the grid is no multiple of the kernel's cluster, or that is too large",
    ),
}
"""Codes of cudaError_t and CUresult, which agree where both have them."""

_NO_ANSWER = "the GPU does not answer; see what nvidia-smi says, and grade again when it is back"
_MACHINE_ERRORS: dict[int, str] = {
    3: "the CUDA driver would not start; see what nvidia-smi says",
    35: "the NVIDIA driver is older than the CUDA libraries installed here; update the driver, or "
    "run nox again to install those that the driver can run",
    46: "the GPU is taken: by another program, or its compute mode allows one process only, where "
    "the judge needs several (nvidia-smi -c DEFAULT)",
    100: "there is no GPU any more; grade again when it is back",
    101: "there is no such GPU any more; grade again when it is back",
    214: "the GPU's memory has an uncorrectable error; reset it before grading",
    304: "the operating system refused a request of the CUDA driver, such as memory shared between "
    "processes (in a container, try --ipc=host)",
    801: "this GPU or its driver cannot share memory between processes or wait for a word of it, "
    "as timed launches need; --device cpu gives everything but a score",
    802: _NO_ANSWER,
    803: "the NVIDIA driver and its libraries are of different versions; restart the machine",
    999: _NO_ANSWER,
}
"""Errors of the machine: no kernel causes them."""


def fault(error: Exception) -> Fault:
    if isinstance(error, pynvml.NVMLError):
        return Fault(cause="judge", message=f"{_NO_ANSWER} (NVML: {error})")
    code = getattr(error, "status", None)
    name = str(error).partition(":")[0]
    if code in _CAUSES:
        cause, message = _CAUSES[code]
        return Fault(cause=cause, message=f"{message} ({name})")
    if code in _MACHINE_ERRORS:
        return Fault(cause="judge", message=f"{_MACHINE_ERRORS[code]} ({name})")
    return Fault(cause="judge", message=f"CUDA failed: {error}")


def answer_or_fault(answer: Callable[[Request[Any]], Value], request: Request[Any]) -> Value:
    try:
        return answer(request)
    except CudaError as error:
        return fault(error)
