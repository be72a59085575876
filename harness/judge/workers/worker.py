"""The judge's side of a worker process: requests with a time limit, and the handling of its end."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter

from harness.judge.workers import channel, processes
from harness.judge.workers import cores as cores_of
from harness.judge.workers.isolation import Role
from harness.judge.workers.processes import LOG, Child, processes_of_session
from harness.judge.workers.server import WorkerReady
from harness.protocol.device import Load
from harness.protocol.errors import without_paths
from harness.protocol.report import Value
from harness.protocol.request import GRACE_SECONDS, Answer_co, Fault, Request, answer_to

T = TypeVar("T", bound=Value)

START_SECONDS = 60.0
"""Time limit of a worker's start, imports and a GPU context included."""


class Worker:
    """A child process that answers requests. It starts when first asked; a fault ends it."""

    def __init__(self, role: Role, gpu: str | None = None) -> None:
        """gpu: the UUID of the only GPU that the process can see."""
        self.role = role
        self._gpu = gpu
        self._cores: frozenset[int] | None = None
        self.isolation: tuple[str, ...] = ()
        self._child: Child | None = None
        self._load: Load | None = None
        self._asking, self._starting, self._closing = Lock(), Lock(), Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """Return the process id of the child while it runs."""
        return self._child.process.pid if self._child else None

    @property
    def scratch(self) -> Path | None:
        """Return the folder of the child while it runs."""
        return self._child.scratch.path if self._child else None

    def start(self) -> None:
        """Start the child without waiting until it is ready; `ask` reports a failure."""
        with suppress(OSError):
            self._started()

    def set_affinity(self, cores: frozenset[int] | None) -> None:
        """Restrict the child, and every later child, to these cores; None changes nothing."""
        self._cores = cores
        if self._child is not None and cores is not None:
            cores_of.set_affinity(self._child.process.pid, cores)

    def _started(self) -> Child:
        """Return the child, after starting it if necessary. There is only one at a time."""
        with self._starting:
            if self._child is None:
                child = processes.ahead.pop(self.role, None) or processes.start(
                    self.role, self._gpu
                )
                if self._cores is not None:
                    cores_of.set_affinity(child.process.pid, self._cores)
                self._child = child
            return self._child

    def ask(self, request: Request[Answer_co]) -> Answer_co | Fault:
        """Return the child's answer, or a Fault.

        A Fault ends the child. The next request starts another, which is given the last kernel
        again if the request needs one. Requests of several threads wait for one another.
        """
        with self._asking:
            return self._ask(request)

    def _ask(self, request: Request[Answer_co]) -> Answer_co | Fault:
        try:
            child = self._started()
        except OSError as error:
            return judge_fault(f"no {self.role} worker can be started", without_paths(str(error)))
        if not child.is_ready:
            started = self._exchange(child, None, _WORKER_READY, START_SECONDS)
            if isinstance(started, Fault):
                return started
            self.isolation = started.isolation
            child.is_ready = True
        if isinstance(request, Load):
            self._load = child.load = request
        elif request.needs_kernel and self._load is not None and child.load is not self._load:
            child.load = self._load
            ready = self._send(child, self._load)
            if isinstance(ready, Fault):
                return ready
        return self._send(child, request)

    def close(self) -> None:
        """End the child and the processes that it started, and remove its files."""
        with self._closing:
            child, self._child = self._child, None
            if child is not None:
                child.end()

    def _send(self, child: Child, request: Request[Answer_co]) -> Answer_co | Fault:
        translates = self.role is Role.CPU and request.needs_kernel
        limit = request.time_limit + (TRANSLATION_SECONDS if translates else 0)
        return self._exchange(child, request, answer_to(type(request)), limit)

    def _exchange(
        self,
        child: Child,
        request: Request[Any] | None,
        answer: TypeAdapter[T | Fault],
        seconds: float,
    ) -> T | Fault:
        expired, answered = threading.Event(), threading.Event()
        timer: threading.Timer
        began = last = child.processor_seconds({child.process.pid})

        def expire() -> None:
            nonlocal timer, last
            session = processes_of_session(child.process.pid)
            used = child.processor_seconds({child.process.pid, *session})
            left = seconds - (used - began)
            if answered.is_set():
                return
            waits = used == last and not _can_progress({child.process.pid, *session})
            if self.role in _LIMITED_BY_PROCESSOR_TIME and left > 0 and not waits:
                last = used
                timer = _timer(max(left, 0.1), expire)
                timer.start()
            else:
                expired.set()
                child.kill()

        timer = _timer(seconds, expire)
        try:
            timer.start()
            if request is not None:
                channel.send(child.connection, request)
            received = channel.receive(child.connection, lambda _: answer)
        except (EOFError, OSError):
            fault = _how_it_ended(child)
            if expired.is_set():
                fault = Fault(cause="time-limit", message=f"no end within {seconds:g} s")
            self.close()
            return fault
        except (ValueError, MemoryError) as error:
            self.close()
            return judge_fault(
                f"the {self.role} worker sent an invalid answer", without_paths(str(error))
            )
        finally:
            answered.set()
            timer.cancel()
        if isinstance(received, Fault):
            self.close()
        return received


def _timer(seconds: float, work: Callable[[], None]) -> threading.Timer:
    """Return a timer that does not keep an interrupted command from its end."""
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    return timer


TRANSLATION_SECONDS = 120.0
"""The seconds of the processor that a slow machine may need to translate a large kernel for the CPU
device. They come in addition to the time limit of a launch. The device itself stops launches in
time."""

_LIMITED_BY_PROCESSOR_TIME = (Role.COMPILER, Role.CPU)
"""Workers whose verdicts must not depend on the load of the machine. Their time limits count
processor time while the process is running or ready to run."""


def _how_it_ended(child: Child) -> Fault:
    """Return the Fault of a child that ended by itself."""
    try:
        code = child.process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return judge_fault(f"the {child.role} worker closed its connection")
    log = child.scratch.path / LOG
    details = without_paths(log.read_text(errors="replace")[-4096:]) if log.is_file() else ""
    if code < 0:
        name = signal.Signals(-code).name
        message = f"the {child.role} worker was ended by {name}"
        return judge_fault(message, details).model_copy(update={"signal": name})
    return judge_fault(f"the {child.role} worker ended with exit code {code}", details)


def _can_progress(processes: Iterable[int]) -> bool:
    """Return whether a thread of these processes is running, ready to run, or stopped."""
    for process in processes:
        for place in Path(f"/proc/{process}/task").glob("*/stat"):
            with suppress(OSError):  # the thread has just ended
                if place.read_text().rpartition(")")[2].split()[0] in ("R", "T"):
                    return True
    return False


def judge_fault(message: str, details: str = "") -> Fault:
    return Fault(cause="judge", message=message, details=details)


_WORKER_READY: TypeAdapter[WorkerReady | Fault] = TypeAdapter(WorkerReady | Fault)
