"""Find the GPUs that the cuda device can use."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from harness.protocol.errors import UsageError


def why_no_cuda() -> str | None:
    """Return why the cuda device cannot be used here; None if it can."""
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


def chosen_gpus(text: str, there: Sequence[str]) -> list[str]:
    """Return the UUIDs that a text names: "all", or numbers, UUIDs and their beginnings, separated
    by commas. there: the UUIDs of this machine, in the driver's order. Raises UsageError."""
    if text == "all":
        return list(there)
    chosen: list[str] = []
    for word in text.split(","):
        if word.isascii() and word.isdecimal():
            number = int(word)
            meant = [there[number]] if number < len(there) else []
        else:
            meant = [uuid for uuid in there if word and uuid.startswith(word)]
        if len(meant) != 1:
            has = f"{len(there)} of them, from 0" if len(there) > 1 else "one, number 0"
            what = "is more than one GPU" if meant else "is no GPU"
            raise UsageError(
                f"{word!r} {what} of this machine; it has {has}: name numbers or UUIDs with commas "
                "between, or all"
            )
        if meant[0] in chosen:
            raise UsageError(f"GPU {word} is named twice")
        chosen += meant
    return chosen


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
