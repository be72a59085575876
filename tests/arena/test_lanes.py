"""A worker with two lanes: one compiles while another has the device."""

import queue
import threading
from uuid import UUID, uuid4

import pytest

from harness.arena.processes import End
from harness.arena.workers import process
from harness.arena.workers.api import Decision, Heartbeat, HeartbeatAnswer, Join, Task
from harness.arena.workers.connection import GpuTaken, SessionLost
from harness.arena.workers.process import Worker
from harness.protocol.report import CompileError, Report, Stage
from harness.protocol.request import Fault
from tests.board import factory
from tests.judge.stages.fakes import INFO, FakeDevice, FakeSession, Process, on_gpu
from tests.waiting import PATIENCE


class Compiler(Process):
    """Waits, in each lane, until the other lane compiles, too."""

    def __init__(self, both: threading.Barrier) -> None:
        super().__init__()
        self._both = both

    def usual(self, request: object) -> CompileError | Fault:
        self._both.wait(PATIENCE)
        return CompileError(stage=Stage.COMPILE, message="does not compile")


def task(name: str) -> Task:
    return Task(
        attempt=uuid4(),
        submission="0" * 16,
        name=name,
        author="ada",
        source=factory.SOURCE,
        quick=True,
    )


class Arena:
    """An arena that has some tasks, and drains its worker when it has all reports."""

    def __init__(self, tasks: int, held: int = 0) -> None:
        """held: how often another worker has the GPU when this one joins."""
        self._held = held
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for number in range(tasks):
            self._tasks.put(task(f"k{number}"))
        self._missing = tasks
        self.verdicts: list[str] = []
        self.joins: list[Join] = []

    def join(self, join: Join) -> UUID:
        self._held -= 1
        if self._held >= 0:
            raise GpuTaken("it is held by another")
        self.joins.append(join)
        return uuid4()

    def heartbeat(self, session: UUID, heartbeat: Heartbeat) -> HeartbeatAnswer:
        over = len(self.verdicts) == self._missing
        return HeartbeatAnswer(leave=over, lost=())

    def fetch(self, session: UUID) -> Task | None:
        try:
            return self._tasks.get(timeout=0.1)
        except queue.Empty:
            return None

    def finish(self, attempt: UUID, report: Report) -> Decision:
        self.verdicts.append(report.verdict.value)
        return Decision.COUNTED

    def leave(self, session: UUID) -> None:
        pass


@pytest.fixture(autouse=True)
def no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.signal, "signal", lambda *_: None)


def test_each_lane_compiles_one_submission_at_a_time() -> None:
    both = threading.Barrier(2)
    compilers = [Compiler(both), Compiler(both)]
    sessions = [FakeSession(each, FakeDevice()) for each in compilers]
    arena = Arena(tasks=6)
    assert Worker(arena, sessions, uuid4(), "gpu-0").run() is End.DRAINED
    assert arena.verdicts == ["compile-error"] * 6
    assert [len(each.asked) for each in compilers] == [3, 3], "a lane has one submission at a time"
    assert [each.model for each in arena.joins] == [INFO.name]


class Forgetful(Arena):
    """An arena that once does not know its worker, and whose first submission is then cancelled."""

    lost: frozenset[UUID] = frozenset()
    beats = 0
    told = threading.Event()
    """Set when the worker has read that an attempt is lost."""

    def heartbeat(self, session: UUID, heartbeat: Heartbeat) -> HeartbeatAnswer:
        self.beats += 1
        if self.beats == 1:
            raise SessionLost
        if self.lost:
            self.told.set()
        self.lost = self.lost or frozenset(heartbeat.attempts)
        return HeartbeatAnswer(leave=bool(self.verdicts), lost=tuple(self.lost))

    def finish(self, attempt: UUID, report: Report) -> Decision:
        return Decision.LOST if attempt in self.lost else super().finish(attempt, report)


def test_a_worker_joins_again_and_stops_grading_what_is_cancelled() -> None:
    arena = Forgetful(tasks=2)

    def one_case(_: object) -> Fault | dict[str, object]:
        if arena.told.is_set():
            return Fault(cause="trap", message="the kernel of the next submission stops")
        assert arena.told.wait(PATIENCE)
        return {}

    device = FakeDevice(run=one_case)
    assert Worker(arena, [on_gpu(device)], uuid4(), "gpu-0").run() is End.DRAINED
    assert len(device.ran) == 2, "one case of each"
    assert (len(arena.joins), arena.verdicts) == (2, ["runtime-error"])


@pytest.mark.parametrize(("held", "joins"), [(3, True), (1000, False)])
def test_a_worker_waits_until_its_predecessors_lease_ends(
    held: int, joins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(process, "LEASE_SECONDS", 1.0 if joins else 0.1)
    worker = Worker(Arena(0, held), [FakeSession(Process(), FakeDevice())], uuid4(), "gpu-0")
    if joins:
        assert worker.run() is End.DRAINED
    else:
        with pytest.raises(GpuTaken):
            worker.run()
