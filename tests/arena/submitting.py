"""Helpers for the tests of the queue: they make submissions and play a worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID, uuid4

from sqlalchemy import URL, Connection, text

from harness.arena.build import Build
from harness.arena.progress import GradingProgress
from harness.arena.rules import Limits
from harness.arena.store import gradings, workers
from harness.arena.store.database import open_engine
from harness.arena.store.people import Person
from harness.arena.workers.api import Duty, Heartbeat, Join, Outcome, Task
from harness.board.document import Document
from harness.protocol.report import Submission
from tests.board import factory

SUPERVISOR = uuid4()
PLENTY = Limits(in_flight=10**6, per_day=10**6, device_seconds_per_day=10**6)
Answer = TypeVar("Answer")

Add = Callable[..., Person]
"""A function that adds a person: the fixture `person`."""
Key = Callable[[Person], dict[str, str]]
"""A function that returns a header with a person's key: the fixture `key`."""
Grade = Callable[..., None]
"""A function that grades the next submission in the queue: the fixture `grade`."""


def submission(name: str = "tile", author: str = "ada", source: str = factory.SOURCE) -> Submission:
    return Submission(
        name=name,
        author=author,
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        source=source,
    )


def submit(connection: Connection, person: Person, name: str = "tile", **more: str) -> str:
    # A program of its own for each name: of one program an author has one row on a board.
    source = f"{factory.SOURCE}static_assert(true, {json.dumps(name)});\n"
    made = submission(name, person.name, source)
    return gradings.submit(connection, person.id, made, PLENTY, more.get("key"))


class FakeWorker:
    """A worker without a judge: it asks the store what the web service would ask for it."""

    def __init__(
        self,
        url: URL,
        id: str = "test",
        model: str | None = None,
        supervisor: UUID = SUPERVISOR,
        build: Build | None = None,
    ) -> None:
        self._engine = open_engine(url, connections=1)
        self._join = Join(
            worker=id,
            supervisor=supervisor,
            name=f"{id} on a machine",
            model=model,
            build=build or Build.here(),
            clock=datetime.now(UTC),
        )
        self.machine = self.do(_machine)
        self.session = UUID(int=0)

    def do(self, what: Callable[[Connection], Answer]) -> Answer:
        with self._engine.begin() as connection:
            return what(connection)

    def join(self) -> FakeWorker:
        build = self._join.build
        ask = self._join.model_copy(update={"clock": datetime.now(UTC)})
        self.session = self.do(lambda c: workers.join(c, self.machine, ask, build)).session
        return self

    def beat(self, attempts: dict[UUID, GradingProgress] | None = None) -> Duty:
        return self._beat(attempts or {})[0]

    def _beat(self, attempts: dict[UUID, GradingProgress]) -> tuple[Duty, tuple[UUID, ...]]:
        beat = Heartbeat(attempts=attempts)
        answer = self.do(
            lambda c: workers.heartbeat(c, self.machine, self.session, beat, self._join.build)
        )
        return answer.duty, answer.lost

    def go_on(self, attempt: UUID, progress: GradingProgress) -> bool:
        """Report progress, and return whether the attempt still counts."""
        return attempt not in self._beat({attempt: progress})[1]

    def take(self) -> Task | None:
        return self.do(lambda c: workers.take(c, self.machine, self.session))

    def finish(self, attempt: UUID, document: Document) -> bool:
        return self.outcome(attempt, document) is Outcome.COUNTED

    def outcome(self, attempt: UUID, document: Document) -> Outcome:
        return self.do(lambda c: workers.finish(c, self.machine, attempt, document))

    def give_back(self, attempt: UUID) -> bool:
        return self.do(lambda c: workers.release(c, self.machine, attempt))

    def leave(self) -> None:
        self.do(lambda c: workers.leave(c, self.machine, self.session))

    def close(self) -> None:
        self._engine.dispose()


def _machine(connection: Connection) -> int:
    """Return the number of the arena's own key for workers."""
    found = connection.scalar(text("SELECT id FROM worker_keys WHERE own"))
    assert found is not None
    return int(found)


def waiting_jobs(connection: Connection) -> int:
    """Return how many jobs wait in the queue."""
    count = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo'"
    return connection.scalar(text(count)) or 0


def joined(url: URL) -> FakeWorker:
    """Return a worker without a GPU that has joined the arena."""
    return FakeWorker(url).join()


def take(worker: FakeWorker) -> Task:
    task = worker.take()
    assert task is not None
    return task


def graded(task: Task, score: float | None = None) -> Document:
    """Return a report about the submission of a task."""
    return Document.of(factory.report(task.name, task.author, score, source=task.source))
