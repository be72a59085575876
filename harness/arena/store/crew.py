"""The workers and machines of an arena as its organisers see them, and what they may do to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, func, select, text, update

from harness.arena.progress import GradingProgress
from harness.arena.store import contest
from harness.arena.store.membership import LEASE_SECONDS
from harness.arena.store.people import NotPossible, Person
from harness.arena.store.tables import machines, workers

Word = Literal["set aside"]


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One worker, now."""

    id: str
    name: str
    machine: str | None
    """None: the arena's own."""
    model: str | None
    alive: bool
    draining: bool
    organiser_says: Word | None
    clock_ahead: float
    submission: str | None
    """That it grades."""
    progress: GradingProgress
    since: datetime | None
    graded: int
    died: int
    """Attempts within 24 hours, by how they ended."""

    @property
    def set_aside(self) -> bool:
        """Whether an organiser lets it grade nothing."""
        return self.organiser_says is not None

    @property
    def does(self) -> str:
        """In a few words."""
        if not self.alive:
            return "away"
        if self.submission is not None:
            stages = self.progress.stages
            return stages[-1].stage.value if stages else "begins"
        if self.draining:
            return "leaves"
        if self.set_aside:
            return "set aside"
        return "waits"


_EVERYBODY = text(
    """SELECT w.id, w.name, m.name AS machine, w.model, w.draining, w.organiser_says, w.clock_ahead,
        coalesce(w.seen > now() - make_interval(secs => :lease), false) AS alive,
        g.submission, g.progress, a.started AS since,
        (SELECT count(*) FROM attempts e WHERE e.worker_id = w.id AND e.fate = 'finished'
            AND e.ended > now() - interval '1 day') AS graded,
        (SELECT count(*) FROM attempts e WHERE e.worker_id = w.id AND e.fate = 'died'
            AND e.ended > now() - interval '1 day') AS died
    FROM workers w LEFT JOIN machines m ON m.id = w.machine
    LEFT JOIN LATERAL (
        SELECT grading, id, started FROM attempts WHERE worker_id = w.id AND ended IS NULL
            ORDER BY started LIMIT 1
    ) a ON true
    LEFT JOIN gradings g ON g.id = a.grading AND g.attempt = a.id
    WHERE w.model IS NOT NULL OR w.seen IS NOT NULL
    ORDER BY m.name NULLS FIRST, w.name"""
)


def everybody(connection: Connection) -> list[WorkerState]:
    """All GPUs that ever came, and other workers that are here."""
    return [
        WorkerState(**{**row, "progress": GradingProgress.read(row["progress"])})
        for row in connection.execute(_EVERYBODY, {"lease": LEASE_SECONDS}).mappings().all()
    ]


def say(connection: Connection, actor: Person, id: str, word: Word | None) -> None:
    """Let a worker grade nothing, or take it back. Raises NotPossible."""
    changed = connection.execute(
        update(workers).where(workers.c.id == id).values(organiser_says=word)
    )
    if not changed.rowcount:
        raise NotPossible("there is no such worker")
    contest.note(connection, actor, word or "take back", id)


def drain(connection: Connection, actor: Person, id: str) -> None:
    """Let it end after what it has in hand. Raises NotPossible."""
    changed = connection.execute(
        update(workers).where(workers.c.id == id, workers.c.seen.is_not(None)).values(draining=True)
    )
    if not changed.rowcount:
        raise NotPossible("this worker is not here")
    contest.note(connection, actor, "drain", id)


@dataclass(frozen=True, slots=True)
class Machine:
    """One that has, or had, a key."""

    id: int
    name: str
    created: datetime
    revoked: datetime | None


def known_machines(connection: Connection) -> list[Machine]:
    columns = (machines.c.id, machines.c.name, machines.c.created, machines.c.revoked)
    rows = connection.execute(select(*columns).order_by(machines.c.id)).all()
    return [Machine(*row) for row in rows]


def revoke(connection: Connection, actor: Person, id: int) -> None:
    """Its workers are out at once. Raises NotPossible."""
    if not connection.scalar(select(func.arena_revoke_machine(id))):
        raise NotPossible("there is no such machine, or its key was revoked before")
    contest.note(connection, actor, "revoke machine", str(id))


@dataclass(frozen=True, slots=True)
class Waiting:
    """One queue."""

    model: str | None
    """None: any worker may grade it."""
    length: int
    oldest_seconds: float


def queues(connection: Connection) -> list[Waiting]:
    rows = connection.execute(
        text(
            "SELECT model, count(*), extract(epoch FROM now() - min(queued)) FROM gradings "
            "WHERE state = 'queued' GROUP BY model ORDER BY model NULLS FIRST"
        )
    ).all()
    return [Waiting(row[0], row[1], float(row[2])) for row in rows]


def waited(connection: Connection) -> dict[float, float]:
    """Seconds from handing in to the beginning, of the last hour's gradings: by quantile."""
    shares = [0.5, 0.95, 1.0]
    found = connection.scalar(
        text(
            "SELECT percentile_cont(CAST(:shares AS float8[])) WITHIN GROUP "
            "(ORDER BY extract(epoch FROM started - queued)) FROM gradings "
            "WHERE ended > now() - interval '1 hour' AND started IS NOT NULL"
        ),
        {"shares": shares},
    )
    return dict(zip(shares, map(float, found), strict=True)) if found else {}
