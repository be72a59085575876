"""Helpers for the tests of the queue: they make submissions and play a worker."""

import hashlib
import json
import socket
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine, text

from harness.arena.build import Build
from harness.arena.progress import GradingProgress
from harness.arena.rules import Limits
from harness.arena.store import gradings, people, watching, workers
from harness.arena.store.people import Person, Role
from harness.arena.store.watching import Status
from harness.arena.workers.api import Decision, Heartbeat, HeartbeatAnswer, Join, Task
from harness.board.store import kept_document
from harness.protocol.report import Report, Submission
from tests.board import factory

SUPERVISOR = uuid4()
PLENTY = Limits(in_flight=10**6, per_day=10**6, device_seconds_per_day=10**6)
Answer = TypeVar("Answer")

Add = Callable[..., Person]
"""A function that adds a person: the fixture `person`."""
Key = Callable[[Person], dict[str, str]]
"""A function that returns a header with a person's key: the fixture `key`."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def submission(name: str = "tile", author: str = "ada", source: str = factory.SOURCE) -> Submission:
    return Submission(
        name=name, author=author, sha256=hashlib.sha256(source.encode()).hexdigest(), source=source
    )


def submit(connection: Connection, person: Person, name: str = "tile") -> str:
    """Submit a kernel of this name and return the submission's id."""
    # A program of its own for each name: of one program an author has one row on a board.
    source = f"{factory.SOURCE}static_assert(true, {json.dumps(name)});\n"
    made = submission(name, person.name, source)
    return gradings.submit(connection, person.id, made, PLENTY, None)


def status(connection: Connection, id: str) -> Status:
    return watching.status(connection, [id])[id]


def asking(
    id: str = "test",
    model: str | None = None,
    supervisor: UUID = SUPERVISOR,
    build: Build | None = None,
) -> Join:
    """Return the message with which a worker joins."""
    return Join(
        worker=id,
        supervisor=supervisor,
        name=f"{id} on a machine",
        model=model,
        build=build or Build.here(),
    )


class FakeWorker:
    """A worker without a judge: it asks the store what the web service would ask for it.

    It also submits kernels and looks at their statuses, in the name of people.
    """

    def __init__(self, engine: Engine, join: Join | None = None, machine: int | None = None):
        """Join the arena. machine: the number of its key; None for the arena's own workers."""
        self._engine = engine
        self.build = Build.here()
        """The version that the arena runs."""
        own = text("SELECT id FROM worker_keys WHERE own")
        self.machine: int = machine or self.do(lambda c: c.scalar(own))
        message = join or asking()
        self.session = self.do(lambda c: workers.join(c, self.machine, message, self.build))

    def do(self, what: Callable[[Connection], Answer]) -> Answer:
        with self._engine.begin() as connection:
            return what(connection)

    def beat(self, attempts: dict[UUID, GradingProgress] | None = None) -> HeartbeatAnswer:
        beat = Heartbeat(attempts=attempts or {})
        return self.do(lambda c: workers.heartbeat(c, self.machine, self.session, beat, self.build))

    @property
    def leaves(self) -> bool:
        """Return whether the arena's answer to a heartbeat lets the worker end."""
        return self.beat().leave

    def go_on(self, attempt: UUID, progress: GradingProgress) -> bool:
        """Report progress, and return whether the attempt still counts."""
        return attempt not in self.beat({attempt: progress}).lost

    def fetch(self, quick: bool = False) -> Task | None:
        return self.do(lambda c: workers.take(c, self.machine, self.session, quick))

    def take(self, quick: bool = False) -> Task:
        """Fetch the next task, which there must be."""
        task = self.fetch(quick)
        assert task is not None
        return task

    def submit(self, name: str = "tile", author: str = "ada") -> str:
        """Submit a kernel as this person, who is new or known, and return the submission's id."""

        def submitted(connection: Connection) -> str:
            known = people.named(connection, author)
            person = known or people.add_person(connection, author, Role.CONTESTANT)
            return submit(connection, person, name)

        return self.do(submitted)

    def status(self, id: str) -> Status:
        return self.do(lambda connection: status(connection, id))

    def grade(self, score: float | None = None, report: Report | None = None) -> None:
        """Grade the next submission in the queue. report: as in `graded`."""
        task = self.take(report is not None and report.quick)
        found = graded(task, score, report)
        assert self.finish(task.attempt, found)

    def finish(self, attempt: UUID, report: Report) -> bool:
        return self.outcome(attempt, report) is Decision.COUNTED

    def outcome(self, attempt: UUID, report: Report) -> Decision:
        return self.do(lambda c: workers.finish(c, self.machine, attempt, report))

    def give_back(self, attempt: UUID) -> bool:
        return self.do(lambda c: workers.release(c, self.machine, attempt))

    def leave(self) -> None:
        self.do(lambda c: workers.leave(c, self.machine, self.session))


def kept_report(connection: Connection, id: str | None) -> Report:
    """Return a report that the arena has kept. id: of its entry."""
    document = kept_document(connection, id or "")
    assert document is not None
    return document.report


def waiting_jobs(connection: Connection) -> int:
    """Return how many jobs wait in the queue."""
    count = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo'"
    return connection.scalar(text(count)) or 0


def graded(task: Task, score: float | None = None, report: Report | None = None) -> Report:
    """Return a report about the submission of a task. report: what it says, of any kernel."""
    found = factory.report(task.name, task.author, score, source=task.source)
    return report.model_copy(update={"submission": found.submission}) if report else found
