"""Start the process of a worker, in a scratch folder that is removed with it.

A command that compiles does this before it loads its libraries, so this module imports little.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from harness.judge.workers.cores import set_session_niceness
from harness.judge.workers.isolation import CACHE_VARIABLE, SCRATCH_VARIABLE, Role
from harness.protocol.files import cache_directory

ROOT = Path(__file__).resolve().parents[3]

LOG = "worker.log"
"""The file for a worker's standard error, in its scratch folder."""

KILLING_SECONDS = 5.0
"""How long the programs of a killed worker are waited for."""

_starter = ThreadPoolExecutor(1, thread_name_prefix="worker-starter")
"""A thread that lasts as long as this process. A worker ends with its parent (isolation), and Linux
regards the thread that started it as its parent."""

_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "LANG")
"""The user's environment variables that a worker gets: those that find programs and the GPU."""


@dataclass(eq=False)
class Child:
    """A running worker process."""

    role: Role
    process: subprocess.Popen[bytes]
    connection: Connection
    scratch: Scratch
    is_ready: bool = False
    load: object = None
    """The request of the kernel that it was given last."""

    def end(self) -> None:
        """End the child and the processes that it started, and remove its files."""
        self.kill()
        self.process.wait()
        self.connection.close()
        self.scratch.remove()
        _running.discard(self)

    def kill(self) -> None:
        """Kill the child's whole session, in which tools have process groups of their own."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()
        if self.role in (Role.CUDA, Role.SANITIZER):
            deadline = time.monotonic() + KILLING_SECONDS
            while left := processes_of_session(self.process.pid) - {self.process.pid}:
                for process in left:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                if time.monotonic() > deadline:  # the driver ends it later
                    break
                time.sleep(0.005)

    def processor_seconds(self, processes: Iterable[int]) -> float:
        """Return the processor time that these processes of the child's session have used, and the
        children of its leader that have ended."""
        ticks = 0
        for process in processes:
            with suppress(OSError, IndexError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                counted = fields[11:15] if process == self.process.pid else fields[11:13]
                ticks += sum(map(int, counted))
        return ticks / os.sysconf("SC_CLK_TCK")


def processes_of_session(leader: int) -> set[int]:
    """Return the living processes of a session, if the system lists them."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):  # the process has just ended
            state, _, _, session, *_ = place.read_text().rpartition(")")[2].split()
            if int(session) == leader and state not in ("Z", "X"):
                found.add(int(place.parent.name))
    return found


_running: set[Child] = set()
_starting = threading.RLock()

ahead: dict[Role, Child] = {}
"""Processes that no worker uses yet; the first worker of a role takes its process."""


def start_ahead(role: Role) -> None:
    """Start a process for the first worker of this role; the worker reports a failure."""
    with suppress(OSError, RuntimeError):
        ahead[role] = start(role, None)
        atexit.register(end_ahead)


def end_ahead() -> None:
    """End the processes that no worker has taken, and remove their folders."""
    for role in [*ahead]:
        ahead.pop(role).end()


@contextmanager
def no_children() -> Iterator[None]:
    """End all child processes, and prevent new ones inside this context.

    A process needs this before `os._exit`, after which its other threads cannot end their children.
    """
    with _starting:
        for child in tuple(_running):
            with suppress(OSError):  # another thread may be ending it
                child.end()
        yield


def start(role: Role, gpu: str | None) -> Child:
    """Start the process of a worker. Raises OSError or RuntimeError."""
    with _starting:
        child = _start(role, gpu)
        _running.add(child)
        return child


def _start(role: Role, gpu: str | None) -> Child:
    sweep()
    scratch = Scratch()
    ours, theirs = Pipe()
    try:
        with open(scratch.path / LOG, "wb") as log:
            process = _starter.submit(
                subprocess.Popen,
                [
                    sys.executable,
                    "-m",
                    "harness.judge.workers.entry_point",
                    role,
                    str(theirs.fileno()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=scratch.path,
                env=environment(role, scratch.path, gpu),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            ).result()
    except BaseException:
        ours.close()
        scratch.remove()
        raise
    finally:
        theirs.close()
    with suppress(ProcessLookupError):
        set_session_niceness(process.pid)
    return Child(role, process, ours, scratch)


def environment(role: Role, scratch: Path, gpu: str | None = None) -> dict[str, str]:
    """Return the environment of a worker's process.

    A worker may write to the folders that are named in it. Only the CPU device gets the cache of
    machine code, because later gradings execute that. A worker multiplies nothing large, so NumPy
    needs one thread. Looking for plugins of pydantic takes a tenth of a start. A worker launches
    one kernel at a time, so a context needs one queue to the GPU. The driver takes twice as long to
    create the usual eight.
    """
    search = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    cache = {CACHE_VARIABLE: str(cache_directory())} if role is Role.CPU else {}
    visible = {"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
        **visible,
        "PYTHONPATH": os.pathsep.join(search),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "CUDA_CACHE_DISABLE": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
        "PYTHONDONTWRITEBYTECODE": "1",
        SCRATCH_VARIABLE: str(scratch),
        **cache,
    }


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
    """Lock a folder and return the handle; None if it is locked."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
