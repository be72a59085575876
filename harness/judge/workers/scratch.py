"""Scratch folders of workers, removed with their worker or before the next grading."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "matmul-arena-"
_NEW_SECONDS = 60.0
"""A younger folder may not have been locked yet."""


class Scratch:
    """A new folder, locked as long as its judge lives."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Remove the folders that killed judges of this user have left."""
    if sys.platform == "win32":
        return
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = path.lstat()
            old = time.time() - status.st_mtime > _NEW_SECONDS
            if path.is_symlink() or not path.is_dir() or not old:
                continue
            if status.st_uid != os.geteuid():
                continue
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(path: Path) -> int | None:
    """Lock a folder and return the handle; None if it is locked, or the system has no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
