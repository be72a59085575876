"""Grading many files with one set of workers, as an organiser's queue would, but faster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import cast
from unittest.mock import patch

import pytest
from pydantic import TypeAdapter

from harness import grade as grading
from harness.devices.device import Fault
from harness.grade import Options, grade
from harness.report import Report, Value
from harness.workers.companion import Companion
from harness.workers.isolation import Role
from harness.workers.remote import RemoteBench, RemoteCompiler, RemoteDevice, T, Worker
from problem.cases import Matrix


class LastingWorker(Worker):
    """A worker that outlives a grading; it is still replaced after a fault."""

    _asking = False

    def ask(
        self,
        request: Value,
        answer: TypeAdapter[T],
        matrices: Sequence[Matrix] = (),
        *,
        seconds: float = 60.0,
    ) -> tuple[T | Fault, list[Matrix]]:
        self._asking = True
        try:
            return super().ask(request, answer, matrices, seconds=seconds)
        finally:
            self._asking = False

    def close(self) -> None:
        if self._asking:
            super().close()

    def end(self) -> None:
        super().close()


class _PerThread(threading.local):
    """The workers of one thread, started when it first grades."""

    def __init__(self, all_workers: list[LastingWorker]) -> None:
        self.compiler = RemoteCompiler()
        self.devices = {role: RemoteDevice(role) for role in (Role.CPU, Role.CUDA)}
        self.bench = RemoteBench(self.devices[Role.CUDA])
        for remote, role in (
            (self.compiler, Role.COMPILER),
            *((device, role) for role, device in self.devices.items()),
            (self.bench.referee, Role.REFEREE),
            (self.bench.baseline, Role.CUDA),
        ):
            worker = LastingWorker(role)
            remote.worker = worker
            all_workers.append(worker)


@contextmanager
def shared_workers(role: Role) -> Iterator[None]:
    """Inside, the gradings of a thread on this device share one compiler and one device, and
    gradings on one GPU do not wait for each other: only their verdicts count."""
    workers: list[LastingWorker] = []
    mine = _PerThread(workers)

    class SharedCompanion(Companion):
        def __init__(self) -> None:
            super().__init__()
            self.device = mine.devices[Role.CPU]

    with (
        patch.object(grading, "RemoteCompiler", lambda: mine.compiler),
        patch.object(grading, "open_device", lambda choice: mine.devices[role]),
        patch.object(grading, "Companion", SharedCompanion),
        patch.object(grading, "RemoteBench", lambda device: mine.bench),
        patch.object(grading, "alone_on", lambda *_: nullcontext()),
    ):
        try:
            yield
        finally:
            for worker in workers:
                worker.end()


@contextmanager
def graded(
    role: Role, options: dict[Path, Options], threads: int
) -> Iterator[Callable[[Path], Report]]:
    """The report of each of these files, graded so many at a time, in this order."""
    with shared_workers(role), ThreadPoolExecutor(threads) as pool:
        reports = {path: pool.submit(grade, path, how) for path, how in options.items()}
        try:
            yield lambda path: reports[path].result()
        finally:
            pool.shutdown(cancel_futures=True)


def wanted(request: pytest.FixtureRequest, test: str) -> list[Path]:
    """The files that this test was selected for."""
    items = cast(list[pytest.Function], request.session.items)
    return [item.callspec.params["path"] for item in items if item.originalname == test]
