"""Shows people and organisers their submissions and the queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from pydantic import Field
from sqlalchemy import Connection, RowMapping, func, or_, select, text

from harness.arena.progress import GradingProgress, StageProgress
from harness.arena.states import State
from harness.arena.store.tables import gradings, people, submissions, workers
from harness.board.tables import entries
from harness.protocol.report import Value


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
    no_worker: bool = False
    """Whether it waits and no worker is there."""
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


_STATUS = (
    select(
        *(submissions.c[name] for name in ("id", "person", "name", "sha256", "received")),
        *(submissions.c[name] for name in ("withdrawn", "disqualified")),
        *(gradings.c[name] for name in ("state", "attempts", "started", "ended")),
        *(gradings.c[name] for name in ("progress", "verdict", "report")),
        people.c.name.label("author"),
        people.c.pseudonym,
        entries.c.score,
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
    return {each.id: each for each in _with_places(connection, rows)}


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
    return _with_places(connection, rows)


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


def _with_places(connection: Connection, rows: Sequence[RowMapping]) -> list[Status]:
    """Add the places in the queue, which need a query only if something waits."""
    found = [_as_status(row) for row in rows]
    if all(each.state is not State.QUEUED for each in found):
        return found
    places, no_worker = _places(connection), not alive_workers(connection)
    return [
        each.model_copy(update={"place": places[each.id], "no_worker": no_worker})
        if each.id in places
        else each
        for each in found
    ]


def _as_status(row: RowMapping) -> Status:
    progress = GradingProgress.read(row["progress"])
    known = {name: value for name, value in row.items() if name != "progress"}
    return Status(**known, stages=progress.stages, step=progress.step)


def _places(connection: Connection) -> dict[str, int]:
    rows = connection.execute(
        select(gradings.c.submission)
        .where(gradings.c.state == State.QUEUED)
        .order_by(gradings.c.turn, gradings.c.id)
    )
    return {row.submission: place for place, row in enumerate(rows, start=1)}


def alive_workers(connection: Connection) -> int:
    """Return how many workers have sent a heartbeat within 30 seconds."""
    alive = workers.c.seen > func.now() - timedelta(seconds=30)
    return connection.scalar(select(func.count()).where(alive)) or 0


def counts_by_state(connection: Connection) -> dict[State, int]:
    rows = connection.execute(select(gradings.c.state, func.count()).group_by(gradings.c.state))
    return {State(row[0]): row[1] for row in rows}


def oldest_waiting(connection: Connection) -> float:
    """Return the longest time that a grading has waited, in seconds."""
    waited = func.extract("epoch", func.now() - func.min(gradings.c.queued))
    return float(connection.scalar(select(waited).where(gradings.c.state == State.QUEUED)) or 0)
