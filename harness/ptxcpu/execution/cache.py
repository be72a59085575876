"""A cache of machine code on disk, by the content that it was generated from.

Machine code is executed as it is read. So the directory is used only if no one but the user can
write to it. Every entry begins with a checksum of its name and its content. An entry that does not
match is damaged: it counts as absent and is written again. Several processes may share a directory:
entries are written to temporary files and renamed.
"""

import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

MAX_BYTES = 256 << 20  # bytes of all entries; the oldest go first

WAIT_SECONDS = 30.0
"""Several times the time to compile the runtime."""

_LOOK_AGAIN_SECONDS = 0.05

_CLEANING_PREFIX = "0"
"""After an entry whose name begins so is written, the oldest entries are removed: one write in 16.
To list all entries takes 20 ms."""


class Cache:
    """Entries by key. A directory that cannot be used is treated as empty."""

    def __init__(self, directory: Path) -> None:
        self._directory = _own(directory / "cpu")

    def get(self, key: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
        """Return the entry for `key`. If it is absent, make and store it."""
        if self._directory is None:
            return make()
        name = hashlib.sha256("\0".join(key).encode()).hexdigest()
        path = self._directory / name
        kept = self._read(path)
        if kept is None:
            kept = make()
            self._write(path, kept)
        return kept

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Hold a lock of the directory, so that other processes find the entries that this one
        makes. The wait for the lock is bounded."""
        if self._directory is None or sys.platform == "win32":  # it has no flock
            yield
            return
        folder = os.open(self._directory, os.O_RDONLY)
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while not _locked(folder) and time.monotonic() < deadline:
                time.sleep(_LOOK_AGAIN_SECONDS)
            yield
        finally:
            os.close(folder)

    def _read(self, path: Path) -> bytes | None:
        try:
            kept = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        checksum, content = kept[:32], kept[32:]
        return content if checksum == _checksum(path, content) else None

    def _write(self, path: Path, content: bytes) -> None:
        try:
            handle, aside = tempfile.mkstemp(dir=path.parent, prefix="new-")
            with os.fdopen(handle, "wb") as file:
                file.write(_checksum(path, content) + content)
            Path(aside).replace(path)
            if path.name.startswith(_CLEANING_PREFIX):
                self._forget_oldest()
        except OSError:  # a full or read-only disk: go on without
            return

    def _forget_oldest(self) -> None:
        assert self._directory is not None
        found = [(e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(self._directory)]
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= MAX_BYTES:
                return
            Path(path).unlink()
            total -= size


def _checksum(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + content).digest()


def _locked(file: int) -> bool:
    """Return whether this process now holds the file's lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _own(directory: Path) -> Path | None:
    """Return the directory, created if necessary, if it is ours and no one else can write to it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return None
        if hasattr(os, "getuid"):
            if status.st_uid != os.getuid():
                return None
            if status.st_mode & 0o077:
                directory.chmod(0o700)
    except OSError:
        return None
    return directory
