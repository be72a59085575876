"""The CPU device beside a GPU: working while the GPU does, it sees what its sanitizer cannot."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from harness.compiling.kernel import Kernel
from harness.devices.device import Count, Fault, Ready, Refusal, Sanitize, Sanitized
from harness.report import Counters
from harness.workers.isolation import Role
from harness.workers.remote import RemoteDevice


class Companion:
    """A CPU device whose work is begun now and asked for later, one piece after the other."""

    def __init__(self) -> None:
        self.device = RemoteDevice(Role.CPU)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="companion")
        self._ready: Future[Ready | Refusal | Fault] | None = None

    def start(self) -> None:
        """Start its process without waiting until it is ready."""
        self.device.worker.start()

    def load(self, kernel: Kernel) -> None:
        """Begin to translate the kernel, which takes seconds for a large one."""
        self._ready = self._thread.submit(self.device.load, kernel)

    def sanitize(self, request: Sanitize) -> Future[Sanitized | Refusal | Fault]:
        """Sanitize the kernel last loaded, or say why it could not be loaded."""
        return self._thread.submit(self._sanitize, request)

    def count(self, request: Count) -> Counters | Fault | None:
        return self._thread.submit(self.device.count, request).result()

    def close(self) -> None:
        """End the process, and with it whatever it was asked for."""
        self.device.close()
        self._thread.shutdown(cancel_futures=True)
        self.device.close()  # what had just begun may have started another

    def _sanitize(self, request: Sanitize) -> Sanitized | Refusal | Fault:
        assert self._ready is not None, "load a kernel first"
        ready = self._ready.result()
        return ready if isinstance(ready, Refusal | Fault) else self.device.sanitize(request)
