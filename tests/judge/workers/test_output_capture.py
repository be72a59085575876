"""Printed text is kept up to a limit."""

import ctypes
import os
from typing import Any

from harness.judge.workers.server import OutputCapture
from harness.protocol.report import MAX_PRINTED
from tests.forked import in_fork


def captured(*parts: bytes) -> Any:
    """Return what is captured after each part was written to standard output."""

    def work() -> list[str]:
        capture, taken = OutputCapture(), []
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[os.write(1, view) :]
            taken.append(capture.take())
        return taken

    return in_fork(work)


def test_a_flood_is_read_and_only_its_beginning_kept() -> None:
    """The text is longer than the buffer of a pipe, which therefore must be read all the time."""
    flood = b"first" + b"x" * (MAX_PRINTED + (3 << 20))
    kept, after = captured(flood, b"next")
    assert kept == flood[:MAX_PRINTED].decode()
    assert after == "next"


def test_the_buffer_of_the_c_library_is_captured() -> None:
    def work() -> str:
        capture = OutputCapture()
        libc = ctypes.CDLL(None)
        libc.printf(b"from C")
        return capture.take()

    assert in_fork(work) == "from C"
