"""The meaning of errors of CUDA and NVML for a submission."""

from collections.abc import Callable
from typing import Any, Literal

import cupy
import pynvml

from harness.protocol.report import Value
from harness.protocol.request import Fault, Request

CudaError = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError, pynvml.NVMLError)

_Cause = Literal["memory", "trap", "launch-refused", "time-limit", "out-of-memory"]

_CAUSES: dict[_Cause, tuple[str, tuple[int, ...]]] = {
    "out-of-memory": ("the GPU has not enough memory", (2,)),
    "launch-refused": ("the GPU refused the launch", (1, 98, 209, 701, 720, 912)),
    "memory": ("the GPU stopped the kernel", (700, 716, 717)),
    "time-limit": ("the driver stopped a kernel that ran too long", (702,)),
    "trap": ("the GPU stopped the kernel", (710, 714, 715, 718, 719)),
}
"""Codes of cudaError_t and CUresult, which agree where both have them. CUDA's own words follow."""

_NO_ANSWER = "the GPU does not answer; see what nvidia-smi says, and grade again when it is back"
_MACHINE_ERRORS: dict[int, str] = {
    3: "the CUDA driver could not be initialised; see what nvidia-smi says",
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
    for cause, (message, codes) in _CAUSES.items():
        if code in codes:
            return Fault(cause=cause, message=f"{message} ({error})")
    if code in _MACHINE_ERRORS:
        return Fault(cause="judge", message=f"{_MACHINE_ERRORS[code]} ({name})")
    return Fault(cause="judge", message=f"CUDA failed: {error}")


def answer_or_fault(answer: Callable[[Request[Any]], Value], request: Request[Any]) -> Value:
    """Answer a request; a CudaError becomes a Fault."""
    try:
        return answer(request)
    except CudaError as error:
        return fault(error)
