"""Find the GPUs that the cuda device can use, and what makes their times less steady."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass


def why_no_cuda() -> str | None:
    """Return why the cuda device cannot be used here; None if it can."""
    if importlib.util.find_spec("pynvml") is None or importlib.util.find_spec("cupy") is None:
        return "CuPy and nvidia-ml-py are not installed (nox installs them if it finds a GPU)"
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"the NVIDIA driver does not answer ({error})"
    return None if count else "there is no NVIDIA GPU"


def arch_of(gpu: str | None) -> str | None:
    """Return the target of the GPU with this UUID, or of all GPUs if they have the same. The driver
    knows it before CUDA has started."""
    import pynvml

    try:
        pynvml.nvmlInit()
        try:
            handles = (
                [pynvml.nvmlDeviceGetHandleByUUID(gpu)]
                if gpu is not None
                else map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
            )
            found = {
                arch_named(*map(int, pynvml.nvmlDeviceGetCudaComputeCapability(handle)))
                for handle in handles
            }
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return found.pop() if len(found) == 1 else None


def arch_named(major: int, minor: int) -> str:
    """Return the target of a compute capability. Only architecture-specific targets have all
    instructions of Hopper and later GPUs."""
    return f"sm_{major}{minor}a" if major >= 9 else f"sm_{major}{minor}"


def gpus() -> list[str]:
    """Return the UUIDs of this machine's GPUs, in the driver's order."""
    import pynvml

    pynvml.nvmlInit()
    try:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The use of the GPU by other programs, and properties of its driver."""

    drives_display: bool = False
    drawing_programs: int = 0
    """Programs that use the GPU for graphics."""
    ends_long_kernels: bool = False
    """The driver ends kernels after some seconds, so that the display does not freeze."""
    wsl: bool = False
    """Windows Subsystem for Linux, whose driver lacks some of what Linux has."""


def notes(around: Surroundings) -> tuple[str, ...]:
    """Return a message for each property that affects verdicts or scores."""
    found = []
    if around.drives_display or around.drawing_programs:
        found.append(
            "this GPU also drives a display, so its scores are less steady: to compare them with "
            "those of others, end the desktop session or grade on another GPU"
        )
    if around.ends_long_kernels:
        found.append(
            "the driver of this GPU ends a kernel after some seconds, because it drives a display: "
            "a slow kernel gets the verdict time-limit sooner than elsewhere"
        )
    if around.wsl:
        found.append(
            "this is WSL 2, where launches wait for Windows and the driver tells less of clocks "
            "and power: verdicts hold, scores are less steady than under Linux"
        )
    return tuple(found)
