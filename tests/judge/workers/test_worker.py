"""Tests that a worker that hangs, dies or sends invalid data is replaced and its judge survives."""

import os
import resource
import signal
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path

import psutil
import pytest

from harness.judge.workers import processes
from harness.judge.workers.isolation import Role
from harness.judge.workers.processes import LOG, Child, Scratch, processes_of_session
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import Compile, Compiled
from harness.protocol.device import Describe, Finished, Load, Ready, Run
from harness.protocol.request import Fault
from problem import starter
from problem.cases import Case, Shape
from problem.reference import compare
from tests.forked import python
from tests.requests import inputs_of
from tests.sources import kernel
from tests.waiting import PATIENCE, eventually

KERNEL = kernel("C[0] = 1;")


@pytest.fixture(scope="module")
def compiler() -> Iterator[Worker]:
    with Worker(Role.COMPILER) as worker:
        yield worker


def test_a_time_limit_counts_the_time_of_the_processor(compiler: Worker) -> None:
    assert isinstance(compiler.ask(Compile(source=KERNEL)), Compiled)
    process = compiler.process_id
    statements = "".join(f"C[{n}] = A[{n} * M] * B[N];" for n in range(400))
    slow = Compile(source=KERNEL.replace("C[0] = 1;", statements), seconds=2)
    os.kill(process, signal.SIGSTOP)
    threading.Timer(2.2, os.kill, (process, signal.SIGCONT)).start()
    assert isinstance(compiler.ask(slow), Compiled)


def test_a_request_gets_the_processor_time_of_its_limit(compiler: Worker) -> None:
    def used() -> float:
        found = resource.getrusage(resource.RUSAGE_CHILDREN)
        return found.ru_utime + found.ru_stime

    bomb = (processes.ROOT / "tests/submissions/time-limit/template_bomb.cu").read_text()
    assert isinstance(compiler.ask(Compile(source=KERNEL)), Compiled)
    earlier = sum(psutil.Process(compiler.process_id).cpu_times()[:4]) + used()
    answer = compiler.ask(Compile(source=bomb, seconds=1))
    assert isinstance(answer, Fault) and answer.cause == "time-limit"
    assert compiler.process_id is None, "a fault ends it"
    assert 0.9 < used() - earlier < 1.8


def test_requests_of_two_threads_wait_for_one_another(compiler: Worker) -> None:
    answers: list[object] = []
    wrong = KERNEL.replace("1;", "1")

    def ask(source: str) -> None:
        answers.append(compiler.ask(Compile(source=source)))

    threads = [threading.Thread(target=ask, args=(each,)) for each in (KERNEL, wrong) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    found = sorted(type(answer).__name__ for answer in answers)
    assert found == ["CompileError"] * 3 + ["Compiled"] * 3


def test_closing_leaves_nothing_behind(compiler: Worker) -> None:
    assert isinstance(compiler.ask(Compile(source=KERNEL)), Compiled)
    assert any("CPU time" in rule for rule in compiler.isolation)
    process = compiler.process_id
    scratch = compiler.scratch
    assert process is not None and scratch is not None and scratch.is_dir()
    compiler.close()
    assert not Path(scratch).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_killed_worker_is_replaced_and_given_the_kernel_again(compiler: Worker) -> None:
    compiled = compiler.ask(Compile(source=starter.text()))
    shape = Shape(17, 5, 33)
    A, B = Case(shape).draw(1)
    run = Run(inputs=inputs_of(shape, A, B), seconds=20)
    with Worker(Role.CPU) as device:
        assert isinstance(device.ask(run), Fault) and device.process_id is None, "it has no kernel"
        assert isinstance(device.ask(Load(kernel=compiled.kernel)), Ready)
        assert isinstance(device.ask(run), Finished)
        first = device.process_id
        (device.scratch / LOG).write_text("File /home/ada/judge/x.py")
        os.kill(first, signal.SIGKILL)
        answer = device.ask(run)
        assert isinstance(answer, Fault) and answer.signal == "SIGKILL" and answer.cause == "judge"
        assert answer.details == "File …/x.py", "reports are published"
        again = device.ask(run)
        assert isinstance(again, Finished) and device.process_id != first
        assert compare(A, B, again.output).passed


def test_programs_of_a_worker_end_with_it() -> None:
    program = (
        "import subprocess, sys; "
        "subprocess.Popen(['sleep', '600'], process_group=0); print(flush=True); sys.stdin.read()"
    )
    process = python("-c", program, start_new_session=True)
    process.stdout.readline()
    assert len(processes_of_session(process.pid)) == 2
    ours, theirs = Pipe()
    scratch = Scratch()
    Child(Role.CUDA, process, ours, scratch).kill()
    process.communicate()
    eventually(lambda: not processes_of_session(process.pid), "all are gone")
    scratch.remove()
    for each in (ours, theirs):
        each.close()


def test_a_worker_outlives_the_thread_that_started_it() -> None:
    with Worker(Role.CPU) as worker:
        opening = threading.Thread(target=lambda: worker.ask(Describe()))
        opening.start()
        opening.join()
        thread = Path(f"/proc/self/task/{opening.native_id}")
        eventually(lambda: not thread.exists(), "the system has ended the thread, too")
        process = worker.process_id
        assert not isinstance(worker.ask(Describe()), Fault)
        assert worker.process_id == process
