"""Workers: their requests to the arena, and what organisers see and change of them."""

import math
import secrets
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    exists,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from harness.arena.build import Build, refusal
from harness.arena.problems import NotPossible, Problem
from harness.arena.progress import GradingProgress
from harness.arena.states import MAX_ATTEMPTS, State
from harness.arena.store import contest, gradings
from harness.arena.store.gradings import QUEUE, Held, lock
from harness.arena.store.people import Person, change, hashed
from harness.arena.store.tables import attempts, workers
from harness.arena.store.tables import gradings as gradings_table
from harness.arena.store.tables import worker_keys as keys
from harness.arena.submitted import stored
from harness.arena.workers.api import (
    KEY_PREFIX,
    LEASE_SECONDS,
    Decision,
    Heartbeat,
    HeartbeatAnswer,
    Join,
    Task,
)
from harness.board.document import Document
from harness.board.entry import Version
from harness.protocol.report import Report, Verdict

MAX_NAME = 60
LIST_SECONDS = 10.0
"""The longest time from a fetch to the first heartbeat that lists its attempt."""


class SessionEnded(Problem):
    """The worker counted as dead, or another one has its GPU."""

    def __init__(self) -> None:
        super().__init__(410, "this session is over; join again")


# ----------------------------------------------------------------------------------------- keys


def machine_of(connection: Connection, key: str) -> int | None:
    """Return the machine of a worker key; None where the key is unknown or revoked."""
    return connection.scalar(
        select(keys.c.id).where(keys.c.hash == hashed(key), keys.c.revoked.is_(None))
    )


def new_machine(connection: Connection, name: str) -> str:
    """Return a new worker key for a machine; only its hash is kept. Raises NotPossible."""
    name = name.strip()
    if not (0 < len(name) <= MAX_NAME and name.isprintable()):
        raise NotPossible(f"a machine's name has from 1 to {MAX_NAME} printable characters")
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    connection.execute(insert(keys).values(name=name, hash=hashed(key)))
    return key


def set_own_key(connection: Connection, key: str) -> None:
    """Let the arena's own workers in with this key, and with no earlier one."""
    known = update(keys).where(keys.c.own).values(hash=hashed(key))
    if not connection.execute(known).rowcount:
        connection.execute(insert(keys).values(name="the arena's own", hash=hashed(key), own=True))


def machines(connection: Connection) -> Sequence[RowMapping]:
    """Return the id, name, created and revoked of each worker key but the arena's own."""
    columns = (keys.c.id, keys.c.name, keys.c.created, keys.c.revoked)
    query = select(*columns).where(~keys.c.own).order_by(keys.c.id)
    return connection.execute(query).mappings().all()


def revoke(connection: Connection, actor: Person, id: int) -> None:
    """Revoke a worker key, and end the sessions of its workers. Raises NotPossible."""
    valid = keys.c.id == id, keys.c.revoked.is_(None), ~keys.c.own
    statement = update(keys).where(*valid).values(revoked=func.now())
    change(connection, statement, "there is no such machine, or its key was revoked before")
    connection.execute(update(workers).where(workers.c.machine == id).values(seen=None))
    contest.note(connection, actor, "revoke worker key", str(id))


# ----------------------------------------------------------------------------------- one worker


def join(connection: Connection, machine: int, join: Join, build: Build) -> UUID:
    """Let a worker in: one for each GPU, and all with the same judge. Return its session. Raises
    Problem."""
    if join.build != build:
        raise Problem(403, refusal(build, join.build))
    # A worker that was still starting when its machine was drained leaves with the others.
    draining = connection.scalar(
        select(func.count()).where(workers.c.supervisor == join.supervisor, workers.c.draining)
    )
    session = uuid.uuid4()
    values = {
        "name": join.name,
        "machine": machine,
        "model": join.model,
        "session": session,
        "supervisor": join.supervisor,
        "build": str(build),
        "seen": func.now(),
        "draining": bool(draining),
    }
    lease = timedelta(seconds=LEASE_SECONDS)
    held = (workers.c.supervisor != join.supervisor) & (workers.c.seen > func.now() - lease)
    statement = upsert(workers).values(id=join.worker, **values)
    statement = statement.on_conflict_do_update(
        index_elements=["id"],
        set_=values,
        where=held.is_not(True),  # one that has left was not seen
    )
    if connection.scalar(statement.returning(workers.c.id)) is None:
        name = connection.scalar(select(workers.c.name).where(workers.c.id == join.worker))
        raise Problem(409, f"the device {join.worker} has a worker already: {name}")
    return session


def heartbeat(
    connection: Connection, machine: int, session: UUID, beat: Heartbeat, build: Build
) -> HeartbeatAnswer:
    """Record a worker's heartbeat and the progress of its attempts. Raises SessionEnded."""
    worker = connection.execute(
        update(workers)
        .where(*_session(machine, session), workers.c.build == str(build))
        .values(seen=func.now())
        .returning(workers.c.id, workers.c.draining)
    ).one_or_none()
    if worker is None:
        raise SessionEnded
    lost = [
        attempt
        for attempt, progress in beat.attempts.items()
        if not _keep_progress(connection, worker.id, attempt, progress)
    ]
    _end_unlisted(connection, worker.id, beat.attempts)
    return HeartbeatAnswer(leave=worker.draining, lost=tuple(lost))


def _keep_progress(
    connection: Connection, worker: str, attempt: UUID, progress: GradingProgress
) -> bool:
    """Record an attempt's progress; return whether the attempt still holds its grading."""
    held = exists().where(attempts.c.id == attempt, attempts.c.worker_id == worker)
    changed = connection.execute(
        update(gradings_table)
        .where(gradings_table.c.attempt == attempt, held)
        .values(seen=func.now(), progress=progress.model_dump(mode="json"))
    )
    return changed.rowcount > 0


def _end_unlisted(
    connection: Connection, worker: str, listed: Mapping[UUID, GradingProgress]
) -> None:
    """End attempts that their worker does not have.

    They never reached it, or it died and was started again.
    """
    unlisted = select(attempts.c.id).where(
        attempts.c.worker_id == worker,
        attempts.c.ended.is_(None),
        attempts.c.id.not_in(listed),
        attempts.c.started < func.now() - timedelta(seconds=LIST_SECONDS),
    )
    for held in lock(connection, gradings_table.c.attempt.in_(unlisted), skip_locked=True):
        gradings.lose(connection, held)


def leave(connection: Connection, machine: int, session: UUID) -> None:
    connection.execute(update(workers).where(*_session(machine, session)).values(seen=None))


def drain_machine(connection: Connection, machine: int) -> int:
    """Let a machine's workers end after their current tasks; return how many are still there."""
    alive = workers.c.seen > func.now() - timedelta(seconds=LEASE_SECONDS)
    return connection.execute(
        update(workers).where(workers.c.machine == machine, alive).values(draining=True)
    ).rowcount


def _session(machine: int, session: UUID) -> tuple[ColumnElement[bool], ...]:
    return (workers.c.session == session, workers.c.machine == machine, workers.c.seen.is_not(None))


# ------------------------------------------------------------------------------------- attempts


def take(connection: Connection, machine: int, session: UUID, quick: bool = False) -> Task | None:
    """Begin an attempt at the grading whose turn it is; None where nothing waits.

    quick: grade by a sample of the cases. Fetching the job and beginning the attempt are one
    transaction. Raises SessionEnded where the session is over or the worker is to fetch nothing.
    """
    worker = connection.execute(
        select(workers.c.id, workers.c.name, workers.c.model).where(
            *_session(machine, session), ~workers.c.draining
        )
    ).one_or_none()
    if worker is None:
        raise SessionEnded
    table = gradings_table.c
    queues = [QUEUE, *([f"model {worker.model}"] if worker.model else [])]
    while (job := connection.execute(_FETCH, {"queues": queues}).one()).id is not None:
        connection.execute(_FINISH, {"job": job.id})
        grading = connection.execute(
            update(gradings_table)
            .where(table.id == job.grading, table.state == State.QUEUED)
            .values(
                state=State.GRADING,
                attempt=uuid.uuid4(),
                attempts=table.attempts + 1,
                started=func.coalesce(table.started, func.now()),
                seen=func.now(),
                progress=None,
            )
            .returning(table.id, table.submission, table.attempt, table.attempts)
        ).one_or_none()
        if grading is not None:
            return _task(connection, worker, grading, quick)  # a cancelled one has a job, too
    return None


_FETCH = text(
    """SELECT id, CAST(args ->> 'grading' AS bigint) AS grading
    FROM procrastinate_fetch_job_v2(CAST(:queues AS character varying[]), NULL)"""
)
_FINISH = text("SELECT procrastinate_finish_job_v1(:job, 'succeeded', true)")


def _task(connection: Connection, worker: Any, grading: Any, quick: bool) -> Task:
    connection.execute(
        insert(attempts).values(
            id=grading.attempt,
            grading=grading.id,
            number=grading.attempts,
            worker=worker.name,
            worker_id=worker.id,
            quick=quick,
        )
    )
    name, author, source = gradings.submitted(connection, grading.submission)
    return Task(
        attempt=grading.attempt,
        submission=grading.submission,
        name=name,
        author=author,
        source=source,
        quick=quick,
    )


def finish(connection: Connection, machine: int, attempt: UUID, report: Report) -> Decision:
    """Keep an attempt's report, if the attempt still holds the grading.

    A report that says that the judge failed counts only when no attempt is left. Raises NotPossible
    where it contradicts the attempt's task, and StoreError where no board can keep it.
    """
    table = gradings_table.c
    task = connection.execute(
        select(table.submission, table.model, attempts.c.quick, attempts.c.started)
        .join_from(attempts, gradings_table, attempts.c.grading == table.id)
        .where(attempts.c.id == attempt)
    ).one_or_none()
    if task is None:
        return Decision.LOST
    # The machine runs strangers' kernels: what the arena knows is not taken from it.
    submission = stored(*gradings.submitted(connection, task.submission))
    by, gpu = report.environment, report.device.name if report.device else task.model
    found = report.submission.sha256, report.quick, task.model and gpu, by.judge, by.cases
    if found != (submission.sha256, task.quick, task.model, *Version.current()):
        raise NotPossible(
            "the report's source, choice of cases, GPU or version of the judge is not its task's"
        )
    known = {"submission": submission, "created": task.started}
    document = Document.of(report.model_copy(update=known))
    held = _held(connection, machine, attempt)
    if held is None:
        kept = select(exists().where(table.report == document.id))
        return Decision.COUNTED if connection.scalar(kept) else Decision.LOST
    failed = report.verdict is Verdict.JUDGE_ERROR
    if failed and gradings.dead_attempts(connection, held) + 1 < MAX_ATTEMPTS:
        gradings.requeue(connection, held, "died")
        return Decision.RETRY
    seconds = math.fsum(stage.seconds for stage in report.stages)
    gradings.keep_result(connection, held, document, "died" if failed else "finished", seconds)
    return Decision.COUNTED


def release(connection: Connection, machine: int, attempt: UUID) -> bool:
    """Let another worker grade it; return whether the attempt held the grading."""
    held = _held(connection, machine, attempt)
    if held is not None:
        gradings.requeue(connection, held, "given back")
    return held is not None


def _held(connection: Connection, machine: int, attempt: UUID) -> Held | None:
    of_machine = (
        select(attempts.c.id)
        .join(workers, workers.c.id == attempts.c.worker_id)
        .where(workers.c.machine == machine)
    )
    of_it = gradings_table.c.attempt == attempt
    return next(iter(lock(connection, of_it, gradings_table.c.attempt.in_(of_machine))), None)


# -------------------------------------------------------------------------- what organisers see


_ALL_WORKERS = text(
    """SELECT w.id, w.name, coalesce(m.name, 'the arena''s own') AS machine, w.model, w.draining,
        l.alive, g.submission,
        CASE WHEN NOT l.alive THEN 'away'
            WHEN g.id IS NOT NULL THEN coalesce(g.progress -> 'stages' -> -1 ->> 'stage', 'begins')
            WHEN w.draining THEN 'leaves' ELSE 'waits'
        END AS activity,
        (SELECT count(*) FROM attempts e WHERE e.worker_id = w.id AND e.fate = 'finished'
            AND e.ended > now() - interval '1 day') AS graded,
        (SELECT count(*) FROM attempts e WHERE e.worker_id = w.id AND e.fate = 'died'
            AND e.ended > now() - interval '1 day') AS died
    FROM workers w LEFT JOIN worker_keys m ON m.id = w.machine
    CROSS JOIN LATERAL (
        SELECT coalesce(w.seen > now() - make_interval(secs => :lease), false) AS alive
    ) l
    LEFT JOIN LATERAL (
        SELECT grading, id FROM attempts WHERE worker_id = w.id AND ended IS NULL
            ORDER BY started LIMIT 1
    ) a ON true
    LEFT JOIN gradings g ON g.id = a.grading AND g.attempt = a.id
    WHERE w.model IS NOT NULL OR w.seen IS NOT NULL
    ORDER BY m.own DESC NULLS FIRST, m.name, w.name"""
)


def all_workers(connection: Connection) -> Sequence[RowMapping]:
    """Return all GPUs that ever joined, and other workers that are present. graded and died: the
    attempts of the last 24 hours that ended so."""
    return connection.execute(_ALL_WORKERS, {"lease": LEASE_SECONDS}).mappings().all()


def drain(connection: Connection, actor: Person, id: str) -> None:
    """Let a worker end after its current tasks. Raises NotPossible."""
    present = workers.c.id == id, workers.c.seen.is_not(None)
    statement = update(workers).where(*present).values(draining=True)
    change(connection, statement, "this worker is not here")
    contest.note(connection, actor, "drain", id)
