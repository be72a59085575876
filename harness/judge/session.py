"""A session: the processes of one device, and the lock on it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from harness.judge.progress import Progress
from harness.protocol.report import DeviceInfo
from harness.protocol.request import Process
from harness.protocol.timing import TimingWorkers


class Session(Protocol):
    """The processes of one device; they serve one grading after another."""

    @property
    def arch(self) -> str:
        """Return the target that kernels are compiled for, such as sm_90a."""

    @property
    def info(self) -> DeviceInfo:
        """Return the description of the device. Raises JudgeFailure if it does not work."""

    @property
    def compiler(self) -> Process: ...

    @property
    def device(self) -> Process:
        """Return the device that verifies kernels."""

    @property
    def sanitizer(self) -> Process:
        """Return the device that runs kernels under its sanitizers."""

    @property
    def cpu_sanitizer(self) -> Process | None:
        """Return the CPU device that checks more than a GPU's sanitizers; None without a GPU."""

    @property
    def timing(self) -> TimingWorkers | None:
        """Return the processes that time a kernel; None without a GPU."""

    @property
    def has_own_cores(self) -> bool:
        """Return whether background work disturbs no measurement of another session."""

    def isolation(self) -> tuple[str, ...]:
        """Return the restrictions that the operating system enforces on the processes."""

    def start(self, *, cpu_sanitizer: bool) -> None:
        """Start the processes of a grading. cpu_sanitizer: a CPU device that only sanitizes will
        surely be needed."""

    def renew(self) -> None:
        """End the processes that have seen a submission; others take their place."""

    def shared_lock(self, progress: Progress) -> AbstractContextManager[None]:
        """Inside, no other session measures on the device. Raises UsageError after a long wait."""

    def exclusive_lock(self, progress: Progress) -> AbstractContextManager[None]:
        """Inside, no other session uses the device. Raises UsageError after a long wait."""

    def timing_of_each(self, count: int) -> AbstractContextManager[Sequence[TimingWorkers]]:
        """Inside, so many kernels can be timed on the same matrices, each in its own process."""
