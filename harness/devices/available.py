"""Find the GPUs that the cuda device can use, and what makes their times less steady."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _nvml() -> Iterator[int]:
    """Give the number of GPUs while NVML can be used. Raises NVMLError."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml.nvmlDeviceGetCount()
    finally:
        pynvml.nvmlShutdown()


def why_no_cuda() -> str | None:
    """Return why the cuda device cannot be used here; None if it can."""
    if importlib.util.find_spec("pynvml") is None or importlib.util.find_spec("cupy") is None:
        return "CuPy and nvidia-ml-py are not installed (nox installs them if it finds a GPU)"
    import pynvml

    try:
        with _nvml() as count:
            return None if count else "there is no NVIDIA GPU"
    except pynvml.NVMLError as error:
        return f"the NVIDIA driver does not answer ({error})"


def arch_of(gpu: str | None) -> str | None:
    """Return the target of the GPU with this UUID, or of all GPUs if they have the same. The driver
    knows it before CUDA has started."""
    import pynvml

    try:
        with _nvml() as count:
            handles = (
                [pynvml.nvmlDeviceGetHandleByUUID(gpu)]
                if gpu is not None
                else [*map(pynvml.nvmlDeviceGetHandleByIndex, range(count))]
            )
            capabilities = map(pynvml.nvmlDeviceGetCudaComputeCapability, handles)
            found = {arch_named(*map(int, each)) for each in capabilities}
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

    with _nvml() as count:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(count))
        return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]


def notes(*, drives_display: bool, ends_long_kernels: bool, wsl: bool) -> tuple[str, ...]:
    """Return a message for each property of a GPU that affects verdicts or scores.

    ends_long_kernels: the driver ends kernels after some seconds, so that the display does not
        freeze.
    """
    found = {
        "this GPU also drives a display, so its scores are less steady: to compare them with those "
        "of others, end the desktop session or grade on another GPU": drives_display,
        "the driver of this GPU ends a kernel after some seconds, because it drives a display: a "
        "slow kernel gets the verdict time-limit sooner than elsewhere": ends_long_kernels,
        "this is WSL 2, where launches wait for Windows and the driver tells less of clocks and "
        "power: verdicts hold, scores are less steady than under Linux": wsl,
    }
    return tuple(message for message, holds in found.items() if holds)
