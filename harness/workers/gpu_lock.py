"""One grading on a GPU at a time: two would time each other.

The lock is the system's (flock), on a file that stays: it is gone when its holder is, however that
came about.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from harness.errors import UsageError
from harness.progress import Progress
from harness.report import Stage

WAIT_SECONDS = 900.0
"""A grading takes a minute or two; after longer something is wrong."""

_LOOK_AGAIN_SECONDS = 0.2


class GpuBusy(UsageError):
    """Others kept the GPU for longer than one waits."""


def lock_file(gpu: str) -> Path:
    """Where the lock of a GPU lies. gpu: its UUID."""
    return Path(tempfile.gettempdir(), f"matmul-arena.{re.sub(r'[^A-Za-z0-9-]', '_', gpu)}.lock")


@contextmanager
def exclusive_gpu(gpu: str, progress: Progress, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Inside, no other grading of this machine runs on the GPU.

    gpu: its UUID. Raises GpuBusy after so many seconds of waiting.
    """
    if sys.platform == "win32":  # it has no flock
        yield
        return
    import fcntl

    with _open(lock_file(gpu)) as file:
        deadline = time.monotonic() + seconds
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise GpuBusy(
                        f"another grading has held this GPU for {seconds:g} s "
                        f"({lock_file(gpu)}); grade again when it is over"
                    ) from None
            if not waiting:
                waiting = True
                progress.begin(Stage.READ, None)
            progress.step("waiting: another grading is on this GPU")
            time.sleep(_LOOK_AGAIN_SECONDS)
        yield


def _open(path: Path) -> BinaryIO:
    """For reading, which is all that flock asks for: the file may belong to another user."""
    with suppress(FileExistsError):
        path.touch(mode=0o644, exist_ok=False)
    return open(path, "rb")
