"""Makes submissions and plays a worker, for the tests of the queue."""

from __future__ import annotations

import hashlib
import json
from uuid import UUID, uuid4

from sqlalchemy import URL, Connection, text

from harness.arena.build import Build
from harness.arena.queue import conninfo
from harness.arena.rules import Limits
from harness.arena.store import gradings
from harness.arena.store.attempts import Attempt, Attempts
from harness.arena.store.gradings import HandedIn
from harness.arena.store.line import Line
from harness.arena.store.membership import Membership, Newcomer
from harness.arena.store.people import Person
from harness.board.document import Document
from harness.protocol.report import Submission
from tests.board import factory

CREW = uuid4()
PLENTY = Limits(in_flight=10**6, per_day=10**6, device_seconds_per_day=10**6)


def submission(name: str = "tile", author: str = "ada", source: str = factory.SOURCE) -> Submission:
    return Submission(
        name=name,
        author=author,
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        source=source,
    )


def hand_in(connection: Connection, person: Person, name: str = "tile", **more: str) -> str:
    # A program of its own for each name: of one program an author has one row on a board.
    source = f"{factory.SOURCE}static_assert(true, {json.dumps(name)});\n"
    handed_in = submission(name, person.name, source)
    taken = gradings.hand_in(connection, person.id, handed_in, PLENTY, more.get("key"))
    assert isinstance(taken, HandedIn)
    return taken.id


def newcomer(id: str = "test", crew: UUID = CREW, model: str | None = None) -> Newcomer:
    return Newcomer(id=id, crew=crew, name=f"{id} on a machine", model=model)


def joined(url: URL, who: Newcomer | None = None) -> Attempts:
    """A worker that has joined, by default one without a GPU."""
    line = Line(conninfo(url))
    membership = Membership(line, who or newcomer(), Build.here())
    membership.join()
    return Attempts(line, membership)


def fetch(connection: Connection) -> int | None:
    """A job, as the queue hands it to a worker."""
    return connection.scalar(text("SELECT id FROM procrastinate_fetch_job_v2(NULL, NULL)"))


def take(connection: Connection, attempts: Attempts) -> Attempt:
    job = fetch(connection)
    assert job is not None
    attempt = attempts.take(job)
    assert attempt is not None
    return attempt


def graded(attempt: Attempt, score: float | None = None) -> Document:
    """A report of what an attempt holds."""
    return Document.of(factory.report(attempt.name, attempt.author, score, source=attempt.source))
