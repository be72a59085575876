"""Captures what a kernel prints, bounded: a flood is read and thrown away."""

from __future__ import annotations

import ctypes
import os
import threading
import time

from harness.protocol.report import MAX_PRINTED

_LOOK_AGAIN_SECONDS = 0.005
"""A full pipe would stop the printing process; an empty one costs a look."""


class OutputCapture:
    """Takes over this process's standard output, for good."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.close(writing)
        os.set_blocking(self._reading, False)
        self._kept = bytearray()
        self._lock = threading.Lock()
        threading.Thread(target=self._drain_for_ever, daemon=True).start()

    def take(self) -> str:
        """What was printed since the last call, at most MAX_PRINTED bytes of it."""
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
