"""The CPU sanitizer: a CPU device that works in the background while a GPU does, and sees what the
GPU's own sanitizer cannot."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import Kernel
from harness.protocol.device import (
    Count,
    Counted,
    Load,
    Ready,
    Refusal,
    Sanitize,
    Sanitized,
    Uncounted,
)
from harness.protocol.request import Fault


class CpuSanitizer:
    """A BackgroundSanitizer: one piece of work after the other, in a process of its own."""

    def __init__(self) -> None:
        self.worker = Worker(Role.CPU)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cpu-sanitizer")
        self._kernel: Kernel | None = None
        self._ready: Future[Ready | Refusal | Fault] | None = None

    def load(self, kernel: Kernel) -> None:
        """Begin to translate the kernel, which takes seconds for a large one."""
        if kernel is self._kernel:
            return
        self._kernel = kernel
        request = Load(kernel=kernel, mostly_watched=True)
        self._ready = self._thread.submit(self.worker.ask, request)

    def sanitize(self, request: Sanitize) -> Future[Sanitized | Refusal | Fault]:
        return self._thread.submit(self._sanitize, request)

    def count(self, request: Count) -> Future[Counted | Uncounted | Fault]:
        return self._thread.submit(self.worker.ask, request)

    def reset(self) -> None:
        """End the process, and with it whatever it was asked for."""
        self.worker.close()
        self._thread.shutdown(cancel_futures=True)
        self.worker.close()  # what had just begun may have started another
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cpu-sanitizer")
        self._kernel = self._ready = None

    def _sanitize(self, request: Sanitize) -> Sanitized | Refusal | Fault:
        assert self._ready is not None, "load a kernel first"
        ready = self._ready.result()
        return ready if isinstance(ready, Refusal | Fault) else self.worker.ask(request)
