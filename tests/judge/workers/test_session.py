"""Sessions start, close and share workers, and lock the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from harness.judge.progress import Progress, Silent
from harness.judge.workers import session as module
from harness.judge.workers.cores import Cores
from harness.judge.workers.isolation import Role
from harness.judge.workers.session import SESSIONS, open_session, open_sessions
from harness.protocol.compiler import DEFAULT_ARCH
from harness.protocol.device import Describe
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import DeviceInfo
from harness.protocol.request import Fault
from tests.judge.stages.fakes import INFO
from tests.waiting import PATIENCE, eventually

CORES = Cores(measuring=frozenset({1, 2}), helping=frozenset({3, 4}))


class FakeWorker:
    """A worker that notes whether it runs, and on which cores."""

    def __init__(self, machine: Machine, role: Role, gpu: str | None = None) -> None:
        self.role, self.gpu, self.machine = role, gpu, machine
        self.isolation: tuple[str, ...] = (f"rule of {role}",)
        self.runs = False
        self.closed = 0
        self.cores: frozenset[int] | None = None
        machine.workers.append(self)

    def __enter__(self) -> FakeWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        self.runs = True

    def close(self) -> None:
        self.runs = False
        self.closed += 1

    def set_affinity(self, cores: frozenset[int]) -> None:
        self.cores = cores

    def ask(self, request: Any) -> Any:
        assert isinstance(request, Describe) and self.machine.answers.wait(PATIENCE)
        self.runs = True
        return self.machine.described


@dataclass
class Machine:
    """A machine with a GPU and fake workers."""

    described: DeviceInfo | Fault = INFO
    answers: Event = field(default_factory=Event)
    """Set when devices may answer `Describe`."""
    arch: str | None = "sm_90a"
    """The target, if the driver knows it before CUDA has started."""
    workers: list[Any] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)

    def running(self) -> list[Role]:
        return sorted(worker.role for worker in self.workers if worker.runs)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    found.answers.set()

    @contextmanager
    def hold(gpu: str, progress: Progress, *, exclusive: bool) -> Iterator[None]:
        found.locked.append(f"{gpu} {'alone' if exclusive else 'shared'}")
        yield
        found.locked.append(f"free of {', '.join(on_gpu(found))}")

    monkeypatch.setattr(module, "Worker", lambda *how: FakeWorker(found, *how))
    monkeypatch.setattr(module, "hold_gpu", hold)
    monkeypatch.setattr(module, "why_no_cuda", lambda: None)
    monkeypatch.setattr(module, "arch_of", lambda _: found.arch)
    return found


def on_gpu(machine: Machine) -> list[str]:
    """Return the roles that still run on the GPU, and belong to one session."""
    own = machine.workers[2:]  # behind baseline and checker
    return [each.role for each in own if each.runs and each.role in (Role.CUDA, Role.SANITIZER)]


@contextmanager
def opened(cores: Cores | None = None) -> Iterator[Any]:
    with open_sessions("cuda", "GPU-7", cores, count=1) as (session,):
        assert session.info
        yield session


def test_a_gpu_session_has_a_process_for_each_purpose(machine: Machine) -> None:
    with opened() as session:
        timing = session.timing
        assert session.info is INFO and session.arch == "sm_90a"
        assert {worker.role for worker in machine.workers} == {*Role}
        found = [session.device, session.sanitizer, timing.kernel, timing.baseline, timing.checker]
        assert len({id(each) for each in found}) == 5 and {each.gpu for each in found} == {"GPU-7"}
        assert session.cpu_sanitizer.role is Role.CPU and session.cpu_sanitizer.gpu is None
        session.start(cpu_sanitizer=False)
        assert not session.cpu_sanitizer.runs and session.sanitizer.runs
        session.start(cpu_sanitizer=True)
        assert session.cpu_sanitizer.runs
    assert machine.running() == []


def test_a_cpu_session_has_no_lock_and_no_gpu_processes(machine: Machine) -> None:
    with open_session("cpu") as session:
        assert session.timing is None and session.cpu_sanitizer is None
        assert session.arch == DEFAULT_ARCH and session.sanitizer.role is Role.CPU
        assert not session.has_own_cores
        session.start(cpu_sanitizer=False)
        assert session.device.runs and not session.sanitizer.runs
        session.start(cpu_sanitizer=True)
        with session.shared_lock(Silent()):
            assert machine.running() == [Role.COMPILER, Role.CPU, Role.CPU]
        assert Role.CPU in machine.running(), "the device has the kernel"
    assert machine.locked == []


def test_a_submission_leaves_the_gpu_before_the_lock_is_free(machine: Machine) -> None:
    machine.described = INFO.model_copy(update={"uuid": "GPU-7"})
    with opened() as session:
        session.start(cpu_sanitizer=True)
        with session.shared_lock(Silent()):
            pass
        assert machine.locked == ["GPU-7 shared", "free of cuda"], "the kernel has not been loaded"
        assert session.cpu_sanitizer.runs, "it goes on without the GPU"
        with session.exclusive_lock(Silent()):
            assert session.timing.kernel.runs
        assert machine.locked[2:] == ["GPU-7 alone", "free of "]
        assert not session.compiler.runs and not session.cpu_sanitizer.runs
        assert session.timing.baseline.closed == session.timing.checker.closed == 0
        with pytest.raises(ZeroDivisionError), session.exclusive_lock(Silent()):
            _ = 1 / 0
        assert on_gpu(machine) == [] and not session.compiler.runs


def test_sessions_of_one_gpu_share_baseline_and_checker(machine: Machine) -> None:
    with open_sessions("cuda", "GPU-7", CORES) as sessions:
        found: list[Any] = [*sessions]
        assert len(found) == SESSIONS and all(session.has_own_cores for session in found)
        assert len({id(session.timing.baseline) for session in found}) == 1
        assert len({id(session.timing.checker) for session in found}) == 1
        assert len({id(session.timing.kernel) for session in found}) == SESSIONS
        assert {session.info for session in found} == {INFO}
    with open_sessions("cuda", "GPU-7", None) as sessions:
        assert len(sessions) == 1 and not sessions[0].has_own_cores


def test_only_measuring_processes_use_the_measuring_cores(machine: Machine) -> None:
    with opened(CORES) as session:
        timing = session.timing
        assert timing.baseline.cores == timing.checker.cores == CORES.measuring
        own = (session.compiler, session.cpu_sanitizer, session.device, timing.kernel)
        assert {worker.cores for worker in own} == {CORES.helping}
        with session.exclusive_lock(Silent()):
            assert session.device.cores == timing.kernel.cores == CORES.measuring
            assert session.compiler.cores == session.cpu_sanitizer.cores == CORES.helping
        assert {worker.cores for worker in own} == {CORES.helping}


def test_kernels_of_a_play_off_have_a_process_each(machine: Machine) -> None:
    with opened(CORES) as session, session.timing_of_each(3) as each:
        kernels: list[Any] = [timing.kernel for timing in each]
        assert len({id(kernel) for kernel in kernels}) == 3
        assert {kernel.cores for kernel in kernels} == {CORES.measuring}
        assert {id(timing.checker) for timing in each} == {id(session.timing.checker)}
    assert all(kernel.closed for kernel in kernels)


@pytest.mark.parametrize("choice", ["cuda", "cpu"])
def test_compiling_does_not_wait_for_the_device(choice: Any, machine: Machine) -> None:
    machine.answers.clear()
    with open_session(choice) as session:
        assert session.arch == "sm_90a"
        machine.answers.set()
        assert session.info == INFO


def test_a_cpu_device_stands_for_the_architecture_asked_for(machine: Machine) -> None:
    with open_session("auto", arch="sm_75") as session:
        assert session.arch == session.info.arch == "sm_75" and session.timing is None
    with (
        pytest.raises(UsageError, match="only be chosen for the CPU device"),
        open_session("cuda", arch="sm_75"),
    ):
        pass


def test_a_broken_device_raises_where_it_is_needed(machine: Machine) -> None:
    machine.described = Fault(cause="judge", message="no driver", details="why")
    with open_session("cuda") as session:
        for _ in range(2):
            with pytest.raises(JudgeFailure, match="no driver") as failure:
                _ = session.info
            assert failure.value.details == "why"
        with pytest.raises(JudgeFailure, match="no driver"), session.shared_lock(Silent()):
            pass


@pytest.mark.parametrize(
    ("choice", "missing", "role"),
    [("auto", None, Role.CUDA), ("auto", "no GPU", Role.CPU), ("cpu", None, Role.CPU)],
)
def test_the_device_depends_on_the_machine(
    choice: Any, missing: str | None, role: Role, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "why_no_cuda", lambda: missing)
    with open_session(choice) as session:
        device: Any = session.device
        assert device.role is role
        eventually(lambda: device.runs, "it is asked at once what it is")
    if missing is not None:
        with pytest.raises(UsageError, match=missing), open_session("cuda"):
            pass
