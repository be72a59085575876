"""A session of workers that are no processes: who is started, confined to cores, renewed, ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Barrier, Event
from typing import Any

import pytest

from harness.judge.progress import Progress, Silent
from harness.judge.workers import session as session_of
from harness.judge.workers.cores import Cores
from harness.judge.workers.gpu_lock import Use
from harness.judge.workers.isolation import Role
from harness.judge.workers.session import LANES, Session, open_lanes, open_session
from harness.protocol.compiler import DEFAULT_ARCH
from harness.protocol.device import Describe
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import DeviceInfo, Tool
from harness.protocol.request import Done, Fault
from harness.protocol.timing import (
    OpenKernels,
    OpenLibraries,
    OpenSanitizers,
    SanitizersOpen,
    StartSanitizers,
)
from tests.judge.stages.fakes import INFO
from tests.waiting import PATIENCE

CORES = Cores(measuring=frozenset({1, 2}), helping=frozenset({3, 4}))


def already() -> Event:
    event = Event()
    event.set()
    return event


class FakeWorker:
    """A worker that notes what is done with it."""

    def __init__(self, house: House, role: Role, gpu: str | None = None) -> None:
        self.role, self.gpu, self.house = role, gpu, house
        self.isolation: tuple[str, ...] = (f"rule of {role}",)
        self.done: list[Any] = []
        house.workers.append(self)

    def __enter__(self) -> FakeWorker:
        self.done.append("opened")
        return self

    def __exit__(self, *_: object) -> None:
        self.done.append("ended")

    def start(self) -> None:
        self.done.append("started")

    def close(self) -> None:
        self.done.append("closed")
        self.house.ending(self)

    def keep_to(self, cores: frozenset[int]) -> None:
        self.done.append(cores)

    def ask(self, request: Any) -> Any:
        if request == Describe():
            assert self.house.answers.wait(PATIENCE)
            return self.house.described
        self.done.append(request)
        if request == OpenSanitizers():
            if isinstance(self.house.opening, Fault):
                return self.house.opening
            self.house.opening -= 1
            return SanitizersOpen(all=self.house.opening < 0)
        return Done()


@dataclass
class House:
    """All workers of a session, in the order in which they are made."""

    described: DeviceInfo | Fault = INFO
    answers: Event = field(default_factory=already)
    """Set once devices say what they are."""
    arch: str | None = "sm_90a"
    """What the driver says before."""
    workers: list[FakeWorker] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    sanitizer_resets: int = 0
    somebody_measures: bool = True
    opening: int | Fault = 0
    """How often the tools are asked before all are open; or what they say instead."""
    asked_about: list[str | None] = field(default_factory=list)
    """The GPUs of which the driver or the lock was asked something."""
    ending: Callable[[FakeWorker], object] = lambda _: None
    """What becomes of whoever is closed."""
    shared: Event = field(default_factory=Event)
    """Set once what is done ahead needs the GPU no more."""

    def of(self, role: Role) -> list[FakeWorker]:
        return [worker for worker in self.workers if worker.role is role]

    def forget(self) -> None:
        for worker in self.workers:
            worker.done.clear()


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    found = House()

    class FakeSanitizer:
        def __init__(self) -> None:
            self.worker = FakeWorker(found, Role.CPU)

        def reset(self) -> None:
            found.sanitizer_resets += 1

    @contextmanager
    def hold(gpu: str, use: Use, progress: Progress) -> Iterator[None]:
        assert isinstance(progress, Silent)
        found.locked.append(f"{gpu} {use}")
        yield
        found.locked.append("free")

    monkeypatch.setattr(session_of, "Worker", lambda *how: FakeWorker(found, *how))
    monkeypatch.setattr(session_of, "CpuSanitizer", FakeSanitizer)

    @contextmanager
    def share_if_free(gpu: str) -> Iterator[bool]:
        found.asked_about.append(gpu)
        yield not found.somebody_measures
        found.shared.set()

    monkeypatch.setattr(session_of, "hold_gpu", hold)
    monkeypatch.setattr(session_of, "share_gpu_if_free", share_if_free)
    monkeypatch.setattr(session_of, "why_no_cuda", lambda: None)

    def arch_of(gpu: str | None) -> str | None:
        found.asked_about.append(gpu)
        return found.arch

    monkeypatch.setattr(session_of, "arch_of", arch_of)
    return found


@contextmanager
def on_gpu(house: House, cores: Cores | None = None) -> Iterator[Session]:
    with open_session("cuda", "GPU-7", cores) as session:
        yield session


def test_a_gpu_has_a_device_and_three_timing_workers(house: House) -> None:
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None and session.info is INFO
        assert session.arch == house.arch and house.asked_about == ["GPU-7"]
        on_gpu_ = (session.device, timing.kernel, timing.baseline)
        assert {id(each) for each in on_gpu_} == {id(each) for each in house.of(Role.CUDA)}
        assert len(house.of(Role.CUDA)) == 3
        assert [timing.checker] == house.of(Role.CHECKER)
        assert [session.compiler] == house.of(Role.COMPILER)
        assert session.cpu_sanitizer is not None and session.side_by_side is not None
        assert {each.gpu for each in house.of(Role.CUDA) + house.of(Role.CHECKER)} == {"GPU-7"}
        assert {each.gpu for each in house.of(Role.COMPILER) + house.of(Role.CPU)} == {None}
        for worker in house.workers:
            assert ("started" in worker.done) is (worker.role is not Role.CPU)
    assert len(house.workers) == 6
    for worker in house.workers:
        assert worker.done[-1] in ("ended", "closed")


def test_the_cpu_device_needs_two_workers_and_no_lock(house: House) -> None:
    with open_session("cpu") as session:
        assert session.timing is session.cpu_sanitizer is session.side_by_side is None
        assert session.arch == DEFAULT_ARCH and not house.asked_about
        for worker in house.of(Role.CUDA) + house.of(Role.CHECKER):
            worker.isolation = ()  # nobody asks them
        assert session.isolation() == (
            "compiler: rule of compiler",
            "cpu: rule of cpu",
        )
        with session.company(Silent()), session.turn(Silent()):
            started = [worker.role for worker in house.workers if "started" in worker.done]
            assert sorted(started) == [Role.COMPILER, Role.CPU]
    assert house.locked == []


def test_what_a_session_is_held_to_is_said_of_each_role_once(house: House) -> None:
    with on_gpu(house) as session:
        house.of(Role.CHECKER)[0].isolation = ("one", "two")
        house.of(Role.CUDA)[-1].isolation = ()  # it has not been asked yet
        assert session.isolation() == (
            "compiler: rule of compiler",
            "cuda: rule of cuda",
            "cpu: rule of cpu",
            "checker: one",
            "checker: two",
        )


def test_a_turn_has_the_gpu_and_ends_with_new_processes(house: House) -> None:
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None
        kept = [id(timing.baseline), id(timing.checker)]
        on_gpu_ = [id(each) for each in (session.device, timing.kernel)]
        house.forget()
        with session.turn(Silent()):
            assert house.locked == ["fake alone"]  # it has no UUID
            for worker in house.workers:
                measures = worker is timing.kernel
                assert worker.done == (["started"] if measures else []), "nobody else begins now"
            house.forget()
        assert house.locked == ["fake alone", "free"] and house.sanitizer_resets == 1
        for worker in house.workers:
            closed = 0 if id(worker) in kept else 2 if id(worker) in on_gpu_ else 1
            assert worker.done == ["closed"] * closed, worker.role


def test_who_was_on_the_gpu_is_gone_before_it_is_free(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def hold(_: str, use: Use, __: Progress) -> Iterator[None]:
        yield
        gone = [worker for worker in house.workers if worker.done[-1:] == ["closed"]]
        house.locked.append(f"{use}: {len(gone)} gone")

    monkeypatch.setattr(session_of, "hold_gpu", hold)
    with on_gpu(house) as session:
        with session.company(Silent()):
            house.forget()
        with session.turn(Silent()):
            house.forget()
    assert house.locked == ["shared: 1 gone", "alone: 2 gone"]


def test_in_company_a_kernel_has_a_process_that_is_gone_afterwards(house: House) -> None:
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None
        house.forget()
        with session.company(Silent()):
            assert house.locked == ["fake shared"]
            assert house.of(Role.COMPILER)[0].done == ["started"]
        assert house.locked == ["fake shared", "free"]
        for worker in house.workers:
            assert ("closed" in worker.done) is (id(worker) == id(session.device))


def test_in_company_those_who_will_time_a_kernel_get_ready(house: House) -> None:
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None
        house.forget()
        with session.company(Silent()):
            pass
        assert timing.baseline.done == [OpenLibraries()]  # type: ignore[attr-defined]
        assert timing.checker.done == [OpenKernels()]  # type: ignore[attr-defined]
        assert timing.kernel.done == ["started"], "its context is timed"  # type: ignore[attr-defined]
        house.forget()
        with session.turn(Silent()):
            assert not any(isinstance(each, OpenKernels) for each in house.of(Role.CHECKER)[0].done)
    with open_session("cpu") as session, session.company(Silent()):
        pass
    assert set(house.of(Role.CHECKER)[-1].done) == {"opened", "closed", "ended"}


def test_lanes_share_baseline_and_checker(house: House) -> None:
    with open_lanes("cuda", "GPU-7", CORES) as sessions:
        assert len(sessions) == LANES
        timings = [session.timing for session in sessions]
        assert len({id(timing.baseline) for timing in timings if timing}) == 1
        assert len({id(timing.checker) for timing in timings if timing}) == 1
        assert len({id(timing.kernel) for timing in timings if timing}) == LANES
        assert len({id(session.device) for session in sessions}) == LANES
        assert {session.info for session in sessions} == {INFO}
    with open_lanes("cuda", "GPU-7", None) as sessions:
        assert len(sessions) == 1


def test_the_lock_is_that_of_the_gpu_by_its_uuid(house: House) -> None:
    house.described = INFO.model_copy(update={"uuid": "GPU-7"})
    with on_gpu(house) as session, session.turn(Silent()):
        assert house.locked == ["GPU-7 alone"]


def test_a_turn_that_fails_renews_too(house: House) -> None:
    with on_gpu(house) as session:
        with pytest.raises(ZeroDivisionError), session.turn(Silent()):
            _ = 1 / 0
        assert house.of(Role.COMPILER)[0].done[-1] == "closed"


def test_renewing_ends_what_a_submission_has_touched(house: House) -> None:
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None
        house.forget()
        session.renew()
        assert house.sanitizer_resets == 1
        ended = [worker for worker in house.workers if worker.done == ["closed"]]
        touched = (session.compiler, session.device, timing.kernel, house.of(Role.CPU)[0])
        assert {id(each) for each in ended} == {id(each) for each in touched}


def test_a_grading_is_prepared_and_a_compilation_that_failed_costs_the_compiler(
    house: House,
) -> None:
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None
        always = (timing.baseline, timing.checker)
        house.forget()
        session.prepare((Tool.MEMCHECK,), True)
        with session.company(Silent()):  # the device has answered by then
            asked = StartSanitizers(tools=(Tool.MEMCHECK,))
            for worker in house.workers:
                more = [asked] if worker is session.device else []
                if worker in always:
                    assert "started" not in worker.done
                elif worker.role is Role.CPU:
                    assert worker.done == ["started"]
                else:
                    assert worker.done == ["started", *more, "started"]
        house.forget()
        session.renew_compiler()
        assert [worker.role for worker in house.workers if worker.done] == [Role.COMPILER]
        assert house.of(Role.COMPILER)[0].done == ["closed"] and house.sanitizer_resets == 0


def test_contexts_are_created_while_a_kernel_is_compiled_unless_somebody_measures(
    house: House,
) -> None:
    house.opening = 2
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None
        house.forget()
        session.prepare((Tool.MEMCHECK,), True)
        assert house.shared.wait(PATIENCE) and house.asked_about[-1] == INFO.name
        assert not any(OpenKernels() in worker.done for worker in house.workers)
        house.somebody_measures = False
        house.shared.clear()
        house.forget()
        session.prepare((Tool.MEMCHECK,), True)
        assert house.shared.wait(PATIENCE)
        assert timing.baseline.done == [OpenLibraries()]  # type: ignore[attr-defined]
        assert timing.checker.done == [OpenKernels()]  # type: ignore[attr-defined]
        assert timing.kernel.done == ["started"], "its context is timed"  # type: ignore[attr-defined]
        asked = [StartSanitizers(tools=(Tool.MEMCHECK,)), *[OpenSanitizers()] * 3]
        assert session.device.done == ["started", *asked]  # type: ignore[attr-defined]


def test_where_who_measures_has_cores_of_its_own_tools_open_beside_it_and_before_company(
    house: House,
) -> None:
    house.opening = 2
    with on_gpu(house, CORES) as session:
        timing = session.timing
        assert timing is not None and house.somebody_measures
        house.forget()
        session.prepare((Tool.MEMCHECK,), True)
        with session.company(Silent()):
            assert session.device.done.count(OpenSanitizers()) == 3  # type: ignore[attr-defined]
        assert not house.shared.is_set(), "who measures is not waited for"
        house.forget()
        session.prepare((Tool.MEMCHECK,), True)
        session.renew()
        assert OpenKernels() not in timing.checker.done  # type: ignore[attr-defined]


def test_tools_that_never_open_hold_nobody_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_of, "_OPEN_SECONDS", 0.01)
    house.opening, house.somebody_measures = 1 << 30, False
    with on_gpu(house) as session:
        session.prepare((Tool.MEMCHECK,), True)
    assert house.shared.is_set()
    with on_gpu(house, CORES) as session:
        session.prepare((Tool.MEMCHECK,), True)
        with session.company(Silent()):
            assert house.locked[-1] == "fake shared"


def test_tools_that_do_not_answer_are_asked_once(house: House) -> None:
    house.opening = Fault(cause="memory", message="it ended")
    with on_gpu(house, CORES) as session:
        session.prepare((Tool.MEMCHECK,), True)
        with session.company(Silent()):
            assert session.device.done.count(OpenSanitizers()) == 1  # type: ignore[attr-defined]


def test_a_grading_without_tools_waits_for_none(house: House) -> None:
    with on_gpu(house, CORES) as session, session.company(Silent()):
        assert house.locked == ["fake shared"]


def test_all_processes_end_at_once(house: House) -> None:
    """The driver takes a while to let go of each."""
    together = Barrier(6)

    def end(worker: FakeWorker) -> None:
        if worker.done.count("closed") == 1:
            together.wait(PATIENCE)

    with on_gpu(house):
        house.forget()
        house.ending = end
    assert together.n_waiting == 0 and not together.broken


def test_the_cpu_sanitizer_is_started_where_it_will_have_something_to_do(house: House) -> None:
    with on_gpu(house) as session:
        (worker,) = house.of(Role.CPU)
        session.prepare((Tool.MEMCHECK,), False)
        with session.company(Silent()):
            assert "started" not in worker.done
        session.prepare((Tool.MEMCHECK,), True)
        assert worker.done[-1] == "started"


def test_the_cpu_device_starts_no_sanitizers_of_a_gpu(house: House) -> None:
    with open_session("cpu") as session:
        session.prepare(tuple(Tool), True)
        asked = [each for worker in house.workers for each in worker.done]
        assert not any(isinstance(each, StartSanitizers) for each in asked)


def test_who_measures_has_its_own_cores_in_a_turn(house: House) -> None:
    with on_gpu(house, CORES) as session:
        timing = session.timing
        assert session.works_ahead and timing is not None
        always = (timing.baseline, timing.checker)
        for worker in house.workers:
            cores = [each for each in worker.done if isinstance(each, frozenset)]
            measures = any(worker is each for each in always)
            assert cores == [CORES.measuring if measures else CORES.helping], worker.role
        house.forget()
        with session.turn(Silent()):
            measuring = (session.device, timing.kernel)
            for worker in house.workers:
                own = CORES.measuring in worker.done
                assert own is any(worker is each for each in measuring)
            house.forget()
        for each in measuring:
            assert CORES.helping in each.done  # type: ignore[attr-defined]
        for each in always:
            assert each.done == []  # type: ignore[attr-defined]


def test_without_cores_nobody_is_held_to_any(house: House) -> None:
    with on_gpu(house) as session, session.company(Silent()), session.turn(Silent()):
        assert not session.works_ahead
    assert not any(isinstance(each, frozenset) for worker in house.workers for each in worker.done)


def test_kernels_side_by_side_have_the_cores_of_those_who_measure(house: House) -> None:
    with on_gpu(house, CORES) as session:
        assert session.side_by_side is not None
        before = len(house.workers)
        with session.side_by_side(2):
            assert all(CORES.measuring in each.done for each in house.workers[before:])


def test_kernels_side_by_side_have_a_process_each_for_as_long(house: House) -> None:
    with on_gpu(house) as session:
        timing = session.timing
        assert timing is not None and session.side_by_side is not None
        before = len(house.workers)
        with session.side_by_side(3) as side_by_side:
            added = house.workers[before:]
            assert [(each.role, each.gpu) for each in added] == [(Role.CUDA, "GPU-7")] * 3
            assert [each.kernel for each in side_by_side] == added
            for each in side_by_side:
                assert each.baseline is timing.baseline and each.checker is timing.checker
        assert all(worker.done == ["opened", "ended"] for worker in added)


def test_a_device_that_does_not_work_is_the_judges_failure(house: House) -> None:
    house.described = Fault(cause="judge", message="no driver", details="why")
    with pytest.raises(JudgeFailure, match="no driver") as failure, on_gpu(house):
        pass
    assert failure.value.details == "why"
    assert all(worker.done[-1] in ("ended", "closed") for worker in house.workers)


@pytest.mark.parametrize("choice", ["cuda", "cpu"])
def test_who_compiles_first_waits_for_no_device(choice: Any, house: House) -> None:
    house.answers.clear()
    with open_session(choice, compiles_first=True) as session:
        assert session.arch == "sm_90a"
        house.answers.set()
        assert session.info is INFO


def test_where_the_driver_does_not_say_the_device_says_what_is_compiled(house: House) -> None:
    house.arch = None
    house.described = INFO.model_copy(update={"arch": "sm_80"})
    with on_gpu(house) as session:
        assert session.arch == "sm_80"


def test_a_device_that_does_not_work_is_said_to_whom_asks_it(house: House) -> None:
    house.described = Fault(cause="judge", message="no driver")
    with open_session("cuda", compiles_first=True) as session:
        with pytest.raises(JudgeFailure, match="no driver"):
            _ = session.info
        with pytest.raises(JudgeFailure, match="no driver"), session.turn(Silent()):
            pass


@pytest.mark.parametrize("choice", ["auto", "cuda", "cpu"])
@pytest.mark.parametrize("missing", [None, "there is no NVIDIA GPU"])
def test_the_device_is_the_one_asked_for_or_the_gpu_where_there_is_one(
    choice: Any, missing: str | None, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_of, "why_no_cuda", lambda: missing)
    if choice == "cuda" and missing is not None:
        said = "this needs a GPU: there is no NVIDIA GPU"
        with pytest.raises(UsageError, match=said), open_session(choice):
            pass
        return
    with open_session(choice) as session:
        assert (session.timing is not None) is (choice != "cpu" and missing is None)
