"""What a grading works with: the processes of one device, and the lock on it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from harness.judge.progress import Progress
from harness.protocol.compiler import Compiler
from harness.protocol.device import Device
from harness.protocol.report import DeviceInfo
from harness.protocol.timing import TimingWorkers


class Stoppable(Protocol):
    """Something that works in a process of its own."""

    def close(self) -> None:
        """End the process, whatever it does; the next request starts another."""
        ...


class StoppableCompiler(Compiler, Stoppable, Protocol):
    """A compiler in a process of its own."""


class StoppableDevice(Device, Stoppable, Protocol):
    """A device in a process of its own."""


class Session(Protocol):
    """The processes of one device; they serve one grading after another."""

    @property
    def arch(self) -> str:
        """The target that kernels are compiled for, such as sm_90a."""
        ...

    @property
    def info(self) -> DeviceInfo:
        """What the device is. Raises JudgeFailure if it does not work."""
        ...

    @property
    def compiler(self) -> StoppableCompiler: ...

    @property
    def device(self) -> StoppableDevice:
        """Runs a kernel to see whether it is correct."""
        ...

    @property
    def sanitizer(self) -> StoppableDevice:
        """Runs a kernel under the sanitizers of the device."""
        ...

    @property
    def cpu_sanitizer(self) -> StoppableDevice | None:
        """A CPU device that checks what a GPU's sanitizers cannot see; None without a GPU."""
        ...

    @property
    def timing(self) -> TimingWorkers | None:
        """The processes that time a kernel; None if times on this device mean nothing."""
        ...

    @property
    def has_own_cores(self) -> bool:
        """Whether its background work disturbs no measurement of another session."""
        ...

    def isolation(self) -> tuple[str, ...]:
        """What the operating system holds the processes to."""
        ...

    def start(self, *, cpu_sanitizer: bool) -> None:
        """Start the processes of a grading. cpu_sanitizer: it will surely be needed."""
        ...

    def renew(self) -> None:
        """End the processes that have seen a submission; others take their place."""
        ...

    def shared_lock(self, progress: Progress) -> AbstractContextManager[None]:
        """Inside, nobody measures on the device. Raises UsageError after a long wait."""
        ...

    def exclusive_lock(self, progress: Progress) -> AbstractContextManager[None]:
        """Inside, nobody else uses the device. Raises UsageError after a long wait."""
        ...

    def timing_of_each(self, count: int) -> AbstractContextManager[Sequence[TimingWorkers]]:
        """Inside, so many kernels can be timed on the same matrices, each in its own process."""
        ...
