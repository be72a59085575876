"""A judge in an arena: a lane compiles while another has the device; a GPU is checked up."""

from __future__ import annotations

import threading

from harness.arena.judging import Judge
from harness.judge.progress import Silent
from harness.protocol.report import CompileError, Stage
from harness.protocol.request import Fault
from tests.arena.submitting import submission
from tests.judge.stages.fakes import (
    FakeDevice,
    Process,
    session,
)
from tests.waiting import PATIENCE


class Compiler(Process):
    """Waits, in each lane, until the other lane compiles, too."""

    def __init__(self, both: threading.Barrier) -> None:
        self._both = both
        self.asked = 0

    def ask(self, request: object) -> CompileError | Fault:
        self.asked += 1
        self._both.wait(PATIENCE)
        return CompileError(stage=Stage.COMPILE, message="does not compile")


def test_each_lane_compiles_one_submission_at_a_time() -> None:
    both = threading.Barrier(2)
    compilers = [Compiler(both), Compiler(both)]
    judge = Judge([session(each, FakeDevice()) for each in compilers], quick=True)
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
