"""Asking a worker whose process is a thread: what is sent, what is awaited, who takes its place."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from harness.judge.workers import channel, processes
from harness.judge.workers import worker as worker_of
from harness.judge.workers.isolation import Role
from harness.judge.workers.processes import environment
from harness.judge.workers.server import Hello
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import Compile, Kernel
from harness.protocol.device import Describe, Finished, Load, Ready, Run
from harness.protocol.report import CompileError
from harness.protocol.request import Fault, request_named
from problem.cases import Shape
from tests.judge.stages.fakes import INFO, kernel
from tests.requests import inputs_of

RUN = Run(
    inputs=inputs_of(Shape(2, 3, 4), np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)),
    seconds=0.5,
)


class FakeProcess:
    """A process that ends when it is killed, or with the code that it is given."""

    def __init__(self, pid: int, code: int | None) -> None:
        self.pid, self.code = pid, code
        self.killed = threading.Event()
        self.patience: list[float | None] = []

    def kill(self) -> None:
        self.killed.set()

    def wait(self, timeout: float | None = None) -> int:
        self.patience.append(timeout)
        if self.code is None and not self.killed.is_set():
            raise subprocess.TimeoutExpired("a worker", timeout or 0)
        return -signal.SIGKILL if self.code is None else self.code


class FakeScratch:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir()
        self.removed = False

    def remove(self) -> None:
        self.removed = True


class Child:
    """Says hello and then answers, in a thread; where the answer is a number, it hangs up and has
    ended with that code."""

    def __init__(self, number: int, folder: Path, answer: Callable[[Any], Any]) -> None:
        self.asked: list[Any] = []
        self.answer = answer
        ours, self.theirs = Pipe()
        self.process = FakeProcess(1000 + number, None)
        self.scratch = FakeScratch(folder / str(number))
        self.inner = worker_of._Child(Role.CPU, self.process, ours, self.scratch)  # type: ignore[arg-type]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        with suppress(EOFError, OSError):
            channel.send(self.theirs, Hello(isolation=("a rule",)))
            while True:
                request = channel.receive(
                    self.theirs, lambda name: TypeAdapter(request_named(name))
                )
                self.asked.append(request)
                said = self.answer(request)
                if isinstance(said, int):
                    self.process.code = said
                    return self.hang_up()
                if isinstance(said, bytes):
                    self.theirs.send_bytes(said)
                elif said is not None:
                    channel.send(self.theirs, said)

    def hang_up(self) -> None:
        with suppress(OSError), socket.socket(fileno=os.dup(self.theirs.fileno())) as wire:
            wire.shutdown(socket.SHUT_RDWR)


class Nursery:
    """All children that a worker has had, the last one last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.children: list[Child] = []
        self.started: list[tuple[Role, str | None]] = []
        self.answer: Callable[[Any], Any] = self.well
        self.cores: list[tuple[int, object]] = []

    @staticmethod
    def well(request: Any) -> Any:
        match request:
            case Describe():
                return INFO
            case Load():
                return Ready()
            case Run():
                return Finished(seconds=1, output=np.matmul(*request.inputs.matrices))

    def start(self, role: Role, gpu: str | None) -> Any:
        self.started.append((role, gpu))
        self.children.append(Child(len(self.children), self.folder, self.answer))
        return self.children[-1].inner


@pytest.fixture
def nursery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nursery:
    made = Nursery(tmp_path)
    monkeypatch.setattr(worker_of, "_start", made.start)
    monkeypatch.setattr(worker_of.cores_of, "keep_to", lambda *how: made.cores.append(how))

    def killpg(group: int, number: int) -> None:
        assert number == signal.SIGKILL
        child = made.children[group - 1000]
        child.process.kill()
        child.hang_up()

    monkeypatch.setattr(os, "killpg", killpg)
    return made


def loaded(kernel: Kernel) -> Load:
    return Load(kernel=kernel)


def test_a_process_is_started_when_it_is_first_needed_and_kept(nursery: Nursery) -> None:
    worker = Worker(Role.CPU, "GPU-7")
    assert nursery.started == [] and worker.process_id is None and worker.scratch is None
    assert worker.ask(Describe()) == INFO == worker.ask(Describe())
    assert nursery.started == [(Role.CPU, "GPU-7")]
    assert worker.isolation == ("a rule",)
    assert worker.process_id == 1000 and worker.scratch == nursery.folder / "0"
    assert nursery.children[0].asked == [Describe(), Describe()]


@pytest.mark.parametrize("cause", ["trap", "judge"])
def test_after_a_fault_there_is_another_process(nursery: Nursery, cause: Any) -> None:
    fault = Fault(cause=cause, message="it went wrong", printed="last words")
    nursery.answer = lambda request: fault if isinstance(request, Run) else nursery.well(request)
    worker = Worker(Role.CPU)
    assert worker.ask(RUN) == fault
    assert worker.process_id is None and nursery.children[0].process.killed.is_set()
    assert worker.ask(Describe()) == INFO and len(nursery.children) == 2


def test_a_fault_has_exit_code_and_log_of_the_process(nursery: Nursery) -> None:
    def answer(request: Any) -> int:
        log = nursery.children[-1].scratch.path / "worker.log"
        log.write_text("x" * 5000 + "at /home/ada/kernel.cu")
        return 3

    nursery.answer = answer
    fault = Worker(Role.CPU).ask(Describe())
    assert isinstance(fault, Fault) and fault.cause == "judge" and fault.signal is None
    assert fault.message == "the cpu worker ended with exit code 3"
    assert fault.details.endswith("at …/kernel.cu") and 4000 < len(fault.details) < 4096
    assert nursery.children[0].scratch.removed


def test_a_fault_names_the_signal_that_ended_the_process(nursery: Nursery) -> None:
    def answer(request: Any) -> int:
        log = nursery.children[-1].scratch.path / "worker.log"
        log.write_bytes(b"x" * 5000 + b"\xff")
        return -signal.SIGSEGV

    nursery.answer = answer
    assert Worker(Role.CPU).ask(Describe()) == Fault(
        cause="judge",
        message="the cpu worker was ended by SIGSEGV",
        details="x" * 4095 + "\ufffd",
        signal="SIGSEGV",
    )


def test_a_process_is_ended_at_its_time_limit(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "time_limit", property(lambda request: request.seconds / 4))
    nursery.answer = lambda request: None
    worker = Worker(Role.CPU)
    assert worker.ask(RUN) == Fault(cause="time-limit", message="no end within 0.125 s")
    assert nursery.children[0].process.killed.is_set() and worker.process_id is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"no JSON", "Invalid JSON"),
        (b'{"name": "DeviceInfo", "body": "{}", "shapes": []}', "DeviceInfo"),
        (b'{"name": "Ready", "body": "{\\"kind\\": \\"ready\\"}", "shapes": []}', "DeviceInfo"),
    ],
)
def test_an_invalid_answer_is_the_judges_fault(nursery: Nursery, said: bytes, why: str) -> None:
    nursery.answer = lambda request: said
    worker = Worker(Role.CPU)
    fault = worker.ask(Describe())
    assert isinstance(fault, Fault) and fault.cause == "judge"
    assert fault.message == "the cpu worker sent an invalid answer"
    assert why in fault.details
    assert worker.process_id is None


def test_a_worker_that_cannot_be_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*how: Any) -> Any:
        raise OSError("no room in /var/tmp/here")

    monkeypatch.setattr(worker_of, "_start", none)
    worker = Worker(Role.CPU)
    worker.start()
    assert worker.ask(Describe()) == Fault(
        cause="judge", message="no cpu worker can be started", details="no room in …/here"
    )


# ----------------------------------------------------------- who takes the place of another


def test_another_process_is_given_the_kernel_before_it_launches(nursery: Nursery) -> None:
    worker, load = Worker(Role.CPU), loaded(kernel())
    assert worker.ask(load) == Ready()
    assert isinstance(worker.ask(RUN), Finished)
    assert [type(each) for each in nursery.children[0].asked] == [Load, Run]
    worker.close()
    assert worker.ask(Describe()) == INFO
    assert [type(each) for each in nursery.children[1].asked] == [Describe]
    finished = worker.ask(RUN)
    assert isinstance(finished, Finished) and (finished.output == 3).all()
    assert isinstance(worker.ask(RUN), Finished)
    assert [type(each) for each in nursery.children[1].asked] == [Describe, Load, Run, Run]


def test_the_kernel_is_the_last_one_that_was_loaded(nursery: Nursery) -> None:
    worker = Worker(Role.CPU)
    second = loaded(kernel().model_copy(update={"entry": "second"}))
    worker.ask(loaded(kernel()))
    worker.ask(second)
    worker.close()
    worker.ask(RUN)
    assert nursery.children[1].asked[0] == second


def test_a_process_that_cannot_take_the_kernel_launches_nothing(nursery: Nursery) -> None:
    worker = Worker(Role.CPU)
    worker.ask(loaded(kernel()))
    worker.close()
    fault = Fault(cause="judge", message="no memory")
    nursery.answer = lambda request: fault
    assert worker.ask(RUN) == fault
    assert [type(each) for each in nursery.children[1].asked] == [Load]


def test_cores_hold_for_the_process_and_for_the_next(nursery: Nursery) -> None:
    worker, cores = Worker(Role.CPU), frozenset({1})
    worker.start()
    assert nursery.cores == []
    worker.keep_to(cores)
    assert nursery.cores == [(1000, cores)]
    worker.close()
    worker.start()
    assert nursery.cores == [(1000, cores), (1001, cores)]
    before = Worker(Role.CPU)
    before.keep_to(cores)
    assert len(nursery.cores) == 2


# ------------------------------------------------------------------------------ the processes


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("gpu", [None, "GPU-7"])
def test_a_process_gets_few_environment_variables(
    role: Role, gpu: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*os.environ]:
        monkeypatch.delenv(name)
    given = {"PATH": "/bin", "LD_LIBRARY_PATH": "/l", "CUDA_HOME": "/c", "CUDA_PATH": "/p"}
    given |= {"CUDA_VISIBLE_DEVICES": "0,1", "LANG": "C.UTF-8"}
    for name, value in (given | {"SECRET_TOKEN": "hunter2", "PYTHONPATH": "/mine"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(processes, "cache_directory", lambda: tmp_path / "cache")
    found = environment(role, tmp_path, gpu)
    assert found == given | {
        **({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}),
        "PYTHONPATH": f"{processes.ROOT}{os.pathsep}/mine",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "CUDA_CACHE_DISABLE": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MATMUL_ARENA_SCRATCH": str(tmp_path),
        **({"MATMUL_ARENA_CACHE": str(tmp_path / "cache")} if role is Role.CPU else {}),
    }


def test_the_first_worker_takes_the_process_started_early() -> None:
    processes.start_ahead(Role.COMPILER)
    ahead = processes._ahead[Role.COMPILER].process.pid
    with Worker(Role.COMPILER) as first, Worker(Role.COMPILER) as second:
        assert isinstance(first.ask(Compile(source="")), CompileError)
        assert first.process_id == ahead
        second.start()
        assert second.process_id not in (None, ahead)


def test_an_unused_process_ends_with_the_judge(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "grade", "--no-such-option"]
    told = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(processes.ROOT)}
    done = subprocess.run(
        command, env=os.environ | told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "--no-such-option" in done.stderr
    assert not [*tmp_path.iterdir()]


def test_a_failed_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(OSError):
        worker_of._start(Role.CPU, None)
    assert list(tmp_path.iterdir()) == []
    assert len([*Path("/proc/self/fd").iterdir()]) == before
