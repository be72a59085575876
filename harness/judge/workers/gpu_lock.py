"""A lock on a GPU for all processes of this machine: exclusive to measure, shared to check kernels.

It is the system's lock on a file (flock), which is released when its process ends. A process that
waits for it holds the lock on a second file, the queue. So a process that waits for the exclusive
lock is not overtaken by others that share it.
"""

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.judge.progress import Progress
from harness.protocol.errors import UsageError

WAIT_SECONDS = 900.0
"""A grading takes a minute or two; a longer wait means that something is wrong."""

_POLL_SECONDS = 0.05


def lock_of(gpu: str) -> Path:
    """Return the file of a GPU's lock. gpu: its UUID."""
    return Path(tempfile.gettempdir(), f"matmul-arena.{re.sub(r'[^A-Za-z0-9-]', '_', gpu)}.lock")


@contextmanager
def hold_gpu(
    gpu: str, progress: Progress, *, exclusive: bool, seconds: float = WAIT_SECONDS
) -> Iterator[None]:
    """Hold the lock on a GPU. Raises UsageError after so many seconds of waiting. gpu: its UUID."""
    path, deadline = lock_of(gpu), time.monotonic() + seconds

    def wait() -> None:
        if time.monotonic() > deadline:
            raise UsageError(
                f"another grading has held this GPU for {seconds:g} s ({path}); "
                "grade again when it is over"
            )
        progress.step("waiting: another grading is on this GPU")
        time.sleep(_POLL_SECONDS)

    queue = _opened(path.with_suffix(".queue"))
    try:
        _lock(queue, fcntl.LOCK_EX, wait)
        lock = _opened(path)
        try:
            _lock(lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, wait)
            fcntl.flock(queue, fcntl.LOCK_UN)
            yield
        finally:
            os.close(lock)
    finally:
        os.close(queue)


def _lock(file: int, kind: int, wait: Callable[[], None]) -> None:
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            wait()


def _opened(path: Path) -> int:
    """Open a file that every user of this machine can open for reading; flock asks for no more.
    Raises UsageError."""
    try:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return os.open(path, os.O_RDONLY)
        os.fchmod(file, 0o644)
        return file
    except OSError as error:
        message = f"the GPU cannot be locked: {path} cannot be opened ({error.strerror})"
        raise UsageError(message) from None
