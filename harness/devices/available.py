"""Whether there is a GPU that the cuda device can use."""

from __future__ import annotations

import importlib.util


def why_no_cuda() -> str | None:
    """Why the cuda device cannot be used here; None if it can."""
    if importlib.util.find_spec("pynvml") is None or importlib.util.find_spec("cupy") is None:
        return "CuPy and nvidia-ml-py are not installed (nox installs them where it sees a GPU)"
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"the NVIDIA driver does not answer ({error})"
    return None if count else "there is no NVIDIA GPU"


def gpus() -> list[str]:
    """The UUIDs of this machine's GPUs, in the driver's order."""
    import pynvml

    pynvml.nvmlInit()
    try:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
