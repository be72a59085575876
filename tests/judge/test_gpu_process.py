"""A GPU's process, with the CPU device in the GPU's place."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.judge.gpu_process import Lane, open_gpu
from harness.judge.grade import GradingOptions
from harness.judge.progress import Silent, Stopped
from harness.judge.submission import read
from harness.judge.workers.cores import Cores
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import Report, Stage, Submission, Verdict
from tests.waiting import PATIENCE, eventually

SUBMISSIONS = Path(__file__).resolve().parents[1] / "submissions"
ENDLESS = """
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    for (volatile int i = 0; i >= 0; i = 1) {}
}
"""
QUICK = GradingOptions(quick=True)
CORES = Cores(frozenset(os.sched_getaffinity(0)), frozenset(os.sched_getaffinity(0)))


class Noted(Silent):
    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.steps: list[str] = []
        self.sentences: list[str] = []

    def begin(self, stage: Stage, total: int | None) -> None:
        self.stages.append(stage)

    def step(self, text: str) -> None:
        self.steps.append(text)

    def found(self, sentences: Iterable[str]) -> None:
        self.sentences += sentences


def endless() -> Submission:
    return Submission(name="endless", author=None, sha256="0" * 64, source=ENDLESS)


def the_process() -> multiprocessing.process.BaseProcess:
    (process,) = multiprocessing.active_children()
    return process


def test_lanes_grade_at_once_and_tell_of_it() -> None:
    files = [
        SUBMISSIONS / "compile-error" / "syntax.cu",
        SUBMISSIONS / "wrong-answer" / "transposed.cu",
    ]
    noted = [Noted(), Noted()]

    def graded(number: int) -> Report:
        return lanes[number].grade(read(files[number]), QUICK, noted[number])

    with open_gpu(None, CORES, "cpu") as lanes, ThreadPoolExecutor(2) as threads:
        first, second = threads.map(graded, range(2))
        again = lanes[0].grade(read(files[1]), QUICK, Silent())
    assert first.verdict is Verdict.COMPILE_ERROR and first.submission.name == "syntax"
    assert second.verdict is again.verdict is Verdict.WRONG_ANSWER
    assert noted[0].stages == [Stage.COMPILE]
    assert Stage.VERIFY in noted[1].stages and noted[1].steps and noted[1].sentences
    assert not multiprocessing.active_children()


def test_without_cores_for_them_there_is_one_lane() -> None:
    with open_gpu(None, None, "cpu") as lanes:
        assert len(lanes) == 1


def test_a_device_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # where there is a GPU
    with pytest.raises(UsageError, match="this needs a GPU"), open_gpu("GPU-x", None):
        raise AssertionError


def at_work(lane: Lane) -> tuple[threading.Thread, list[object]]:
    """At a kernel that does not end."""
    became: list[object] = []
    noted = Noted()

    def grade() -> None:
        try:
            became.append(lane.grade(endless(), QUICK, noted))
        except (JudgeFailure, Stopped) as error:
            became.append(error)

    thread = threading.Thread(target=grade)
    thread.start()
    eventually(lambda: Stage.VERIFY in noted.stages, "it verifies")
    return thread, became


def test_stopping_does_not_wait_for_a_kernel() -> None:
    with open_gpu(None, None, "cpu") as (lane,):
        thread, became = at_work(lane)
        lane.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive() and len(became) == 1


def test_a_process_that_is_killed_is_a_fault_of_ours() -> None:
    with open_gpu(None, None, "cpu") as (lane,):
        thread, _ = at_work(lane)
        process = the_process()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        thread.join(PATIENCE)
        with pytest.raises(JudgeFailure, match="has ended"):
            lane.grade(endless(), QUICK, Silent())


def test_ctrl_c_is_for_the_one_that_started_it() -> None:
    with open_gpu(None, None, "cpu") as (lane,):
        process = the_process()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.2)
        report = lane.grade(read(SUBMISSIONS / "compile-error" / "syntax.cu"), QUICK, Silent())
        assert report.verdict is Verdict.COMPILE_ERROR
