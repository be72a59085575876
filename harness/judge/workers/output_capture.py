"""Capture what a kernel prints, up to a limit; the rest is read and dropped."""

from __future__ import annotations

import ctypes
import os
import threading
import time

from harness.protocol.report import MAX_PRINTED

_LOOK_AGAIN_SECONDS = 0.005
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
            time.sleep(_LOOK_AGAIN_SECONDS)
            self._drain()
