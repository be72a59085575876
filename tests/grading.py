"""Grading files in tests: one in a session of its own, or many with a few sessions on a GPU, faster
than an organiser's queue would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.progress import Progress
from harness.judge.submission import read
from harness.judge.workers.session import Choice, Session, open_session
from harness.protocol.device import BeginSanitizing, Device, DeviceRequest
from harness.protocol.report import Report
from harness.protocol.request import Answer_co, Done, Fault


def grade_file(
    path: Path, device: Choice, options: GradingOptions, progress: Progress | None = None
) -> Report:
    """As the command line does."""
    with open_session(device) as session:
        return grade(read(path), session, options, progress)


@dataclass(frozen=True)
class Unhurried:
    """A device that begins nothing ahead: of the kernels that tests grade most fail, for which its
    tools would work twice, and they are what takes the processor longest."""

    device: Device

    def ask(self, request: DeviceRequest[Answer_co]) -> Answer_co | Fault:
        if isinstance(request, BeginSanitizing):
            return cast(Answer_co, Done())
        return self.device.ask(request)


def lasting(session: Session) -> Session:
    """The session with workers that outlive a grading (they are still replaced after a fault), and
    without a lock: only the verdicts of these gradings count."""
    return replace(
        session,
        device=Unhurried(session.device),
        prepare=lambda *_: None,
        company=lambda _: nullcontext(),
        turn=lambda _: nullcontext(),
        renew=lambda: None,
        renew_compiler=lambda: None,
    )


@contextmanager
def graded_on_gpu(
    options: dict[Path, GradingOptions], threads: int
) -> Iterator[Callable[[Path], Report]]:
    """The report of each of these files, graded so many at a time, in this order."""
    free: SimpleQueue[Session] = SimpleQueue()

    def work(path: Path, how: GradingOptions) -> Report:
        session = free.get()
        try:
            return grade(read(path), session, how)
        finally:
            free.put(session)

    with ExitStack() as sessions, ThreadPoolExecutor(threads) as pool:
        for _ in range(threads):
            free.put(lasting(sessions.enter_context(open_session("cuda"))))
        reports = {path: pool.submit(work, path, how) for path, how in options.items()}
        try:
            yield lambda path: reports[path].result()
        finally:  # what was interrupted is not waited for: it ends with its processes
            pool.shutdown(wait=False, cancel_futures=True)
            sessions.close()


def wanted(request: pytest.FixtureRequest, test: str) -> list[Path]:
    """The files that this test was selected for."""
    items = cast(list[pytest.Function], request.session.items)
    return [item.callspec.params["path"] for item in items if item.originalname == test]
