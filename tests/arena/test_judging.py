"""A judge in an arena: a lane compiles while another has the device; a GPU is checked up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.arena import judging
from harness.arena.judging import Judge
from harness.judge.grade import GradingOptions
from harness.judge.progress import Progress, Silent
from harness.judge.workers.session import Session
from harness.protocol.errors import JudgeFailure
from harness.protocol.report import CompileError, Report, Stage, Submission, Verdict
from harness.protocol.request import Fault
from tests.arena.checkups import WELL
from tests.arena.handing_in import submission
from tests.judge.stages.fakes import (
    INFO,
    FakeDevice,
    session,
)
from tests.protocol.test_report import report
from tests.waiting import PATIENCE


class Compiler:
    """Waits, in each lane, until the other lane compiles, too."""

    def __init__(self, both: threading.Barrier) -> None:
        self._both = both
        self.asked = 0

    def ask(self, request: object) -> CompileError | Fault:
        self.asked += 1
        self._both.wait(PATIENCE)
        return CompileError(stage=Stage.COMPILE, message="does not compile")


@contextmanager
def turn(_: Progress) -> Iterator[None]:
    yield


def test_as_many_submissions_are_compiled_at_once_as_there_are_lanes() -> None:
    both = threading.Barrier(2)
    compilers = [Compiler(both), Compiler(both)]
    judge = Judge([session(each, FakeDevice(), turn=turn) for each in compilers], quick=True)
    assert judge.lanes == 2
    verdicts: list[str] = []

    def grade(name: str) -> None:
        verdicts.append(judge.grade(submission(name), Silent()).verdict.value)

    threads = [threading.Thread(target=grade, args=(f"k{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert verdicts == ["compile-error"] * 6
    assert [each.asked for each in compilers] == [3, 3], "a session has one submission at a time"


def test_a_check_up_is_quick_also_where_submissions_are_graded_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graded: list[tuple[str, bool]] = []

    def fake_grade(
        submission: Submission, session: Session, options: GradingOptions, progress: Progress
    ) -> Report:
        graded.append((submission.name, options.quick))
        return report(submission=submission)

    def calibrate(*_: object) -> None:
        raise JudgeFailure("no cuBLAS here")

    monkeypatch.setattr(judging, "grade", fake_grade)
    monkeypatch.setattr(judging, "calibrate", calibrate)
    monkeypatch.setattr(judging, "health", lambda _: WELL)
    info = INFO.model_copy(update={"uuid": "GPU-1", "arch": "sm_90a"})
    judge = Judge([session(FakeDevice(), FakeDevice(), info, turn=turn)], quick=False)
    found = judge.check_up(Silent())
    names = ["02_shared_tile", "17_split_tail", "36_wgmma_one_accumulator"]
    assert graded == [(name, True) for name in names]
    assert [known.name for known in found.known] == ["cuBLAS", *names]
    assert found.known[0].message == "no cuBLAS here"
    assert {known.verdict for known in found.known[1:]} == {Verdict.COMPILE_ERROR}
