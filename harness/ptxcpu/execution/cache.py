"""Keeps machine code on disk, by the content it was made from.

Machine code is run as it is read, so the directory belongs to the user alone and is not used if
it does not, and every entry is authenticated: by its content and its key together, under a secret
of the directory. One that does not match counts as absent and is written anew. Several processes
may share a directory: entries are written aside and moved into place.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

SECRET_NAME = "secret"
MAX_BYTES = 256 << 20  # bytes of all entries; the oldest go first

WAIT_SECONDS = 30.0
"""Several times what the runtime takes to compile."""

_LOOK_AGAIN_SECONDS = 0.05


class Cache:
    """Entries by key. A directory that cannot be used is as good as an empty one."""

    def __init__(self, directory: Path) -> None:
        self._directory = _own(directory / "cpu")
        self._secret = _secret(self._directory) if self._directory else None

    def get(self, key: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
        """The entry for `key`, made and kept if it is not there."""
        if self._directory is None or self._secret is None:
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
        """Inside, no other process with this directory is: the next finds what this one makes.
        Whoever keeps the others out is not waited for long."""
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

    def _code(self, path: Path, content: bytes) -> bytes:
        """What authenticates an entry."""
        assert self._secret is not None
        return hmac.digest(self._secret, path.name.encode() + content, "sha256")

    def _read(self, path: Path) -> bytes | None:
        try:
            kept = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        code, content = kept[:32], kept[32:]
        return content if hmac.compare_digest(code, self._code(path, content)) else None

    def _write(self, path: Path, content: bytes) -> None:
        try:
            handle, aside = tempfile.mkstemp(dir=path.parent, prefix="new-")
            with os.fdopen(handle, "wb") as file:
                file.write(self._code(path, content) + content)
            Path(aside).replace(path)
            self._forget_oldest()
        except OSError:  # a full or read-only disk: go on without
            return

    def _forget_oldest(self) -> None:
        assert self._directory is not None
        found = [
            (e.stat().st_mtime, e.stat().st_size, e.path)
            for e in os.scandir(self._directory)
            if e.name != SECRET_NAME
        ]
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= MAX_BYTES:
                return
            Path(path).unlink()
            total -= size


def _locked(file: int) -> bool:
    """Whether this process has the file's lock now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _secret(directory: Path) -> bytes | None:
    """The directory's secret, made by whoever comes first."""
    path = directory / SECRET_NAME
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix="new-") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
        found = path.read_bytes()
    except OSError:
        return None
    return found if len(found) == 32 else None


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
