"""Who has a GPU: one who measures, alone, or several who verify and sanitize. First come, first
served.

Whoever comes takes a ticket: a file with the next number, in a folder that stays. A ticket counts
while its holder has the system's lock on it (flock), which is gone when the holder is, however that
came about. Whose turn it is follows from the tickets before one's own: who shares waits for those
who want the GPU alone, who wants it alone waits for all.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.judge.progress import Progress
from harness.protocol.errors import UsageError

if sys.platform != "win32":
    import fcntl

WAIT_SECONDS = 900.0
"""A grading takes a minute or two; after longer something is wrong."""

_LOOK_AGAIN_SECONDS = 0.05


class Use(StrEnum):
    """What somebody wants a GPU for."""

    SHARED = "shared"
    ALONE = "alone"


class GpuBusy(UsageError):
    """Others kept the GPU for longer than one waits."""


def tickets_of(gpu: str) -> Path:
    """The folder with the tickets for a GPU. gpu: its UUID."""
    return Path(tempfile.gettempdir(), f"matmul-arena.{re.sub(r'[^A-Za-z0-9-]', '_', gpu)}")


@contextmanager
def hold_gpu(
    gpu: str, use: Use, progress: Progress, seconds: float = WAIT_SECONDS
) -> Iterator[None]:
    """Inside, no grading of this machine is on the GPU that one may not share it with.

    gpu: its UUID. Raises GpuBusy after so many seconds of waiting.
    """
    if sys.platform == "win32":  # it has no flock
        yield
        return
    folder = tickets_of(gpu)
    with closing(_Ticket.take(folder, use)) as ticket:
        deadline = time.monotonic() + seconds
        while ticket.must_wait():
            if time.monotonic() > deadline:
                raise GpuBusy(
                    f"another grading has held this GPU for {seconds:g} s ({folder}); "
                    "grade again when it is over"
                )
            progress.step("waiting: another grading is on this GPU")
            time.sleep(_LOOK_AGAIN_SECONDS)
        yield


@contextmanager
def share_gpu_if_free(gpu: str) -> Iterator[bool]:
    """Inside, if true, nobody measures on the GPU; false where somebody does or waits to."""
    if sys.platform == "win32":
        yield True
        return
    with closing(_Ticket.take(tickets_of(gpu), Use.SHARED)) as ticket:
        yield not ticket.must_wait()


@dataclass(frozen=True, slots=True)
class _Ticket:
    """A place in the line for a GPU."""

    path: Path
    number: int
    use: Use
    file: int
    """Opened, with the lock on it."""

    @classmethod
    def take(cls, folder: Path, use: Use) -> _Ticket:
        """The next one. Raises UsageError where this user may not."""
        try:
            with _door(folder):
                return cls._next(folder, use)
        except OSError as error:
            message = f"no ticket for this GPU can be had in {folder}: {error.strerror}"
            raise UsageError(message) from None

    @classmethod
    def _next(cls, folder: Path, use: Use) -> _Ticket:
        last = 0
        for path, number, _ in _all(folder):
            last = max(last, number)
            if not _counts(path):
                with suppress(OSError):  # of another user, whose files only that one can remove
                    path.unlink()
        path = folder / f"{last + 1}-{use}"
        file = _created(path)
        fcntl.flock(file, fcntl.LOCK_EX)
        return cls(path, last + 1, use, file)

    def must_wait(self) -> bool:
        return any(
            _counts(path)
            for path, number, use in _all(self.path.parent)
            if number < self.number and Use.ALONE in (use, self.use)
        )

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.file)


@contextmanager
def _door(folder: Path) -> Iterator[None]:
    """Inside, nobody else takes a ticket. The folder is for every user of this machine, as that for
    temporary files is."""
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)
    path = folder / "door"
    try:
        file = _created(path)
    except FileExistsError:
        file = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _created(path: Path) -> int:
    """A file that others can open for reading, which is all that flock asks for."""
    file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL)
    os.fchmod(file, 0o644)
    return file


def _all(folder: Path) -> Iterator[tuple[Path, int, Use]]:
    """All tickets, those that no longer count among them."""
    for path in folder.iterdir():
        number, _, use = path.name.partition("-")
        if number.isdecimal() and use in tuple(Use):
            yield path, int(number), Use(use)


def _counts(path: Path) -> bool:
    """Whether its holder is there."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
