"""The worker's side of the wire: every request has an answer, whatever becomes of it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from harness.judge.workers import channel, entry_point, server
from harness.judge.workers.isolation import Role
from harness.judge.workers.server import Hello
from harness.protocol.device import Describe, Finished, Ready
from harness.protocol.report import DeviceInfo
from harness.protocol.request import Fault
from tests.judge.stages.fakes import INFO


class Printed:
    """Standard output of a kernel that prints a number a launch."""

    def __init__(self) -> None:
        self.taken = 0

    def take(self) -> str:
        self.taken += 1
        return f"printed {self.taken}"


class Serving:
    """A worker in a thread of this process."""

    def __init__(self, role: Role, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
        monkeypatch.setattr(server, "OutputCapture", Printed)
        monkeypatch.setitem(server._ANSWERING, role, lambda: answer)
        self.connection, theirs = Pipe()
        self.ended = False

        def serve() -> None:
            with suppress(SystemExit):
                server.main(role, theirs, ("no network", "memory 8 GiB"))
            self.ended = True

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()

    def receive(self, *kinds: Any) -> Any:
        kind: Any = kinds[0] if len(kinds) == 1 else kinds[0] | kinds[1]
        return channel.receive(self.connection, lambda name: TypeAdapter(kind))

    def ask(self, request: Any, *kinds: Any) -> Any:
        channel.send(self.connection, request)
        return self.receive(*kinds)

    def hang_up(self) -> None:
        self.connection.close()
        self.thread.join(20)
        assert self.ended


Start = Callable[..., Serving]


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Start:
    return lambda role, answer: Serving(role, monkeypatch, answer)


def test_it_says_hello_answers_and_ends_when_the_judge_hangs_up(serving: Start) -> None:
    asked: list[Any] = []

    def answer(request: Any) -> DeviceInfo:
        asked.append(request)
        return INFO

    worker = serving(Role.CPU, answer)
    assert worker.receive(Hello) == Hello(isolation=("no network", "memory 8 GiB"))
    assert [worker.ask(Describe(), DeviceInfo) for _ in range(2)] == [INFO, INFO]
    assert asked == [Describe(), Describe()]
    worker.hang_up()


def test_what_was_printed_goes_with_a_launch_or_a_fault(serving: Start) -> None:
    answers = iter(
        [
            Finished(seconds=1, output=np.zeros((2, 3), np.float32), printed="before, "),
            Ready(),
            Fault(cause="trap", message="it trapped"),
        ]
    )
    worker = serving(Role.CPU, lambda _: next(answers))
    worker.receive(Hello)
    finished = worker.ask(Describe(), Finished)
    assert finished.printed == "before, printed 1" and finished.output.shape == (2, 3)
    assert worker.ask(Describe(), Ready) == Ready()
    fault = worker.ask(Describe(), Fault)
    assert (fault.cause, fault.message, fault.printed) == ("trap", "it trapped", "printed 2")


def test_a_defect_is_an_answer_and_the_next_request_is_answered(serving: Start) -> None:
    def answer(request: Any) -> DeviceInfo:
        if not broken:
            return INFO
        raise ZeroDivisionError(broken.pop())

    broken = ["in /home/ada/here.py"]
    worker = serving(Role.CPU, answer)
    worker.receive(Hello)
    fault = worker.ask(Describe(), Fault)
    assert fault.cause == "judge" and fault.signal is None
    assert fault.message == "the judge failed: ZeroDivisionError: in …/here.py"
    assert "harness/judge/workers/server.py" in fault.details and fault.printed == "printed 1"
    assert worker.ask(Describe(), DeviceInfo) == INFO


@pytest.mark.parametrize(
    ("role", "module", "name", "method"),
    [
        (Role.CUDA, "harness.devices.cuda.device", "CudaDevice", "ask"),
        (Role.CHECKER, "harness.devices.cuda.checker", "CudaChecker", "ask"),
        (Role.CPU, "harness.devices.cpu.device", "CpuDevice", "answer"),
    ],
)
def test_each_role_has_its_device(
    role: Role, module: str, name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = ModuleType(module)
    setattr(stand_in, name, type(name, (), {method: lambda self, request: INFO}))
    monkeypatch.setitem(sys.modules, module, stand_in)
    assert server._ANSWERING[role]()(Describe()) is INFO


@pytest.mark.parametrize("cache", [None, "/a/cache"])
def test_a_worker_is_confined_before_it_serves(
    cache: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []

    def confine(*how: Any) -> tuple[str, ...]:
        done.append(how)
        return ("a rule",)

    def main(role: Role, connection: Connection, enforced: tuple[str, ...]) -> None:
        done.append((role, connection.fileno(), enforced))

    monkeypatch.setattr(entry_point, "confine", confine)
    monkeypatch.setattr(server, "main", main)
    monkeypatch.setenv("MATMUL_ARENA_SCRATCH", str(tmp_path))
    monkeypatch.delenv("MATMUL_ARENA_CACHE", raising=False)
    if cache is not None:
        monkeypatch.setenv("MATMUL_ARENA_CACHE", cache)
    handle = os.open(os.devnull, os.O_RDWR)
    entry_point.main(Role.CPU, handle)
    written = [Path(cache)] if cache else []
    assert done == [(Role.CPU, tmp_path, written), (Role.CPU, handle, ("a rule",))]
