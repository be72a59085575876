"""Submissions and their gradings: handing in, watching, cancelling, picking up what was lost."""

from __future__ import annotations

import json
import math
import secrets
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from harness.arena.handed_in import kept
from harness.arena.progress import GradingProgress
from harness.arena.rules import Limits
from harness.arena.states import MAX_ATTEMPTS, State
from harness.arena.store.tables import attempts, gradings, people, submissions
from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.tables import entries
from harness.judge.submission import Unreadable
from harness.protocol.report import Report, Submission

DAY = timedelta(days=1)
GUESSED_SECONDS = 30.0
"""What a grading takes, before there has been one."""

PAST_GRADINGS = 50


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A submission that the arena now has; new is false where it had it already."""

    id: str
    new: bool


@dataclass(frozen=True, slots=True)
class OverLimit:
    """Why a submission is not taken, and when to come back."""

    reason: str
    seconds: int


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """The idempotency key was used for something else."""


# ---------------------------------------------------------------------------------- handing in


def hand_in(
    connection: Connection,
    person: int,
    submission: Submission,
    limits: Limits,
    idempotency_key: str | None,
    model: str | None = None,
) -> HandedIn | OverLimit | OtherRequest:
    """Keep a submission and queue its grading, in the caller's transaction. model: of GPU, where
    only that may grade it."""
    # One submission of a person at a time: so the limits hold, and a key is used once.
    connection.execute(select(people.c.id).where(people.c.id == person).with_for_update())
    if idempotency_key is not None:
        before = connection.execute(
            select(submissions.c.id, submissions.c.sha256, submissions.c.name).where(
                submissions.c.person == person, submissions.c.idempotency_key == idempotency_key
            )
        ).one_or_none()
        if before is not None:
            same = (before.sha256, before.name) == (submission.sha256, submission.name)
            return HandedIn(before.id, new=False) if same else OtherRequest()
    over = _over_limit(connection, person, limits)
    if over is not None:
        return over
    id = secrets.token_hex(8)
    connection.execute(
        insert(submissions).values(
            id=id,
            person=person,
            name=submission.name,
            sha256=submission.sha256,
            source=submission.source,
            idempotency_key=idempotency_key,
        )
    )
    queue_grading(connection, id, person, model=model)
    return HandedIn(id, new=True)


def queue_grading(
    connection: Connection,
    submission: str,
    person: int,
    rejudge: int | None = None,
    model: str | None = None,
) -> int:
    """A grading and its job, in the caller's transaction.

    Turns are those of start-time fair queueing (P. Goyal, H. Vin, H. Cheng, SIGCOMM 1996), each
    grading costing one: a person's next grading comes one turn after their last, but never before
    those that are being served now. So who has had least goes first, and nobody waits for ever.
    """
    served = select(func.coalesce(func.max(gradings.c.turn), 0)).where(
        gradings.c.started.is_not(None)
    )
    own = select(func.coalesce(func.max(gradings.c.turn), -1) + 1).where(
        gradings.c.person == person
    )
    id = connection.execute(
        insert(gradings)
        .values(
            submission=submission,
            person=person,
            rejudge=rejudge,
            model=model,
            turn=func.greatest(served.scalar_subquery(), own.scalar_subquery()),
        )
        .returning(gradings.c.id)
    ).scalar_one()
    connection.execute(select(func.arena_enqueue(id)))
    return int(id)


def _over_limit(connection: Connection, person: int, limits: Limits) -> OverLimit | None:
    waiting = connection.scalar(
        select(func.count()).where(
            gradings.c.person == person,
            gradings.c.rejudge.is_(None),
            gradings.c.state.in_((State.QUEUED, State.GRADING)),
        )
    )
    if (waiting or 0) >= limits.in_flight:
        return OverLimit(
            f"{waiting} of your submissions are not graded yet, and {limits.in_flight} may be",
            math.ceil(typical_seconds(connection)),
        )
    since = func.now() - DAY
    today = connection.execute(
        select(func.count(), func.extract("epoch", func.min(submissions.c.received) - since)).where(
            submissions.c.person == person, submissions.c.received > since
        )
    ).one()
    if today[0] >= limits.per_day:
        return OverLimit(
            f"you have submitted {today[0]} times within 24 hours; {limits.per_day} are allowed",
            math.ceil(today[1]),
        )
    spent = connection.execute(
        select(
            func.coalesce(func.sum(gradings.c.seconds), 0),
            func.extract("epoch", func.min(gradings.c.ended) - since),
        ).where(gradings.c.person == person, gradings.c.rejudge.is_(None), gradings.c.ended > since)
    ).one()
    if spent[0] >= limits.device_seconds_per_day:
        return OverLimit(
            f"your gradings of the last 24 hours took {spent[0]:.0f} s of a device, "
            f"and {limits.device_seconds_per_day} s are allowed",
            math.ceil(spent[1] or GUESSED_SECONDS),
        )
    return None


# ------------------------------------------------------------------------------------ watching


@dataclass(frozen=True, slots=True)
class Status:
    """Where a submission stands: what its page, its events and the API show."""

    id: str
    person: int
    name: str
    author: str
    sha256: str
    received: datetime
    state: State
    attempts: int
    queued: datetime
    started: datetime | None
    ended: datetime | None
    progress: GradingProgress
    verdict: str | None
    score: float | None
    report: str | None
    withdrawn: datetime | None
    disqualified: str | None
    now: datetime
    place: int | None = None
    """In the queue, from 1."""
    seconds_left: float | None = None
    """By what past gradings took."""


_STATUS = (
    select(
        submissions.c.id,
        submissions.c.person,
        submissions.c.name,
        people.c.name.label("author"),
        submissions.c.sha256,
        submissions.c.received,
        gradings.c.state,
        gradings.c.attempts,
        gradings.c.queued,
        gradings.c.started,
        gradings.c.ended,
        gradings.c.progress,
        gradings.c.verdict,
        entries.c.score,
        gradings.c.report,
        submissions.c.withdrawn,
        submissions.c.disqualified,
        func.now().label("now"),
    )
    .join(people, people.c.id == submissions.c.person)
    .join(
        gradings,
        # The result that counts, or while there is none the grading that will.
        (gradings.c.submission == submissions.c.id)
        & (
            (gradings.c.id == submissions.c.counts)
            | (submissions.c.counts.is_(None) & gradings.c.rejudge.is_(None))
        ),
    )
    .outerjoin(entries, entries.c.id == gradings.c.report)
)


def status(connection: Connection, ids: Collection[str]) -> dict[str, Status]:
    """By id; those that are not there are left out."""
    rows = connection.execute(_STATUS.where(submissions.c.id.in_(ids))).mappings().all()
    return {row["id"]: each for row, each in zip(rows, _placed(connection, rows), strict=True)}


def recent(
    connection: Connection,
    *,
    person: int | None = None,
    find: str = "",
    limit: int = 50,
    offset: int = 0,
) -> list[Status]:
    """Newest first. find: a part of the kernel's or author's name or of the verdict."""
    query = _STATUS.order_by(submissions.c.received.desc(), submissions.c.id)
    if person is not None:
        query = query.where(submissions.c.person == person)
    if find:
        places = submissions.c.name, people.c.name, gradings.c.verdict
        query = query.where(or_(*(place.icontains(find, autoescape=True) for place in places)))
    rows = connection.execute(query.limit(limit).offset(offset)).mappings().all()
    return _placed(connection, rows)


def _placed(connection: Connection, rows: Sequence[RowMapping]) -> list[Status]:
    """With places in the queue and the time left, which cost a query only where somebody waits."""
    found = [_as_status(row) for row in rows]
    if all(each.state.final for each in found):
        return found
    queue = _places(connection)
    past, crew = past_seconds(connection), workers(connection)
    return [_expected(each, queue.get(each.id), past, crew) for each in found]


def _as_status(row: RowMapping) -> Status:
    typed = {"state": State(row["state"]), "progress": GradingProgress.read(row["progress"])}
    return Status(**{**row, **typed})


def _expected(each: Status, place: int | None, past: Sequence[float], crew: int) -> Status:
    """With the time left, by what past gradings took."""
    if each.state is State.QUEUED:
        ahead = (place or 1) / max(crew, 1)
        typical = _median(past, GUESSED_SECONDS)
        return replace(each, place=place, seconds_left=typical * (math.ceil(ahead) + 0.5))
    if each.state is State.GRADING:
        spent = (each.now - (each.started or each.now)).total_seconds()
        # Of the gradings that took longer than this one has taken already.
        longer = [seconds for seconds in past or [GUESSED_SECONDS] if seconds > spent]
        return replace(each, seconds_left=_median(longer, spent) - spent)
    return each


def _places(connection: Connection) -> dict[str, int]:
    rows = connection.execute(
        select(gradings.c.submission)
        .where(gradings.c.state == State.QUEUED)
        .order_by(gradings.c.turn, gradings.c.id)
    )
    return {row.submission: place for place, row in enumerate(rows, start=1)}


def past_seconds(connection: Connection) -> Sequence[float]:
    """What the last gradings took."""
    return connection.scalars(
        select(gradings.c.seconds)
        .where(gradings.c.ended.is_not(None), gradings.c.seconds.is_not(None))
        .order_by(gradings.c.ended.desc())
        .limit(PAST_GRADINGS)
    ).all()


def typical_seconds(connection: Connection) -> float:
    """The median of what the last gradings took."""
    return _median(past_seconds(connection), GUESSED_SECONDS)


def _median(values: Sequence[float], otherwise: float) -> float:
    return statistics.median(values) if values else otherwise


def workers(connection: Connection, alive_seconds: float = 30) -> int:
    """How many have shown signs of life."""
    return int(
        connection.scalar(
            text("SELECT count(*) FROM workers WHERE seen > now() - make_interval(secs => :alive)"),
            {"alive": alive_seconds},
        )
        or 0
    )


def counts_by_state(connection: Connection) -> dict[State, int]:
    rows = connection.execute(select(gradings.c.state, func.count()).group_by(gradings.c.state))
    return {State(row[0]): row[1] for row in rows}


def counts_by_fate(connection: Connection) -> dict[str, int]:
    """How attempts have ended."""
    fate = func.coalesce(attempts.c.fate, "open")
    return {row[0]: row[1] for row in connection.execute(select(fate, func.count()).group_by(fate))}


def oldest_waiting(connection: Connection) -> float:
    """Seconds that the grading has waited which has waited longest."""
    waited = func.extract("epoch", func.now() - func.min(gradings.c.queued))
    return float(connection.scalar(select(waited).where(gradings.c.state == State.QUEUED)) or 0)


def source(connection: Connection, submission: str) -> str | None:
    return connection.scalar(select(submissions.c.source).where(submissions.c.id == submission))


# ---------------------------------------------------------------------------------- cancelling


def cancel(connection: Connection, submission: str) -> bool:
    """End the gradings of a submission that have no result yet; whether there were any."""
    return _cancel(connection, gradings.c.submission == submission)


def cancel_rejudging(connection: Connection, rejudge: int) -> bool:
    """End those of a rejudging's gradings that have no result yet; whether there were any."""
    return _cancel(connection, gradings.c.rejudge == rejudge)


def _cancel(connection: Connection, which: ColumnElement[bool]) -> bool:
    held = connection.execute(
        select(gradings.c.id, gradings.c.job, gradings.c.attempt)
        .where(which, gradings.c.state.in_((State.QUEUED, State.GRADING)))
        .with_for_update()
    ).all()
    for grading in held:
        if grading.attempt is not None:
            connection.execute(_END_CANCELLED, {"id": grading.id})
        connection.execute(
            update(gradings)
            .where(gradings.c.id == grading.id)
            .values(state=State.CANCELLED, attempt=None, ended=func.now(), progress=None)
        )
        connection.execute(select(func.procrastinate_cancel_job_v1(grading.job, True, False)))
    return bool(held)


_END_CANCELLED = text(
    "SELECT arena_end_attempt(gradings, 'cancelled') FROM gradings WHERE id = :id"
)


# ------------------------------------------------------------------------ picking up what was lost


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found; each as the submission's id."""

    again: tuple[str, ...]
    """Their attempts died, or their jobs were lost; queued once more."""
    given_up: tuple[str, ...]
    """Their last attempt died."""
    closed: int
    """Jobs that nobody had told the queue were over."""


def sweep(
    connection: Connection, lease_seconds: float, give_up: Callable[[Submission, int], Report]
) -> Swept:
    """Find what no worker works on any more, and see to it. In the caller's transaction.

    A lease runs while the database does: when it comes back from a crash, workers have the whole
    lease to say that they are alive.
    """
    values = {"lease": lease_seconds}
    dead = connection.execute(_DEAD, values).mappings().all()
    again: list[str] = []
    given_up: list[str] = []
    for row in dead:
        if row["died"] < MAX_ATTEMPTS:
            connection.execute(_LET_GO, {"id": row["id"]})
            again.append(row["submission"])
            continue
        found = kept(row["name"], row["author"], row["source"])
        handed_in = found.submission if isinstance(found, Unreadable) else found
        document = Document.of(give_up(handed_in, row["died"]))
        entry = Entry.of(document.report, document.id)
        connection.execute(
            _GIVE_UP,
            {
                "id": row["id"],
                "report": document.id,
                "text": document.text,
                "entry": json.dumps(entry._asdict()),
            },
        )
        given_up.append(row["submission"])
    for row in connection.execute(_LOST, values).mappings().all():
        connection.execute(select(func.arena_enqueue(row["id"])))
        if row["submission"] not in again:
            again.append(row["submission"])
    closed = connection.execute(_OVER, values).rowcount
    return Swept(tuple(again), tuple(given_up), closed)


_LEASE = "now() - make_interval(secs => :lease)"

_DEAD = text(
    f"""SELECT g.id, g.submission, s.name, s.source, p.name AS author,
        1 + (SELECT count(*) FROM attempts a WHERE a.grading = g.id AND a.fate = 'died') AS died
    FROM gradings g JOIN submissions s ON s.id = g.submission JOIN people p ON p.id = s.person
    WHERE g.state = 'grading' AND greatest(g.seen, pg_postmaster_start_time()) < {_LEASE}
    FOR UPDATE OF g SKIP LOCKED"""
)

_LET_GO = text(
    "SELECT arena_let_go(gradings, 'died') FROM gradings WHERE id = :id AND state = 'grading'"
)

_GIVE_UP = text(
    """SELECT arena_keep_result(gradings, :report, :text, CAST(:entry AS jsonb), 'died')
    FROM gradings WHERE id = :id"""
)

_LOST = text(
    f"""SELECT g.id, g.submission FROM gradings g LEFT JOIN procrastinate_jobs j ON j.id = g.job
    WHERE g.state = 'queued' AND (j.id IS NULL OR j.status <> 'todo')
        AND greatest(pg_postmaster_start_time(), (
            SELECT max(at) FROM procrastinate_events e WHERE e.job_id = j.id
        )) < {_LEASE}
    FOR UPDATE OF g SKIP LOCKED"""
)
"""Fetched from the queue by a worker that died before it took the grading up; or ended there while
the grading was not."""

_OVER = text(
    f"""UPDATE procrastinate_jobs j SET status = 'succeeded', abort_requested = false
    WHERE j.status = 'doing'
        AND NOT EXISTS (
            SELECT FROM gradings g WHERE g.job = j.id AND g.state IN ('queued', 'grading')
        )
        AND greatest(pg_postmaster_start_time(), (
            SELECT max(at) FROM procrastinate_events e WHERE e.job_id = j.id
        )) < {_LEASE}"""
)
"""Their gradings have ended or have other jobs, and nobody has told the queue."""
