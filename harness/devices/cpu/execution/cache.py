"""Keeps machine code on disk, by the content it was made from.

Machine code is run as it is read, so the directory belongs to the user alone and is not used if
it does not. Several processes may share it: entries are written aside and moved into place. An
entry that does not match its checksum counts as absent and is written anew.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

MAX_BYTES = 256 << 20  # bytes of all entries; the oldest go first


class Cache:
    """Entries by key. A directory that cannot be used is as good as an empty one."""

    def __init__(self, directory: Path) -> None:
        self._directory = _own(directory / "cpu")

    def get(self, key: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
        """The entry for `key`, made and kept if it is not there."""
        if self._directory is None:
            return make()
        name = hashlib.sha256("\0".join(key).encode()).hexdigest()
        path = self._directory / name
        kept = _read(path)
        if kept is None:
            kept = make()
            self._write(path, kept)
        return kept

    def _write(self, path: Path, content: bytes) -> None:
        try:
            handle, aside = tempfile.mkstemp(dir=path.parent, prefix="new-")
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            Path(aside).replace(path)
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


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    checksum, entry = content[:32], content[32:]
    return entry if hashlib.sha256(entry).digest() == checksum else None


def _own(directory: Path) -> Path | None:
    """The directory, made if need be, if it is ours and nobody else can write there."""
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
