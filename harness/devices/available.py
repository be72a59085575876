"""Which device to grade on."""

from __future__ import annotations

import importlib.util
from typing import Literal

from harness.submission import UsageError
from harness.workers.isolation import Role
from harness.workers.remote import RemoteDevice

Choice = Literal["auto", "cuda", "cpu"]


def open_device(choice: Choice) -> RemoteDevice:
    """The device asked for; auto is the GPU where there is one. Raises UsageError."""
    if choice == "cpu":
        return RemoteDevice(Role.CPU)
    missing = why_no_cuda()
    if missing is None:
        return RemoteDevice(Role.CUDA)
    if choice == "cuda":
        raise UsageError(f"cannot grade on a GPU: {missing}; use --device cpu for all but a score")
    return RemoteDevice(Role.CPU)


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
