"""The judge's side of a worker: ask it, within a time limit, and survive whatever becomes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pydantic import TypeAdapter

from harness.compiling.kernel import Compile, Compiled, Kernel
from harness.devices.device import (
    Attach,
    Checked,
    CheckLaunch,
    Count,
    Describe,
    Detach,
    Done,
    DrawInputs,
    Fault,
    Fetched,
    FetchLaunch,
    Finished,
    LaunchTime,
    LayOut,
    Load,
    MeasureFirstLaunch,
    MeasureHostMemory,
    Ready,
    Refusal,
    Run,
    RunBaseline,
    Sanitize,
    Sanitized,
    SharedMatrices,
    TimeLaunch,
    Uncounted,
)
from harness.report import (
    CompileError,
    Counters,
    DeviceInfo,
    FirstLaunch,
    HostMemory,
    RuntimeFault,
    Value,
)
from harness.workers import channel
from harness.workers.isolation import CACHE_VARIABLE, SCRATCH_VARIABLE, Role
from harness.workers.scratch import Scratch, sweep
from harness.workers.worker import Hello
from problem.cases import Matrix

T = TypeVar("T", bound=Value)

ROOT = Path(__file__).resolve().parent.parent.parent

START_SECONDS = 60.0
"""A worker that has not said hello by then never will: imports and a GPU context included."""

ANSWER_SECONDS = 60.0
"""For requests that run no submission's code."""

GRACE_SECONDS = 5.0
"""How much longer than its own limit a worker may take before it is killed: a device that can
stop a launch by itself knows where it was."""

_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "LANG")
"""The worker's environment: nothing of the user's beyond what finds programs and the GPU."""


class Worker:
    """A child process that answers requests; started when first asked, replaced after a fault."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.isolation: tuple[str, ...] = ()
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """The child's process id while there is one."""
        return self._child.process.pid if self._child else None

    @property
    def scratch(self) -> Path | None:
        """The child's folder while there is one."""
        return self._child.scratch.path if self._child else None

    def start(self) -> None:
        """Start the child without waiting until it is ready."""
        if self._child is None:
            self._child = _start(self.role)

    def ask(
        self,
        request: Value,
        answer: TypeAdapter[T],
        matrices: Sequence[Matrix] = (),
        *,
        seconds: float = ANSWER_SECONDS,
    ) -> tuple[T | Fault, list[Matrix]]:
        """The child's answer and its matrices, or the Fault that came of asking.

        answer: what the child may answer, Fault included. After a Fault the child is gone; the
        next request starts another.
        """
        self.start()
        assert self._child is not None
        if not self._child.greeted:
            hello, _ = self._exchange(None, (), _HELLO, START_SECONDS)
            if isinstance(hello, Fault):
                return hello, []
            self.isolation = hello.isolation
            self._child.greeted = True
        return self._exchange(request, matrices, answer, seconds)

    def close(self) -> None:
        """End the child and everything that it started; leave nothing behind."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.process.wait()
            child.connection.close()
            child.scratch.remove()

    def _exchange(
        self,
        request: Value | None,
        matrices: Sequence[Matrix],
        answer: TypeAdapter[T],
        seconds: float,
    ) -> tuple[T | Fault, list[Matrix]]:
        child = self._child
        assert child is not None
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            child.kill()

        timer = threading.Timer(seconds, expire)
        timer.start()
        try:
            if request is not None:
                channel.send(child.connection, request, matrices)
            body, results = channel.receive(child.connection, answer)
        except (EOFError, OSError):
            fault = child.how_it_ended()
            if expired.is_set():
                fault = Fault(cause="time-limit", message=f"no end within {seconds:g} s")
            self.close()
            return fault, []
        except (ValueError, MemoryError) as error:
            self.close()
            return our_fault(f"the {self.role} worker's answer makes no sense", str(error)), []
        finally:
            timer.cancel()
        if isinstance(body, Fault):
            self.close()
        return body, results


@dataclass
class _Child:
    """A running worker process."""

    role: Role
    process: subprocess.Popen[bytes]
    connection: Connection
    scratch: Scratch
    greeted: bool = False

    def kill(self) -> None:
        """Kill the child's whole session."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()

    def how_it_ended(self) -> Fault:
        """What to say of a child that hung up by itself."""
        try:
            code = self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return our_fault(f"the {self.role} worker hung up")
        log = self.scratch.path / _LOG
        details = log.read_text(errors="replace")[-4096:] if log.is_file() else ""
        if code < 0:
            name = signal.Signals(-code).name
            message = f"the {self.role} worker was ended by {name}"
            return our_fault(message, details).model_copy(update={"signal": name})
        return our_fault(f"the {self.role} worker ended with exit code {code}", details)


def _start(role: Role) -> _Child:
    sweep()
    scratch = Scratch()
    ours, theirs = Pipe()
    search = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
        "PYTHONPATH": os.pathsep.join(search),
        "HOME": str(scratch.path),
        "TMPDIR": str(scratch.path),
        "CUDA_CACHE_DISABLE": "1",
        SCRATCH_VARIABLE: str(scratch.path),
        CACHE_VARIABLE: str(cache_directory()),
    }
    try:
        with open(scratch.path / _LOG, "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "harness.workers.confined", role, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=scratch.path,
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        scratch.remove()
        raise
    finally:
        theirs.close()
    return _Child(role, process, ours, scratch)


def cache_directory() -> Path:
    """Where compiled kernels are kept between gradings."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(home) / "matmul-arena"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def our_fault(message: str, details: str = "") -> Fault:
    return Fault(cause="judge", message=message, details=details)


_LOG = "worker.log"
_HELLO: TypeAdapter[Hello | Fault] = TypeAdapter(Hello | Fault)
_COMPILED: TypeAdapter[Compiled | CompileError | RuntimeFault | Fault] = TypeAdapter(
    Compiled | CompileError | RuntimeFault | Fault
)
_INFO: TypeAdapter[DeviceInfo | Fault] = TypeAdapter(DeviceInfo | Fault)
_READY: TypeAdapter[Ready | Refusal | Fault] = TypeAdapter(Ready | Refusal | Fault)
_FINISHED: TypeAdapter[Finished | Fault] = TypeAdapter(Finished | Fault)
_SANITIZED: TypeAdapter[Sanitized | Fault] = TypeAdapter(Sanitized | Fault)
_COUNTED: TypeAdapter[Counters | Uncounted | Fault] = TypeAdapter(Counters | Uncounted | Fault)
_FIRST: TypeAdapter[FirstLaunch | Fault] = TypeAdapter(FirstLaunch | Fault)
_HOST: TypeAdapter[HostMemory | Fault] = TypeAdapter(HostMemory | Fault)
_DONE: TypeAdapter[Done | Fault] = TypeAdapter(Done | Fault)
_LAUNCH_TIME: TypeAdapter[LaunchTime | Fault] = TypeAdapter(LaunchTime | Fault)
_MATRICES: TypeAdapter[SharedMatrices | Fault] = TypeAdapter(SharedMatrices | Fault)
_CHECKED: TypeAdapter[Checked | Fault] = TypeAdapter(Checked | Fault)
_FETCHED: TypeAdapter[Fetched | Fault] = TypeAdapter(Fetched | Fault)


class RemoteCompiler:
    """The compiler, in a worker."""

    def __init__(self) -> None:
        self.worker = Worker(Role.COMPILER)

    def compile(
        self, request: Compile, seconds: float
    ) -> Compiled | CompileError | RuntimeFault | Fault:
        answer, _ = self.worker.ask(request, _COMPILED, seconds=seconds)
        return answer


class RemoteDevice:
    """A device in a worker; the kernel is loaded again into every new worker."""

    def __init__(self, role: Role) -> None:
        self.worker = Worker(role)
        self._fresh = Worker(role)
        self._kernel: Kernel | None = None
        self._loaded_in: int | None = None

    def expect_first_launch(self) -> None:
        """Start the child that `first_launch` will need, while others work."""
        self._fresh.start()

    def close(self) -> None:
        """End all children."""
        self.worker.close()
        self._fresh.close()

    def info(self) -> DeviceInfo | Fault:
        return self.worker.ask(Describe(), _INFO)[0]

    def load(self, kernel: Kernel) -> Ready | Refusal | Fault:
        self._kernel = kernel
        ready = self.worker.ask(Load(kernel=kernel), _READY)[0]
        self._loaded_in = self.worker.process_id
        return ready

    def run(self, request: Run, A: Matrix, B: Matrix) -> tuple[Finished, Matrix] | Fault:
        answer, results = self._with_kernel(request, _FINISHED, (A, B), seconds=request.seconds)
        return answer if isinstance(answer, Fault) else (answer, results[0])

    def sanitize(self, request: Sanitize) -> Sanitized | Fault:
        return self._with_kernel(request, _SANITIZED, seconds=request.seconds)[0]

    def count(self, request: Count) -> Counters | Fault | None:
        answer = self._with_kernel(request, _COUNTED, seconds=request.seconds)[0]
        return None if isinstance(answer, Uncounted) else answer

    def first_launch(self, request: MeasureFirstLaunch) -> FirstLaunch | Fault:
        """Measured in a child of its own, which has touched nothing before."""
        seconds = 2 * request.seconds + GRACE_SECONDS
        first = self._fresh.ask(request, _FIRST, seconds=seconds)[0]
        self._fresh.close()
        return first

    def host_memory(self, request: MeasureHostMemory) -> HostMemory | Fault:
        return self.worker.ask(request, _HOST)[0]

    def run_baseline(
        self, request: RunBaseline, A: Matrix, B: Matrix
    ) -> tuple[Finished, Matrix] | Fault:
        answer, results = self.worker.ask(request, _FINISHED, (A, B))
        return answer if isinstance(answer, Fault) else (answer, results[0])

    def attach(self, request: Attach) -> Done | Fault:
        if request.baseline:
            return self.worker.ask(request, _DONE)[0]
        return self._with_kernel(request, _DONE, seconds=request.seconds)[0]

    def detach(self, request: Detach) -> Done | Fault:
        if self.worker.process_id is None:
            return Done()  # its child is gone, and with it what it had opened
        return self.worker.ask(request, _DONE)[0]

    def time_launch(self, request: TimeLaunch) -> LaunchTime | Fault:
        return self.worker.ask(request, _LAUNCH_TIME, seconds=request.seconds + GRACE_SECONDS)[0]

    def _with_kernel(
        self,
        request: Value,
        answer: TypeAdapter[T],
        matrices: Sequence[Matrix] = (),
        *,
        seconds: float,
    ) -> tuple[T | Fault, list[Matrix]]:
        """Ask a worker that has the kernel."""
        assert self._kernel is not None, "load a kernel first"
        if self._loaded_in is None or self._loaded_in != self.worker.process_id:
            ready = self.load(self._kernel)
            if isinstance(ready, Fault):
                return ready, []
        return self.worker.ask(request, answer, matrices, seconds=seconds + GRACE_SECONDS)


class RemoteReferee:
    """The referee, in a worker that never sees a submission."""

    def __init__(self) -> None:
        self.worker = Worker(Role.REFEREE)

    def lay_out(self, request: LayOut) -> SharedMatrices | Fault:
        return self.worker.ask(request, _MATRICES)[0]

    def draw_inputs(self, request: DrawInputs) -> Done | Fault:
        return self.worker.ask(request, _DONE)[0]

    def check_launch(self, request: CheckLaunch) -> Checked | Fault:
        return self.worker.ask(request, _CHECKED)[0]

    def fetch_launch(self, request: FetchLaunch) -> tuple[Matrix, Matrix, Matrix] | Fault:
        answer, results = self.worker.ask(request, _FETCHED)
        return answer if isinstance(answer, Fault) else (results[0], results[1], results[2])


class RemoteBench:
    """A kernel's device, and beside it a referee and a baseline in workers of their own."""

    def __init__(self, kernel: RemoteDevice) -> None:
        self.kernel = kernel
        self.referee = RemoteReferee()
        self.baseline = RemoteDevice(Role.CUDA)

    def start(self) -> None:
        """Start the children without waiting until they are ready."""
        self.referee.worker.start()
        self.baseline.worker.start()

    def close(self) -> None:
        """End the referee and the baseline; the kernel's device is whoever's it was."""
        self.referee.worker.close()
        self.baseline.close()
