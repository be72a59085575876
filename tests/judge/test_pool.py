"""Many gradings on several GPUs, none of which is there."""

from __future__ import annotations

import argparse
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main as cli
from harness.cli.commands._arguments import chosen_gpus
from harness.cli.views.console import Terminal
from harness.devices import available
from harness.judge import gpu_process, pool
from harness.judge.grade import GradingOptions, grade
from harness.judge.pool import Finished, Lost, working
from harness.judge.progress import Progress, Silent
from harness.judge.workers.cores import Cores, keep_to
from harness.judge.workers.isolation import Role
from harness.judge.workers.processes import environment
from harness.judge.workers.session import Session
from harness.judge.workers.worker import Worker
from harness.protocol.errors import JudgeFailure
from harness.protocol.report import CompileError, Report, Stage, Verdict
from harness.protocol.request import Fault
from tests.judge.stages.fakes import (
    INFO,
    FakeDevice,
    Process,
    session,
)
from tests.waiting import PATIENCE

GPUS = ("GPU-a", "GPU-b", "GPU-c")


class Shown:
    """A watcher that counts."""

    def __init__(self) -> None:
        self.jobs: list[tuple[int, str]] = []

    @contextmanager
    def job(self, job: int, gpu: str) -> Iterator[Progress]:
        self.jobs.append((job, gpu))
        yield Silent()


@dataclass(frozen=True)
class FakeLane:
    """Grades without a process of its own."""

    session: Session

    def grade(self, submission: Any, options: GradingOptions, progress: Progress) -> Report:
        return grade(submission, self.session, options, progress)

    def stop(self) -> None:
        self.session.renew()


@dataclass
class Machine:
    """Fake GPUs: who is on which, and which sessions are open."""

    broken: Sequence[str] = ()
    compiler: Callable[[Any], Any] = lambda _: Fault(cause="judge", message="no compiler here")
    locks: dict[str, threading.Lock] = field(
        default_factory=lambda: {gpu: threading.Lock() for gpu in GPUS}
    )
    opened: Counter[str] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)
    renewed: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def lanes(self, gpu: str, cores: Cores | None = None) -> Iterator[Sequence[FakeLane]]:
        with ExitStack() as stack:
            count = 2 if cores else 1
            lanes = [FakeLane(stack.enter_context(self._session(gpu))) for _ in range(count)]
            if gpu in self.broken:
                raise JudgeFailure("it does not answer")
            yield lanes

    @contextmanager
    def _session(self, gpu: str) -> Iterator[Session]:
        self.opened[gpu] += 1

        def renewed() -> None:
            self.renewed[gpu] += 1

        class Compiler(Process):
            ask = staticmethod(self.compiler)

        info = INFO.model_copy(update={"uuid": gpu})
        try:
            made = session(Compiler(), FakeDevice(), info, renewed=renewed)
            made.lock = lambda _: self.locks[gpu]
            yield made
        finally:
            self.closed[gpu] += 1


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for several lanes a GPU; nothing is really moved."""
    every = frozenset(range(64))
    monkeypatch.setattr(pool, "shared_out", lambda gpus: [Cores(every, every)] * gpus)
    monkeypatch.setattr(pool, "keep_to", lambda process, cores: None)


def test_every_job_is_done_once_and_every_session_closed(many_cores: None) -> None:
    machine, shown = Machine(), Shown()

    def square(job: int, lane: FakeLane, progress: Progress) -> int:
        with lane.session.exclusive_lock(progress):
            return job * job

    held = []

    def opening(gpu: str, cores: Cores | None) -> AbstractContextManager[Sequence[FakeLane]]:
        held.append(machine.lanes(gpu, cores))
        return held[-1]  # which is closed by nobody's forgetting it

    with working(range(100), GPUS, square, shown, opening) as results:
        done = [each for each in results if isinstance(each, Finished)]
    assert sorted(each.job for each in done) == list(range(100))
    assert all(each.found == each.job**2 for each in done)
    assert {(each.job, each.gpu) for each in done} == {*shown.jobs}
    assert machine.opened == machine.closed == dict.fromkeys(GPUS, 2)
    assert sorted(job for job, _ in shown.jobs) == list(range(100))


def test_gpus_work_at_the_same_time(
    many_cores: None,
) -> None:
    machine = Machine()
    ready = {gpu: threading.Barrier(2) for gpu in GPUS}
    all_on = threading.Barrier(len(GPUS))
    turns: Counter[str] = Counter()

    def work(job: int, lane: FakeLane, progress: Progress) -> None:
        gpu = lane.session.info.uuid
        assert gpu is not None
        if job < 2 * len(GPUS):
            ready[gpu].wait(PATIENCE)  # both lanes of the GPU compile
        with lane.session.exclusive_lock(progress):
            turns[gpu] += 1
            if turns[gpu] == 1:
                all_on.wait(PATIENCE)  # every GPU is at its first job

    jobs = list(range(2 * len(GPUS)))
    with working(jobs, GPUS, work, Shown(), machine.lanes) as results:
        assert len(list(results)) == len(jobs)
    assert turns == dict.fromkeys(GPUS, 2)


def test_other_gpus_do_the_work_of_a_broken_one(many_cores: None) -> None:
    machine = Machine(broken=["GPU-b"])
    with working(range(10), GPUS, lambda job, *_: job, Shown(), machine.lanes) as results:
        done = list(results)
    assert [each for each in done if isinstance(each, Lost)] == [
        Lost("GPU-b", "it does not answer")
    ]
    assert sorted(each.job for each in done if isinstance(each, Finished)) == list(range(10))
    assert machine.opened == machine.closed


def test_leaving_ends_what_is_not_done(many_cores: None) -> None:
    machine = Machine()
    at_work = threading.Event()

    def endless(job: int, lane: FakeLane, progress: Progress) -> None:
        while True:
            if lane.session.info.uuid == "GPU-a":
                at_work.set()
            progress.step("round")

    with (
        pytest.raises(KeyboardInterrupt),
        working(range(100), GPUS, endless, Shown(), machine.lanes) as results,
    ):
        threading.Thread(target=lambda: list(results), daemon=True).start()
        assert at_work.wait(PATIENCE)
        raise KeyboardInterrupt
    assert machine.opened == machine.closed
    assert machine.renewed["GPU-a"], "what hangs in a worker is not waited for"


def test_a_defect_of_ours_comes_out(many_cores: None) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    machine = Machine()
    with (
        pytest.raises(ZeroDivisionError),
        working(range(9), GPUS, broken, Shown(), machine.lanes) as results,
    ):
        list(results)
    assert machine.opened == machine.closed


# ------------------------------------------------------------------------------- the command


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, many_cores: None) -> Machine:
    """Three GPUs, as far as the command can tell."""
    made = Machine(
        compiler=lambda request: CompileError(stage=Stage.COMPILE, message="does not compile")
    )
    monkeypatch.setattr(available, "why_no_cuda", lambda: None)
    monkeypatch.setattr(available, "gpus", lambda: list(GPUS))

    monkeypatch.setattr(gpu_process, "open_gpu", made.lanes)
    return made


def call(*words: str | Path) -> int:
    return cli.run(cli.parser().parse_args([str(word) for word in words]), Terminal())


def test_reports_come_as_whole_lines_of_json(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"{number}.cu" for number in range(20)]
    for file in files:
        file.write_text("__global__ void matrix_multiplication_kernel() {}")
    code = call("grade", "--gpus", "all", "--json", "-", *files, tmp_path / "none.cu")
    out, err = capsys.readouterr()
    reports = [Report.model_validate_json(line) for line in out.splitlines()]
    assert sorted(int(each.submission.name) for each in reports) == list(range(20))
    assert {each.verdict for each in reports} == {Verdict.COMPILE_ERROR}
    assert {each.device.uuid for each in reports if each.device} <= set(GPUS)
    assert code == 2 and "there is no file" in err


def test_the_worst_of_many_is_the_exit_code(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.cu"
    file.write_text("__global__ void matrix_multiplication_kernel() {}")
    assert call("grade", "--gpus", "2", file) == 1
    assert machine.opened == {"GPU-c": 2}
    machine.broken = ["GPU-a"]
    assert call("grade", "--gpus", "0,1", file) == 1
    assert "GPU-a is not used: it does not answer" in capsys.readouterr().err
    assert call("grade", "--gpus", "0", file) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("7", "'7' is no GPU of this machine; it has 3 of them, from 0"),
        ("0,0", "GPU 0 is named twice"),
        ("0,GPU-a", "GPU GPU-a is named twice"),
        ("GPU-", "'GPU-' is more than one GPU"),
        ("GPU-x", "'GPU-x' is no GPU"),
        ("", "'' is no GPU"),
        ("0,", "'' is no GPU"),
        ("-1", "'-1' is no GPU"),
    ],
)
def test_gpus_that_are_not_there_are_one_sentence(
    machine: Machine, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("grade", f"--gpus={words}", "x.cu") == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert said in err[-1] and machine.opened == {}


def test_gpus_are_named_by_number_uuid_or_its_beginning(machine: Machine) -> None:
    def chosen(text: str) -> list[str]:
        return chosen_gpus(argparse.Namespace(gpus=text, device="auto"))

    assert chosen("all") == list(GPUS)
    assert chosen("2,GPU-a") == ["GPU-c", "GPU-a"]


# --------------------------------------------------------------------------------- processes


def test_a_worker_keeps_to_its_cores(tmp_path: Path) -> None:
    core = frozenset(list(os.sched_getaffinity(0))[:1])
    with Worker(Role.COMPILER) as worker:
        worker.keep_to(core)
        worker.start()
        assert worker.process_id is not None
        assert os.sched_getaffinity(worker.process_id) == core
        keep_to(worker.process_id, frozenset(os.sched_getaffinity(0)))
        assert os.sched_getaffinity(worker.process_id) == os.sched_getaffinity(0)


def test_a_worker_sees_one_gpu(tmp_path: Path) -> None:
    seen = environment(Role.CUDA, tmp_path, "GPU-b")
    assert seen["CUDA_VISIBLE_DEVICES"] == "GPU-b"
