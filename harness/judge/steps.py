"""The work of one grading, done early where that saves time.

A step is a piece of work with one result. Equal steps are the same work, which is done once.
`start` begins it in the background; `get` waits for its result, or does the work now if it was not
started. So a stage asks for what it needs, and does not know what was started early.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import Any, Generic, TypeVar

from harness.judge.session import Session
from harness.protocol.request import Process

Result = TypeVar("Result")

_STOPPING_SECONDS = 0.05


class Executor(StrEnum):
    """The process that carries out a step. The steps of one executor run one after the other."""

    COMPILER = "compiler"
    DEVICE = "device"
    SANITIZER = "sanitizer"
    CPU_SANITIZER = "cpu-sanitizer"
    JUDGE = "judge"
    """This process, in a background thread."""


@dataclass(frozen=True, slots=True)
class Step(Generic[Result]):
    """A piece of work. Steps of one executor and one name have the same result.

    run: does the work with the session of the Steps that it is given, which may be asked for the
        results of other steps.
    """

    executor: Executor
    name: Hashable
    run: Callable[[Steps], Result] = field(compare=False)


class Steps:
    """The steps of one grading, and their results."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._results: dict[Step[Any], Future[Any]] = {}
        self._threads = {each: ThreadPoolExecutor(1, thread_name_prefix=each) for each in Executor}
        self._lock = Lock()
        self._is_closed = False

    def start(self, *steps: Step[Any]) -> None:
        """Begin these steps in the background, in this order, unless they have been started."""
        for step in steps:
            with self._lock:
                if step not in self._results:
                    self._results[step] = self._threads[step.executor].submit(step.run, self)

    def start_instead(self, step: Step[Any]) -> None:
        """Begin this step, and stop all else that its executor does, unless it has been started."""
        if step not in self._results:
            self.stop(step.executor)
            self.start(step)

    def get(self, step: Step[Result]) -> Result:
        """Return the step's result: wait for it, or do the work in this thread."""
        with self._lock:
            if self._is_closed:
                raise RuntimeError("this grading is over")
            started: Future[Result] | None = self._results.get(step)
            if started is None:
                mine: Future[Result] = Future()
                self._results[step] = mine
        if started is not None:
            return started.result()
        try:
            mine.set_result(step.run(self))
        except BaseException as error:
            mine.set_exception(error)
        return mine.result()

    def is_done(self, step: Step[Any]) -> bool:
        """Return whether a step that was started has a result, or has failed."""
        result = self._results.get(step)
        return result is not None and result.done()

    def take(self, step: Step[Result]) -> Result:
        """Return the step's result and forget it: for large results that are needed once."""
        result = self.get(step)
        with self._lock:
            del self._results[step]
        return result

    def stop(self, executor: Executor) -> None:
        """End and forget what an executor has not finished. Its process ends, if it has one."""
        with self._lock:
            unfinished = {
                step: result
                for step, result in self._results.items()
                if step.executor is executor and not result.done()
            }
            for step in unfinished:
                del self._results[step]
        running = [result for result in unfinished.values() if not result.cancel()]
        while running and executor is not Executor.JUDGE:
            # Repeated, since a step may be about to send a request, which starts another process.
            self.device(executor).close()
            running = [*wait(running, _STOPPING_SECONDS).not_done]

    def close(self) -> None:
        """End everything that is not finished, for good."""
        with self._lock:
            self._is_closed = True
        for executor in Executor:
            self.stop(executor)
        for thread in self._threads.values():
            thread.shutdown(wait=False)

    def device(self, executor: Executor) -> Process:
        """Return the process that carries out the steps of this executor."""
        session = self.session
        found = {
            Executor.COMPILER: session.compiler,
            Executor.DEVICE: session.device,
            Executor.SANITIZER: session.sanitizer,
            Executor.CPU_SANITIZER: session.cpu_sanitizer,
        }[executor]
        assert found is not None, f"this session has no {executor}"
        return found
