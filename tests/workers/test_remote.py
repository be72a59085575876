"""A worker that hangs, dies or talks nonsense costs itself only."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from harness.compiling.kernel import Compile, Compiled
from harness.devices.device import Describe, Fault
from harness.report import DeviceInfo
from harness.workers.isolation import Role
from harness.workers.remote import RemoteCompiler, Worker

KERNEL = (
    "__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, "
    "int M, int N, int K) { C[0] = 1; }"
)


@pytest.fixture
def compiler() -> Iterator[RemoteCompiler]:
    compiler = RemoteCompiler()
    yield compiler
    compiler.worker.close()


def test_a_killed_worker_is_replaced(compiler: RemoteCompiler) -> None:
    assert isinstance(compiler.compile(Compile(source=KERNEL), 60), Compiled)
    first = compiler.worker.process_id
    assert first is not None
    os.kill(first, signal.SIGKILL)
    answer = compiler.compile(Compile(source=KERNEL), 60)
    assert isinstance(answer, Fault) and answer.signal == "SIGKILL" and answer.cause == "judge"
    assert isinstance(compiler.compile(Compile(source=KERNEL), 60), Compiled)
    assert compiler.worker.process_id != first


def test_a_worker_that_takes_too_long_is_ended(compiler: RemoteCompiler) -> None:
    assert isinstance(compiler.compile(Compile(source=KERNEL), 60), Compiled)
    process = compiler.worker.process_id
    assert process is not None

    def freeze() -> None:
        time.sleep(0.1)
        os.kill(process, signal.SIGSTOP)

    threading.Thread(target=freeze).start()
    time.sleep(0.3)
    answer = compiler.compile(Compile(source=KERNEL), 1)
    assert isinstance(answer, Fault) and answer.cause == "time-limit"
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_an_answer_of_another_kind_is_our_fault() -> None:
    with Worker(Role.CPU) as worker:
        wrong: TypeAdapter[Fault] = TypeAdapter(Fault)
        answer, _ = worker.ask(Describe(), wrong)
        assert isinstance(answer, Fault) and "makes no sense" in answer.message
        right: TypeAdapter[DeviceInfo | Fault] = TypeAdapter(DeviceInfo | Fault)
        assert isinstance(worker.ask(Describe(), right)[0], DeviceInfo)


def test_closing_leaves_nothing_behind(compiler: RemoteCompiler) -> None:
    assert isinstance(compiler.compile(Compile(source=KERNEL), 60), Compiled)
    process = compiler.worker.process_id
    scratch = compiler.worker.scratch
    assert process is not None and scratch is not None and scratch.is_dir()
    compiler.worker.close()
    assert not Path(scratch).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_the_worker_says_what_it_is_held_to(compiler: RemoteCompiler) -> None:
    compiler.compile(Compile(source=KERNEL), 60)
    assert any("CPU time" in rule for rule in compiler.worker.isolation)
