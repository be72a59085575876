"""The CPU sanitizer: it works while a GPU does, and ends when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.judge.stages.sanitize import diagnose_hang
from harness.judge.workers import cpu_sanitizer
from harness.judge.workers.cpu_sanitizer import CpuSanitizer
from harness.judge.workers.isolation import Role
from harness.protocol.compiler import Compiled, Kernel
from harness.protocol.device import Count, Counted, Load, Ready, Refusal, Sanitize, Sanitized
from harness.protocol.report import Hazard, Race
from harness.protocol.request import Fault
from problem.cases import RANKED, Case, Shape
from tests.compile_worker import Compiling
from tests.judge.stages.fakes import kernel as fake_kernel
from tests.requests import count_on, sanitize_on
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parents[3]
ENDLESS = "tests/submissions/time-limit/endless_loop.cu"
SHAPE = Shape(17, 33, 18)
REQUEST = sanitize_on(SHAPE, seconds=20)


@pytest.fixture
def sanitizer() -> Iterator[CpuSanitizer]:
    sanitizer = CpuSanitizer()
    yield sanitizer
    sanitizer.reset()


def kernel(compiling: Compiling, path: str) -> Kernel:
    compiled = compiling((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(compiled, Compiled)
    return compiled.kernel


def test_it_sanitizes_and_counts_what_it_was_given(
    sanitizer: CpuSanitizer, compiling: Compiling
) -> None:
    sanitizer.load(kernel(compiling, "tests/submissions/race/no_barrier_after_loading.cu"))
    found = sanitizer.sanitize(REQUEST).result()
    assert isinstance(found, Sanitized) and found.findings
    sanitizer.load(kernel(compiling, "solutions/02_shared_tile.cu"))
    found = sanitizer.sanitize(REQUEST).result()
    assert isinstance(found, Sanitized) and not found.findings
    counted = sanitizer.count(count_on(SHAPE, 2, seconds=20)).result()
    assert isinstance(counted, Counted)


def test_resetting_ends_what_it_is_at(sanitizer: CpuSanitizer, compiling: Compiling) -> None:
    sanitizer.load(kernel(compiling, ENDLESS))
    asked = sanitizer.sanitize(sanitize_on(SHAPE, seconds=PATIENCE))
    eventually(lambda: sanitizer.worker.process_id, "begun")
    sanitizer.reset()
    assert asked.done() and sanitizer.worker.process_id is None
    ended = None if asked.cancelled() else asked.result()
    assert ended is None or (isinstance(ended, Fault) and ended.cause == "judge"), ended


def test_it_tells_why_a_launch_hangs(sanitizer: CpuSanitizer, compiling: Compiling) -> None:
    case = Case(Shape(27, 37, 39))
    barrier = kernel(compiling, "tests/submissions/race/barrier_in_a_branch.cu")
    why = diagnose_hang(sanitizer, barrier, case, seed=1)
    assert isinstance(why, Race)
    assert why.findings[0].hazard in (Hazard.DIVERGENT_BARRIER, Hazard.DEADLOCK)
    assert diagnose_hang(sanitizer, barrier, RANKED, seed=1) is None
    endless = kernel(compiling, ENDLESS)
    assert diagnose_hang(sanitizer, endless, case, seed=1) is None


# ------------------------------------------------------------------ with a worker that is none


class FakeWorker:
    """Notes what it is asked, in the thread that asks, and answers what it is told."""

    answer: Any = None

    def __init__(self, role: Role) -> None:
        assert role is Role.CPU
        self.asked: list[Any] = []
        self.threads: list[str] = []
        self.closed = 0
        self.waiting: threading.Event | None = None

    def ask(self, request: Any) -> Any:
        self.asked.append(request)
        self.threads.append(threading.current_thread().name)
        if self.waiting is not None:
            self.waiting.wait(PATIENCE)
        return Ready() if isinstance(request, Load) and self.answer is None else self.answer

    def close(self) -> None:
        self.closed += 1
        if self.waiting is not None:
            self.waiting.set()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[CpuSanitizer, FakeWorker]]:
    monkeypatch.setattr(cpu_sanitizer, "Worker", FakeWorker)
    made = CpuSanitizer()
    worker: Any = made.worker
    yield made, worker
    made.reset()


def test_a_kernel_is_loaded_once_and_in_the_background(
    fake: tuple[CpuSanitizer, FakeWorker],
) -> None:
    sanitizer, worker = fake
    one, other = fake_kernel(), fake_kernel()
    for loaded in (one, one, other):
        sanitizer.load(loaded)
    worker_answer = sanitizer.count(count_on(SHAPE, 2, seconds=20)).result()
    assert worker_answer is None
    assert [type(each) for each in worker.asked] == [Load, Load, Count]
    assert [each.kernel for each in worker.asked[:2]] == [one, other]
    assert all(each.mostly_watched for each in worker.asked[:2])
    assert all(name.startswith("cpu-sanitizer") for name in worker.threads)
    assert len({*worker.threads}) == 1


def test_it_sanitizes_what_the_worker_has_taken(fake: tuple[CpuSanitizer, FakeWorker]) -> None:
    sanitizer, worker = fake
    for _ in range(2):
        with pytest.raises(AssertionError, match="load a kernel first"):
            sanitizer.sanitize(REQUEST).result()
        worker.asked.clear()
        sanitizer.load(fake_kernel())
        assert sanitizer.sanitize(REQUEST).result() is None
        assert worker.asked[1] is REQUEST
        sanitizer.reset()


@pytest.mark.parametrize(
    "answer", [Refusal(message="no clusters here"), Fault(cause="judge", message="no")]
)
def test_a_kernel_that_it_cannot_run_is_its_answer(
    answer: Any, fake: tuple[CpuSanitizer, FakeWorker]
) -> None:
    sanitizer, worker = fake
    worker.answer = answer
    sanitizer.load(fake_kernel())
    assert sanitizer.sanitize(REQUEST).result() is answer
    assert [type(each) for each in worker.asked] == [Load]


def test_resetting_waits_for_nothing_and_forgets_the_kernel(
    fake: tuple[CpuSanitizer, FakeWorker],
) -> None:
    sanitizer, worker = fake
    one = fake_kernel()
    worker.waiting = threading.Event()
    sanitizer.load(one)
    asked = sanitizer.sanitize(REQUEST)
    eventually(lambda: worker.asked, "begun")
    sanitizer.reset()
    assert worker.closed == 2 and asked.cancelled()
    sanitizer.load(one)
    assert sanitizer.sanitize(REQUEST).result() is None
    assert [type(each) for each in worker.asked] == [Load, Load, Sanitize]


def test_one_piece_of_work_follows_the_other(fake: tuple[CpuSanitizer, FakeWorker]) -> None:
    sanitizer, worker = fake
    for _ in range(2):
        worker.asked.clear()
        worker.waiting = threading.Event()
        counts = [sanitizer.count(count_on(SHAPE, 2, seconds=20)) for _ in range(3)]
        eventually(lambda: worker.asked, "begun")
        assert not any(count.done() for count in counts) and len(worker.asked) == 1
        worker.waiting.set()
        assert [count.result() for count in counts] == [None] * 3
        sanitizer.reset()
