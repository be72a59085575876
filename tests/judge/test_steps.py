"""The step store: each step is done once, early or when it is asked for, and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.judge.steps import Place, Steps
from tests.judge.stages.fakes import FakeCompiler, FakeDevice, FakeSession, on_gpu
from tests.waiting import PATIENCE, eventually


@dataclass(frozen=True)
class Work:
    name: str
    place: Place = Place.JUDGE
    work: Callable[[Steps], Any] = field(compare=False, default=lambda _: None)

    def run(self, steps: Steps) -> Any:
        return self.work(steps)


def session() -> FakeSession:
    return on_gpu(FakeDevice())


def test_a_step_is_done_once_by_whoever_asks_first() -> None:
    steps, threads = Steps(session()), []
    note = lambda _: threads.append(threading.current_thread()) or len(threads)  # noqa: E731
    early, late = Work("early", work=note), Work("late", work=note)
    steps.start(early)
    assert steps.get(early) == steps.get(Work("early")) == 1
    assert steps.get(late) == steps.get(Work("late")) == 2
    steps.start(late)
    assert threads[0] is not threading.main_thread() and threads[1] is threading.main_thread()


def test_steps_of_one_place_work_one_after_the_other() -> None:
    steps, order = Steps(session()), []
    go = threading.Event()

    def first(_: Steps) -> None:
        assert go.wait(PATIENCE)
        order.append("first")

    second = Work("second", work=lambda _: order.append("second"))
    elsewhere = Work("elsewhere", Place.COMPILER, lambda _: order.append("elsewhere"))
    steps.start(Work("first", work=first), second, elsewhere)
    steps.get(elsewhere)
    go.set()
    steps.get(second)
    assert order == ["elsewhere", "first", "second"]


def test_a_step_may_ask_for_another() -> None:
    steps = Steps(session())
    inner = Work("inner", Place.CPU_SANITIZER, lambda _: 20)
    outer = Work("outer", Place.CPU_SANITIZER, lambda steps: steps.get(inner) + 1)
    steps.start(outer)
    assert steps.get(outer) == 21


def test_an_exception_of_a_step_is_raised_by_get() -> None:
    def fails(_: Steps) -> None:
        raise OSError("no space left")

    steps = Steps(session())
    steps.start(Work("early", work=fails))
    for name in ("early", "late"):
        with pytest.raises(OSError, match="no space"):
            steps.get(Work(name, work=fails))


def test_a_result_that_is_taken_is_forgotten() -> None:
    steps, done = Steps(session()), []
    work = Work("large", work=lambda _: done.append(True))
    for _ in range(2):
        steps.take(work)
    assert len(done) == 2


class Stuck(FakeDevice):
    """A device that answers when its process is closed, and not before."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.ended = threading.Event()

    def ask(self, request: Any) -> Any:
        self.asked.set()
        assert self.ended.wait(PATIENCE)
        return "closed"

    def close(self) -> None:
        self.ended.set()


@pytest.mark.parametrize("instead", [True, False])
def test_stopping_a_place_closes_its_process_and_forgets_its_steps(instead: bool) -> None:
    stuck = Stuck()
    steps = Steps(on_gpu(FakeDevice(), stuck))
    asking = Work("asking", Place.CPU_SANITIZER, lambda _: stuck.ask(None))
    behind = Work("behind", Place.CPU_SANITIZER, lambda _: pytest.fail("it was cancelled"))
    steps.start(asking, behind)
    assert stuck.asked.wait(PATIENCE)
    if instead:
        urgent = Work("urgent", Place.CPU_SANITIZER, lambda _: "urgent")
        steps.start_instead(urgent)
        assert stuck.ended.is_set() and steps.get(urgent) == "urgent"
        steps.start_instead(urgent)
    else:
        steps.stop(Place.CPU_SANITIZER)
        assert stuck.ended.is_set()
        assert steps.get(Work("asking", Place.CPU_SANITIZER, lambda _: "again")) == "again"


def test_closing_ends_everything_for_good() -> None:
    stuck, compiler = Stuck(), FakeCompiler()
    made = on_gpu(FakeDevice(), stuck)
    made.compiler = compiler
    steps = Steps(made)
    go = threading.Event()
    asking = Work("asking", Place.CPU_SANITIZER, lambda _: stuck.ask(None))
    steps.start(asking, Work("on the host", work=lambda _: go.wait(PATIENCE)))
    eventually(stuck.asked.is_set, "asked")
    steps.close()
    assert stuck.ended.is_set() and compiler.closed == 0, "it had nothing to do"
    go.set()
    with pytest.raises(RuntimeError, match="over"):
        steps.get(Work("late"))
