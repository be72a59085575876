"""Grading many files with one set of workers, as an organiser's queue would, but faster."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from pydantic import TypeAdapter

from harness import grade as grading
from harness.devices.device import Fault
from harness.report import Value
from harness.workers.isolation import Role
from harness.workers.remote import RemoteCompiler, RemoteDevice, T, Worker
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
        self.compiler, self.device = RemoteCompiler(), RemoteDevice(Role.CPU)
        workers = [LastingWorker(Role.COMPILER), LastingWorker(Role.CPU)]
        self.compiler.worker, self.device.worker = workers
        all_workers += workers


@contextmanager
def shared_cpu_workers() -> Iterator[None]:
    """Inside, the gradings of a thread on the CPU device share one compiler and one device."""
    workers: list[LastingWorker] = []
    mine = _PerThread(workers)
    with (
        patch.object(grading, "RemoteCompiler", lambda: mine.compiler),
        patch.object(grading, "open_device", lambda choice: mine.device),
    ):
        try:
            yield
        finally:
            for worker in workers:
                worker.end()
