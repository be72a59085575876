"""Submissions and their gradings: submitting, cancelling, recovering lost ones.

The queue is Procrastinate's tables and functions. It holds a job for each grading that waits. The
transaction that fetches a job also begins an attempt (workers.py), so none is ever in between.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, func, insert, select, text, update

from harness.arena.problems import Problem
from harness.arena.rules import Limits
from harness.arena.states import MAX_ATTEMPTS, State
from harness.arena.store.tables import attempts, gradings, people, submissions
from harness.arena.store.watching import DEFAULT_SECONDS, typical_seconds
from harness.arena.submitted import report_of_dead_workers, stored
from harness.board.document import Document
from harness.board.store import enter_document
from harness.protocol.report import Submission, Verdict

QUEUE, TASK = "gradings", "grade"
"""The queue that every worker serves, and the name of its jobs."""

DAY = timedelta(days=1)
MAX_RETURNS = 10
"""Up to this number of attempts, undelivered ones are retried without counting."""


# ---------------------------------------------------------------------------------- submitting


def submit(
    connection: Connection,
    person: int,
    submission: Submission,
    limits: Limits,
    idempotency_key: str | None,
    model: str | None = None,
    closed: str | None = None,
) -> str:
    """Keep a submission and queue its grading, in the caller's transaction; return its id.

    model: of GPU, where only that may grade it. closed: why no new submission is accepted now.
    Raises Problem.
    """
    # One submission of a person at a time: so the limits hold, and a key is used once.
    connection.execute(select(people.c.id).where(people.c.id == person).with_for_update())
    if idempotency_key is not None:
        before = connection.execute(
            select(submissions.c.id, submissions.c.sha256, submissions.c.name).where(
                submissions.c.person == person, submissions.c.idempotency_key == idempotency_key
            )
        ).one_or_none()
        if before is not None:
            if (before.sha256, before.name) != (submission.sha256, submission.name):
                raise Problem(409, "this idempotency key came with another file before")
            return str(before.id)
    if closed is not None:
        raise Problem(403, closed)
    _check_limits(connection, person, limits)
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
    return id


def queue_grading(
    connection: Connection,
    submission: str,
    person: int,
    rejudge: int | None = None,
    model: str | None = None,
) -> None:
    """Make a grading and its job, in the caller's transaction.

    The turns are those of start-time fair queueing (P. Goyal, H. Vin, H. Cheng, SIGCOMM 1996), each
    grading costing one: a person's next grading comes one turn after their last, but never before
    those that are being served now. So people take turns, and no one waits for ever.
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
    enqueue(connection, id)


def _check_limits(connection: Connection, person: int, limits: Limits) -> None:
    """Raises Problem where the person is over a limit."""
    waiting = connection.scalar(
        select(func.count()).where(
            gradings.c.person == person,
            gradings.c.rejudge.is_(None),
            gradings.c.state.in_((State.QUEUED, State.GRADING)),
        )
    )
    if (waiting or 0) >= limits.in_flight:
        raise Problem(
            429,
            f"{waiting} of your submissions are not graded yet; at most {limits.in_flight} may be",
            retry_after=typical_seconds(connection),
        )
    since = func.now() - DAY
    judge_failed = gradings.c.verdict == Verdict.JUDGE_ERROR
    today = connection.execute(
        select(func.count(), func.extract("epoch", func.min(submissions.c.received) - since))
        .outerjoin(gradings, gradings.c.id == submissions.c.counts)
        .where(
            submissions.c.person == person,
            submissions.c.received > since,
            judge_failed.is_not(True),
        )
    ).one()
    if today[0] >= limits.per_day:
        raise Problem(
            429,
            f"you have submitted {today[0]} times within 24 hours; {limits.per_day} are allowed",
            retry_after=today[1],
        )
    spent = connection.execute(
        select(
            func.coalesce(func.sum(gradings.c.seconds), 0),
            func.extract("epoch", func.min(gradings.c.ended) - since),
        ).where(
            gradings.c.person == person,
            gradings.c.rejudge.is_(None),
            gradings.c.ended > since,
            judge_failed.is_not(True),
        )
    ).one()
    if spent[0] >= limits.device_seconds_per_day:
        raise Problem(
            429,
            f"your gradings of the last 24 hours took {spent[0]:.0f} s of a device, "
            f"and {limits.device_seconds_per_day} s are allowed",
            retry_after=spent[1] or DEFAULT_SECONDS,
        )


def submitted(connection: Connection, submission: str) -> tuple[str, str, str]:
    """Return the name, author and source of a submission, which there is."""
    name, author, source = connection.execute(
        select(submissions.c.name, people.c.name, submissions.c.source)
        .join(people, people.c.id == submissions.c.person)
        .where(submissions.c.id == submission)
    ).one()
    return name, author, source


# ---------------------------------------------------------------------------------- cancelling


def cancel(connection: Connection, submission: str) -> bool:
    """End the grading of a submission, if it has no result yet; return whether there was one.

    It does not end a rejudging, which only an organiser may do.
    """
    return _cancel(connection, gradings.c.submission == submission, gradings.c.rejudge.is_(None))


def cancel_rejudging(connection: Connection, rejudge: int) -> None:
    """End the gradings of a rejudging that have no result yet."""
    _cancel(connection, gradings.c.rejudge == rejudge)


def _cancel(connection: Connection, *which: ColumnElement[bool]) -> bool:
    """A worker that fetches the job of a cancelled grading drops it."""
    found = lock(connection, *which, gradings.c.state.in_((State.QUEUED, State.GRADING)))
    for held in found:
        _end(connection, held, "cancelled", state=State.CANCELLED)
    return bool(found)


# ---------------------------------------------------------------------------- ends of attempts


class Held(NamedTuple):
    """A grading that is queued or graded, locked by the caller's transaction."""

    id: int
    submission: str
    rejudge: int | None
    attempt: UUID | None
    attempts: int
    seen: datetime
    """The attempt's last heartbeat."""


def lock(
    connection: Connection, *which: ColumnElement[bool], skip_locked: bool = False
) -> list[Held]:
    """Lock the gradings that meet these conditions, and return them."""
    query = select(*(gradings.c[name] for name in Held._fields)).where(*which)
    rows = connection.execute(query.with_for_update(skip_locked=skip_locked))
    return [Held(*row) for row in rows]


def requeue(connection: Connection, held: Held, fate: str) -> None:
    """Put a grading back into the queue, keeping its turn."""
    _end(connection, held, fate, state=State.QUEUED)
    enqueue(connection, held.id)


def keep_result(
    connection: Connection, held: Held, document: Document, fate: str, seconds: float
) -> None:
    """Keep a report. seconds: what the grading cost its device."""
    enter_document(connection, document)
    verdict = document.report.verdict.value
    _end(connection, held, fate, seconds, state=State.DONE, verdict=verdict, report=document.id)
    if held.rejudge is None:
        connection.execute(
            update(submissions).where(submissions.c.id == held.submission).values(counts=held.id)
        )


def dead_attempts(connection: Connection, held: Held) -> int:
    """Return how many attempts at a grading have died."""
    dead = attempts.c.grading == held.id, attempts.c.fate == "died"
    return connection.scalar(select(func.count()).where(*dead)) or 0


def _end(
    connection: Connection, held: Held, fate: str, seconds: float | None = None, **values: object
) -> None:
    """End an attempt, if there is one, and change the grading's state.

    The time of an attempt counts however it ended; that of a dead one ends with its last heartbeat.
    """
    if held.attempt is not None:
        end = held.seen if fate == "died" else func.now()
        started = connection.execute(
            update(attempts)
            .where(attempts.c.id == held.attempt)
            .values(ended=func.now(), fate=fate)
            .returning(attempts.c.started)
        ).scalar_one()
        spent: Any = seconds if seconds is not None else func.extract("epoch", end - started)
        values["seconds"] = func.coalesce(gradings.c.seconds, 0) + spent
    if values["state"] is not State.QUEUED:
        values["ended"] = func.now()
    connection.execute(
        update(gradings)
        .where(gradings.c.id == held.id)
        .values(attempt=None, progress=None, **values)
    )


def enqueue(connection: Connection, grading: int) -> None:
    """Give a grading a job: in the queue of its GPU model, or in the one that all workers serve."""
    connection.execute(_ENQUEUE, {"grading": grading, "queue": QUEUE, "task": TASK})


_ENQUEUE = text(
    """SELECT procrastinate_defer_jobs_v1(ARRAY[ROW(
        coalesce('model ' || model, CAST(:queue AS text)), CAST(:task AS text), -turn, NULL,
        NULL, jsonb_build_object('grading', id), NULL
    )::procrastinate_job_to_defer_v1]) FROM gradings WHERE id = :grading"""
)


# ------------------------------------------------------------------------ attempts that were lost


def sweep(connection: Connection, lease_seconds: float) -> dict[str, bool]:
    """Queue the gradings again whose worker has died, or end them; return, for each submission,
    whether it was queued again.

    The caller makes sure that workers could reach the arena for the whole lease.
    """
    silent = gradings.c.seen < func.now() - timedelta(seconds=lease_seconds)
    held = lock(connection, gradings.c.state == State.GRADING, silent, skip_locked=True)
    return {each.submission: lose(connection, each) for each in held}


def lose(connection: Connection, held: Held) -> bool:
    """End an attempt that its worker does not have any more; return whether there is another one.

    An attempt that no heartbeat ever named did not reach its worker, and counts as given back,
    unless that happens again and again. After the last dead one the grading is a judge-error.
    """
    begun = connection.scalar(select(attempts.c.started).where(attempts.c.id == held.attempt))
    arrived = begun is None or held.seen > begun or held.attempts > MAX_RETURNS
    dead = dead_attempts(connection, held) + 1
    if not arrived or dead < MAX_ATTEMPTS:
        requeue(connection, held, "died" if arrived else "given back")
        return True
    submission = stored(*submitted(connection, held.submission))
    report = report_of_dead_workers(submission, f"{dead} workers died while they graded this")
    keep_result(connection, held, Document.of(report), "died", 0.0)
    return False
