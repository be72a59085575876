"""The main loop of a worker process, which compiles, runs or checks a kernel.

entry_point.py starts it. It answers requests until the judge hangs up. Only workers use a GPU.
Standard output belongs to the kernel.
"""

import ctypes
import os
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from pydantic import TypeAdapter

from harness.judge.workers import channel
from harness.judge.workers.isolation import Role
from harness.protocol.device import Finished
from harness.protocol.errors import crash
from harness.protocol.report import MAX_PRINTED, Value
from harness.protocol.request import Fault, Request, request_named


class WorkerReady(Value):
    """The first message of a worker: it is ready, under these restrictions."""

    isolation: tuple[str, ...]


def main(role: Role, connection: Connection, enforced: tuple[str, ...]) -> None:
    """Serve one role until the judge hangs up. enforced: the restrictions of this process."""
    capture = OutputCapture()
    answer = _answering(role)
    channel.send(connection, WorkerReady(isolation=enforced))
    while True:
        try:
            request = channel.receive(connection, lambda name: TypeAdapter(request_named(name)))
        except (EOFError, OSError):
            return
        try:
            result = answer(request)
        except Exception as error:
            message, details = crash(error)
            result = Fault(cause="judge", message=message, details=details)
        if isinstance(result, Finished | Fault):
            result = result.model_copy(update={"printed": result.printed + capture.take()})
        channel.send(connection, result)


def _answering(role: Role) -> Callable[[Request[Any]], Value]:
    """Load what a role needs, and return what answers its requests."""
    match role:
        case Role.COMPILER:
            from harness.compiling import compiler, headers
            from harness.ptxcpu import nvrtc

            headers.include_directories()
            nvrtc.version()  # loads NVRTC while its files can still be read
            return compiler.answer
        case Role.CUDA:
            from harness.devices.cuda.device import CudaDevice

            return CudaDevice().ask
        case Role.SANITIZER:
            from harness.devices.cuda.sanitizer import CudaSanitizer

            return CudaSanitizer().answer
        case Role.CHECKER:
            from harness.devices.cuda.checker import CudaChecker

            return CudaChecker().ask
        case Role.CPU:
            from harness.devices.cpu.device import CpuDevice

            return CpuDevice().answer


_POLL_SECONDS = 0.005
"""The pipe is emptied so often: a full one would stop the kernel that prints."""


class OutputCapture:
    """Takes over the standard output of this process for good."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.close(writing)
        os.set_blocking(self._reading, False)
        self._kept = bytearray()
        self._lock = threading.Lock()
        threading.Thread(target=self._drain_for_ever, daemon=True).start()

    def take(self) -> str:
        """Return what was printed since the last call, at most MAX_PRINTED bytes."""
        ctypes.CDLL(None).fflush(None)
        self._drain()
        with self._lock:
            text = self._kept.decode(errors="replace")
            self._kept.clear()
        return text

    def _drain(self) -> None:
        with self._lock:
            while True:
                try:
                    chunk = os.read(self._reading, 65_536)
                except BlockingIOError:
                    return
                self._kept += chunk[: MAX_PRINTED - len(self._kept)]

    def _drain_for_ever(self) -> None:
        while True:
            time.sleep(_POLL_SECONDS)
            self._drain()
