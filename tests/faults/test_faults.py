"""After a fault one sentence says what happened, nothing is left, and the next grading is right."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.session import Session
from harness.judge.submission import read
from harness.judge.workers.session import open_session
from harness.judge.workers.worker import Worker
from harness.protocol.errors import JudgeFailure
from harness.protocol.report import JudgeError, Report
from harness.protocol.request import Answer_co, Fault, Request
from harness.protocol.timing import TimingWorkers
from problem.cases import QUICK_CASES
from problem.problem import Problem
from tests.forked import python
from tests.grading import grade_file, lasting, with_parts
from tests.sources import kernel
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parent.parent.parent
RIGHT = ROOT / "solutions" / "01_naive.cu"
SLOW = kernel("volatile int going = 1; while (going) going = going | N;")
QUICK = GradingOptions(quick=True, seconds=PATIENCE)
ORPHANED = 1
"""The process that becomes the parent of orphans."""

TILE = ROOT / "solutions" / "02_shared_tile.cu"


@pytest.fixture(autouse=True)
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw few cases: these tests are not about the mistakes that a grading finds."""
    monkeypatch.setattr(Problem, "cases", lambda *_, **how: QUICK_CASES[:3])


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that no process and no folder is left after any of these tests."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = set(_workers(os.getpid(), ORPHANED))
    yield
    assert list(folder.glob("matmul-arena-*")) == []
    eventually(lambda: set(_workers(os.getpid(), ORPHANED)) <= before, "all workers gone")


def _workers(*parents: int, role: str = "") -> Iterator[psutil.Process]:
    """Yield the workers of these processes, with this word in their command lines."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            is_worker = "harness.judge.workers.entry_point" in words and (not role or role in words)
            if is_worker and process.ppid() in parents:
                yield process


def _seconds_computed(judge: int) -> float:
    """Return the seconds that the CPU device of this judge has computed."""
    seconds = 0.0
    for device in _workers(judge, role="cpu"):
        with suppress(psutil.Error):
            seconds += device.cpu_times().user
    return seconds


@dataclass
class Killer:
    """A killer of one worker, which waits until the worker handles a certain request."""

    request: str
    signal: int
    killed: int = 0

    def at(self, worker: Any) -> Mortal:
        return Mortal(worker, self)

    def in_session(self, session: Session) -> Session:
        timing = session.timing and TimingWorkers(
            self.at(session.timing.kernel),
            self.at(session.timing.baseline),
            self.at(session.timing.checker),
        )
        return with_parts(
            session,
            compiler=self.at(session.compiler),
            device=self.at(session.device),
            sanitizer=self.at(session.sanitizer),
            timing=timing,
        )


@dataclass
class Mortal:
    """A worker that a killer may kill."""

    worker: Worker
    killer: Killer

    def ask(self, request: Request[Answer_co]) -> Answer_co | Fault:
        if type(request).__name__ == self.killer.request and not self.killer.killed:
            self.worker.start()
            # It dies with the request in its hands: a worker that died before would be replaced.
            os.kill(self.worker.process_id, signal.SIGSTOP)
            Timer(0.3, self._end, (self.worker.process_id,)).start()
            self.killer.killed += 1
        return self.worker.ask(request)

    def _end(self, process: int) -> None:
        os.kill(process, self.killer.signal)
        os.kill(process, signal.SIGCONT)

    def close(self) -> None:
        self.worker.close()


KILLED = (
    *(("Compile", signal.SIGKILL), ("Load", signal.SIGKILL), ("Sanitize", signal.SIGKILL)),
    *(("Compile", signal.SIGSEGV), ("Run", signal.SIGSEGV)),
)


def test_a_worker_killed_at_any_stage_is_reported_and_survived() -> None:
    with open_session("cpu") as session:
        for request_name, number in KILLED:
            killer = Killer(request_name, number)
            report = grade(read(RIGHT), lasting(killer.in_session(session)), QUICK)
            assert killer.killed == 1
            assert grade(read(RIGHT), lasting(session), QUICK).verdict == "accepted"
            message = getattr(report.outcome, "message", "")
            # A compiler that crashes does so because of the source, as far as anyone can tell.
            crashed = request_name == "Compile" and number is signal.SIGSEGV
            if request_name == "Load" and report.verdict == "accepted":
                continue  # it was loaded early, and once more when the stage asked for it
            assert report.verdict == ("compile-error" if crashed else "judge-error")
            assert number.name in message and "Traceback" not in message


@pytest.mark.gpu
@pytest.mark.parametrize(
    "request_name",
    [
        *("Compile", "Load", "Run", "Sanitize", "MeasureFirstLaunch", "MeasureHostMemory"),
        *("ShareBuffers", "OpenBuffers", "DrawInputs", "TimeLaunch", "CheckLaunch"),
        *("FetchLaunch", "CloseBuffers"),
    ],
)
def test_a_worker_killed_on_a_gpu_is_reported_and_survived(request_name: str) -> None:
    killer = Killer(request_name, signal.SIGKILL)
    full = request_name in ("MeasureHostMemory", "FetchLaunch")
    with open_session("cuda") as session:
        report = grade(read(TILE), killer.in_session(session), replace(QUICK, quick=not full))
        assert killer.killed == 1
        if request_name == "CloseBuffers":  # all is over by then
            assert report.verdict == "accepted"
        else:
            assert report.verdict == "judge-error"
            assert "SIGKILL" in getattr(report.outcome, "message", "")
        afterwards = grade(read(TILE), session, QUICK)
        assert afterwards.verdict == "accepted", afterwards.outcome


def test_a_worker_that_cannot_start_is_the_judges_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("sys.executable", "/no/such/python"), ("tempfile.tempdir", "/proc")):
        with monkeypatch.context() as broken:
            broken.setattr(name, value)
            with pytest.raises(JudgeFailure, match="no cpu worker can be started"):
                grade_file(RIGHT, "cpu", QUICK)


def _small_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_full_disk_leaves_the_old_report(tmp_path: Path) -> None:
    """Every file that this grading writes may have a thousand bytes.

    Its report is longer. So is bytecode, of which Python would keep a thousand bytes.
    """
    kept = tmp_path / "report.json"
    kept.write_text("the old report")
    broken = tmp_path / "broken.cu"
    broken.write_text("#error " + "x" * 400)
    command = "-m", "harness", "grade", "--device", "cpu", "--json", kept, broken
    judge = python("-B", *command, preexec_fn=_small_disk)
    _, said = judge.communicate()
    assert judge.returncode == 2
    assert "the report was not kept: " in said and "Errno" not in said and "Traceback" not in said
    assert kept.read_text() == "the old report"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_grading_leaves_nothing(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """Not even when Ctrl-C is pressed again and again, which would interrupt the removal of files.

    At last Python may end by the signal itself, which a shell shows as the same number.
    """
    endless, scratch = tmp_path / "endless.cu", tmp_path / "scratch"
    endless.write_text(SLOW)
    scratch.mkdir()
    command = "-m", "harness", "grade", "--device", "cpu", endless
    environment = {**os.environ, "TMPDIR": str(scratch)}
    judge = python(*command, start_new_session=True, env=environment)
    while judge.poll() is None and _seconds_computed(judge.pid) < 0.5:
        time.sleep(0.02)
    while judge.poll() is None:
        judge.send_signal(number)
        time.sleep(0.01)
    _, stderr = judge.communicate()
    assert judge.returncode in (code, -number), stderr
    assert "Traceback" not in stderr and not [*scratch.iterdir()]


class Broken:
    """A device with a defect."""

    def ask(self, request: Request[Answer_co]) -> Answer_co | Fault:
        return 1 / 0  # type: ignore[return-value]


def test_a_defect_of_the_judge_is_called_so() -> None:
    with open_session("cpu") as session:
        report = grade(read(RIGHT), with_parts(session, device=Broken()), QUICK)
    assert isinstance(report.outcome, JudgeError)
    assert "ZeroDivisionError" in report.outcome.message
    assert "harness/judge/stages/compile.py" in report.outcome.details
    assert str(ROOT) not in report.model_dump_json()
    assert isinstance(Report.model_validate_json(report.model_dump_json()), Report)


def test_many_gradings_leak_nothing() -> None:
    """The judge's own files and threads do not increase with each grading of a good or bad file.

    Other tests' servers may have threads here, which come and go.
    """
    wrong = ROOT / "tests" / "submissions" / "wrong-answer" / "empty.cu"
    gradings = (RIGHT, wrong)
    grade_file(RIGHT, "cpu", QUICK)

    def held() -> tuple[int, int]:
        own = psutil.Process()
        return own.num_fds(), own.num_threads()

    files, threads = (count + len(gradings) for count in held())
    for path in gradings:
        grade_file(path, "cpu", QUICK)
    eventually(lambda: held()[0] < files, f"fewer than {files} open files")
    eventually(lambda: held()[1] < threads, f"fewer than {threads} threads")
