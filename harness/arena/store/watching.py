"""Shows people and organisers their submissions, the queue, and how long it takes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from pydantic import Field
from sqlalchemy import Connection, RowMapping, func, or_, select, text

from harness.arena.progress import GradingProgress, StageProgress
from harness.arena.states import State
from harness.arena.store.tables import attempts, gradings, people, submissions, workers
from harness.arena.workers.api import LEASE_SECONDS
from harness.board.tables import entries
from harness.protocol.report import Value

DEFAULT_SECONDS = 30.0
"""The estimate of a grading's time before the first grading."""

PAST_GRADINGS = 50


class Status(Value):
    """The status of a submission, as its page shows it and the API sends it."""

    id: str
    name: str
    author: str
    sha256: str
    received: datetime
    state: State
    place: int | None = None
    """The place in the queue, from 1."""
    seconds_left: float | None = None
    """An estimate from past gradings; None without a worker."""
    attempts: int
    started: datetime | None
    ended: datetime | None
    stages: tuple[StageProgress, ...]
    step: str | None
    verdict: str | None
    score: float | None
    report: str | None = Field(serialization_alias="entry")
    withdrawn: datetime | None
    disqualified: str | None
    person: int = Field(exclude=True)
    pseudonym: str = Field(exclude=True)
    now: datetime = Field(exclude=True)
    """The time of the database."""


_STATUS = (
    select(
        *(submissions.c[name] for name in ("id", "person", "name", "sha256", "received")),
        *(submissions.c[name] for name in ("withdrawn", "disqualified")),
        *(gradings.c[name] for name in ("state", "attempts", "started", "ended")),
        *(gradings.c[name] for name in ("progress", "verdict", "report")),
        people.c.name.label("author"),
        people.c.pseudonym,
        entries.c.score,
        func.now().label("now"),
    )
    .join(people, people.c.id == submissions.c.person)
    .join(
        gradings,
        # The grading that counts, or without one the grading that will count.
        (gradings.c.submission == submissions.c.id)
        & (
            (gradings.c.id == submissions.c.counts)
            | (submissions.c.counts.is_(None) & gradings.c.rejudge.is_(None))
        ),
    )
    .outerjoin(entries, entries.c.id == gradings.c.report)
)


def status(connection: Connection, ids: Collection[str]) -> dict[str, Status]:
    """Return the statuses by id; unknown ids are left out."""
    rows = connection.execute(_STATUS.where(submissions.c.id.in_(ids))).mappings().all()
    return {each.id: each for each in _with_estimates(connection, rows)}


def recent(
    connection: Connection,
    *,
    person: int | None = None,
    find: str = "",
    limit: int = 50,
    offset: int = 0,
) -> list[Status]:
    """Return submissions, newest first.

    find: a part of the kernel's or author's name or of the verdict.
    """
    query = _STATUS.order_by(submissions.c.received.desc(), submissions.c.id)
    if person is not None:
        query = query.where(submissions.c.person == person)
    if find:
        places = submissions.c.name, people.c.name, gradings.c.verdict
        query = query.where(or_(*(place.icontains(find, autoescape=True) for place in places)))
    rows = connection.execute(query.limit(limit).offset(offset)).mappings().all()
    return _with_estimates(connection, rows)


def totals(connection: Connection, person: int) -> tuple[int, int, float | None]:
    """Return how many submissions a person has, how many are accepted, and the best score of those
    that were neither withdrawn nor disqualified."""
    count, accepted, best = connection.execute(_TOTALS, {"person": person}).one()
    return count, accepted, best


_TOTALS = text(
    """SELECT count(*), count(*) FILTER (WHERE g.verdict = 'accepted'),
        max(e.score) FILTER (WHERE s.withdrawn IS NULL AND s.disqualified IS NULL)
    FROM submissions s
    LEFT JOIN gradings g ON g.id = s.counts
    LEFT JOIN entries e ON e.id = g.report
    WHERE s.person = :person"""
)


def previous(connection: Connection, status: Status) -> str | None:
    """Return the author's latest submission before this one that has a result."""
    return connection.scalar(
        select(submissions.c.id)
        .where(
            submissions.c.person == status.person,
            submissions.c.counts.is_not(None),
            submissions.c.received < status.received,
        )
        .order_by(submissions.c.received.desc())
        .limit(1)
    )


def _with_estimates(connection: Connection, rows: Sequence[RowMapping]) -> list[Status]:
    """Add the places in the queue and the time left, which need a query only if something waits."""
    found = [_as_status(row) for row in rows]
    if all(each.state.final for each in found):
        return found
    queue = _places(connection)
    past, count = past_seconds(connection), alive_workers(connection)
    return [_estimated(each, queue.get(each.id), past, count) for each in found]


def _as_status(row: RowMapping) -> Status:
    progress = GradingProgress.read(row["progress"])
    known = {name: value for name, value in row.items() if name != "progress"}
    return Status(**known, stages=progress.stages, step=progress.step)


def _estimated(each: Status, place: int | None, past: Sequence[float], workers: int) -> Status:
    """Add the time left, estimated from past gradings."""
    left = None
    if each.state is State.QUEUED and workers:
        ahead = math.ceil((place or 1) / workers)
        left = _median(past, DEFAULT_SECONDS) * (ahead + 0.5)
    elif each.state is State.GRADING:
        spent = (each.now - (each.started or each.now)).total_seconds()
        # Of the gradings that took longer than this one has taken already.
        longer = [seconds for seconds in past or [DEFAULT_SECONDS] if seconds > spent]
        left = _median(longer, spent) - spent
    return each.model_copy(update={"place": place, "seconds_left": left})


def _places(connection: Connection) -> dict[str, int]:
    rows = connection.execute(
        select(gradings.c.submission)
        .where(gradings.c.state == State.QUEUED)
        .order_by(gradings.c.turn, gradings.c.id)
    )
    return {row.submission: place for place, row in enumerate(rows, start=1)}


def past_seconds(connection: Connection) -> Sequence[float]:
    """Return the seconds that the last gradings took."""
    return connection.scalars(
        select(gradings.c.seconds)
        .where(gradings.c.ended.is_not(None), gradings.c.seconds.is_not(None))
        .order_by(gradings.c.ended.desc())
        .limit(PAST_GRADINGS)
    ).all()


def typical_seconds(connection: Connection, otherwise: float = DEFAULT_SECONDS) -> float:
    """Return the median of what the last gradings took."""
    return _median(past_seconds(connection), otherwise)


def _median(values: Sequence[float], otherwise: float) -> float:
    return statistics.median(values) if values else otherwise


def alive_workers(connection: Connection) -> int:
    """Return how many workers have sent a heartbeat within LEASE_SECONDS."""
    alive = workers.c.seen > func.now() - timedelta(seconds=LEASE_SECONDS)
    return connection.scalar(select(func.count()).where(alive)) or 0


def counts_by_state(connection: Connection) -> dict[State, int]:
    rows = connection.execute(select(gradings.c.state, func.count()).group_by(gradings.c.state))
    return {State(row[0]): row[1] for row in rows}


def counts_by_fate(connection: Connection) -> dict[str, int]:
    """Return how many attempts have ended in each way."""
    fate = func.coalesce(attempts.c.fate, "open")
    return {row[0]: row[1] for row in connection.execute(select(fate, func.count()).group_by(fate))}


def oldest_waiting(connection: Connection) -> float:
    """Return the longest time that a grading has waited, in seconds."""
    waited = func.extract("epoch", func.now() - func.min(gradings.c.queued))
    return float(connection.scalar(select(waited).where(gradings.c.state == State.QUEUED)) or 0)
