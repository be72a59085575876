"""Whatever breaks: a clear sentence, nothing left behind, the next grading right."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from harness import grade as grading
from harness.compiling.kernel import Compile
from harness.devices.device import Fault
from harness.grade import Options, grade
from harness.report import Report, Stage, Value
from harness.stages.progress import Silent
from harness.workers.isolation import Role
from harness.workers.remote import T, Worker
from problem.cases import Matrix

ROOT = Path(__file__).resolve().parent.parent.parent
RIGHT = ROOT / "solutions" / "01_naive.cu"
SLOW = """
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    volatile int going = 1;
    while (going) going = going | N;
}
"""
QUICK = Options(device="cpu", quick=True, seconds=10)
TILE = ROOT / "solutions" / "02_shared_tile.cu"
ON_GPU = Options(device="cuda", quick=True, seconds=10)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process and no folder may be left after any of these tests."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = _descendants()
    yield
    assert list(folder.glob("matmul-arena-*")) == []
    assert _settled(before) <= before


def _descendants() -> set[int]:
    """Workers of any judge started here: their command line says what they are."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
                parent = (entry / "status").read_text().partition("PPid:\t")[2].split()[0]
            except OSError:
                continue
            if b"harness.workers.confined" in words and int(parent) in (os.getpid(), 1):
                found.add(int(entry.name))
    return found


def _settled(before: set[int]) -> set[int]:
    for _ in range(50):
        if _descendants() <= before:
            break
        time.sleep(0.1)
    return _descendants()


def next_is_right() -> None:
    assert grade(RIGHT, QUICK).verdict == "accepted"


# ------------------------------------------------------------------------------ killed workers


class KilledAt:
    """Kills a worker right when it has been asked for something."""

    def __init__(self, request: str, signal_number: int) -> None:
        self.request = request
        self.signal = signal_number
        self.killed = 0
        self.ask = Worker.ask

    def __call__(
        self,
        worker: Worker,
        request: Value,
        answer: TypeAdapter[T],
        matrices: list[Matrix] | tuple[Matrix, ...] = (),
        *,
        seconds: float = 60,
    ) -> tuple[T | Fault, list[Matrix]]:
        if type(request).__name__ == self.request and not self.killed:
            worker.start()
            assert worker.process_id is not None
            os.kill(worker.process_id, self.signal)
            self.killed += 1
        return self.ask(worker, request, answer, matrices, seconds=seconds)

    def method(self) -> Callable[..., object]:
        """As a method: an instance that can be called is not bound."""

        def ask(worker: Worker, *arguments: Any, **options: Any) -> object:
            return self(worker, *arguments, **options)

        return ask


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize("request_name", ["Describe", "Compile", "Load", "Run", "Sanitize"])
def test_a_worker_killed_at_any_stage_is_said_and_survived(
    request_name: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = KilledAt(request_name, number)
    monkeypatch.setattr(Worker, "ask", killer.method())
    report = grade(RIGHT, QUICK)
    assert killer.killed == 1
    message = getattr(report.outcome, "message", "")
    assert report.verdict in ("judge-error", "compile-error") and number.name in message
    assert "Traceback" not in message
    next_is_right()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "request_name",
    [
        *("Describe", "Compile", "Load", "Run", "Sanitize", "MeasureFirstLaunch"),
        *("MeasureHostMemory", "LayOut", "Attach", "DrawInputs", "TimeLaunch", "CheckLaunch"),
        *("FetchLaunch", "Detach"),
    ],
)
def test_a_worker_killed_beside_a_gpu_is_said_and_survived(
    request_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = KilledAt(request_name, signal.SIGKILL)
    full = request_name in ("MeasureHostMemory", "FetchLaunch")
    with monkeypatch.context() as patched:
        patched.setattr(Worker, "ask", killer.method())
        report = grade(TILE, replace(ON_GPU, quick=not full))
    assert killer.killed == 1
    if request_name == "Detach":  # all is over by then
        assert report.verdict == "accepted"
    else:
        assert report.verdict in ("judge-error", "compile-error")
        assert "SIGKILL" in getattr(report.outcome, "message", "")
    assert grade(TILE, ON_GPU).verdict == "accepted"


def test_a_worker_that_cannot_start_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/no/such/python")
        report = grade(RIGHT, QUICK)
        assert report.verdict == "judge-error"
    next_is_right()


def test_a_full_scratch_folder_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setenv("TMPDIR", "/proc")
        broken.setattr("tempfile.tempdir", "/proc")
        report = grade(RIGHT, QUICK)
        assert report.verdict == "judge-error"
    next_is_right()


def test_a_compiler_without_memory_is_the_sources_fault(tmp_path: Path) -> None:
    """Under a tenth of its limit the compiler cannot even begin."""
    with Worker(Role.COMPILER) as worker:
        from harness.workers.remote import _COMPILED

        worker.ask(Compile(source=""), _COMPILED)
        assert worker.process_id is not None
        resource.prlimit(worker.process_id, resource.RLIMIT_AS, (1 << 20, 1 << 20))
        answer, _ = worker.ask(Compile(source=RIGHT.read_text()), _COMPILED)
        assert not getattr(answer, "kernel", None)
        message = getattr(answer, "message", "")
        assert message and "Traceback" not in message


# ------------------------------------------------------------------------------------- reports


def _small_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def run(
    *arguments: str, full_disk: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100"} | environment,
        timeout=120,
        check=False,
        preexec_fn=_small_disk if full_disk else None,
    )


def test_a_full_disk_leaves_the_old_report(tmp_path: Path) -> None:
    """Every file that this grading writes may have a thousand bytes; its report is longer."""
    kept = tmp_path / "report.json"
    kept.write_text("the old report")
    broken = tmp_path / "broken.cu"
    broken.write_text("#error " + "x" * 400)
    done = run("grade", "--device", "cpu", "--json", str(kept), str(broken), full_disk=True)
    assert done.returncode == 2
    assert "the report was not kept" in done.stderr and "Traceback" not in done.stderr
    assert kept.read_text() == "the old report"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.fixture(scope="module")
def report_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return grade(RIGHT, QUICK).model_dump_json()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"accepted"', '"excellent"'),
        lambda text: text.replace('"schema_version":1', '"schema_version":99'),
        lambda text: text.replace('"seed":', '"sead":'),
        lambda text: json.dumps({"reports": [json.loads(text)]}),
        lambda text: text.replace('"quick":true', '"quick":"yes, very"'),
        lambda text: "\0" * 100,
    ],
)
def test_a_damaged_report_is_refused_in_one_sentence(
    damage: object, report_text: str, tmp_path: Path
) -> None:
    assert callable(damage)
    store, path = tmp_path / "store.sqlite", tmp_path / "report.json"
    path.write_text(damage(report_text))
    done = run("import", str(path), "--store", str(store))
    assert done.returncode not in (0, -11) and done.stderr.strip()
    assert "Traceback" not in done.stderr + done.stdout


# -------------------------------------------------------------------------------- interruption


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_grading_leaves_nothing(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    endless = tmp_path / "endless.cu"
    endless.write_text(SLOW)
    judge = subprocess.Popen(
        [sys.executable, "-m", "harness", "grade", "--device", "cpu", str(endless)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    folder = Path(os.environ["TMPDIR"])
    for _ in range(300):
        if any(folder.glob("matmul-arena-*")):
            break
        time.sleep(0.05)
    time.sleep(1.5)  # into the endless launch
    judge.send_signal(number)
    _, stderr = judge.communicate(timeout=30)
    assert judge.returncode == code, stderr
    assert "Traceback" not in stderr
    next_is_right()


class InterruptedAt(Silent):
    """Ctrl-C at a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def begin(self, stage: Stage, total: int | None) -> None:
        if stage is self.stage:
            raise KeyboardInterrupt


@pytest.mark.parametrize("stage", [Stage.COMPILE, Stage.VERIFY, Stage.SANITIZE])
def test_an_interruption_at_any_stage_leaves_nothing(stage: Stage) -> None:
    with pytest.raises(KeyboardInterrupt):
        grade(RIGHT, QUICK, InterruptedAt(stage))
    next_is_right()


# -------------------------------------------------------------------------------- our own bugs


def test_a_bug_of_ours_is_called_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(grading, "verify", lambda *_, **__: 1 / 0)
        report = grade(RIGHT, QUICK)
    assert report.verdict == "judge-error"
    assert "ZeroDivisionError" in getattr(report.outcome, "message", "")
    assert isinstance(Report.model_validate_json(report.model_dump_json()), Report)
    next_is_right()


def test_many_gradings_leak_nothing() -> None:
    """Files, threads and folders of the judge itself, over good and bad files in turn."""
    wrong = ROOT / "tests" / "submissions" / "wrong-answer" / "empty.cu"
    for path in (RIGHT, wrong):
        grade(path, QUICK)
    handles = len(list(Path("/proc/self/fd").iterdir()))
    tasks = len(list(Path("/proc/self/task").iterdir()))
    for path in (RIGHT, wrong, RIGHT, wrong):
        grade(path, QUICK)
    assert len(list(Path("/proc/self/fd").iterdir())) <= handles
    assert len(list(Path("/proc/self/task").iterdir())) <= tasks
