"""The actions of organisers, each with a line in the audit log."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, RowMapping, func, insert, select, text, update

from harness.arena.problems import NotPossible
from harness.arena.store.gradings import cancel, cancel_rejudging, queue_grading
from harness.arena.store.people import Person, change
from harness.arena.store.tables import audit, gradings, people, rejudges, submissions


def note(
    connection: Connection, actor: Person | None, action: str, subject: str, **details: object
) -> None:
    """Write a line of the audit log, in the transaction of the action itself."""
    connection.execute(
        insert(audit).values(
            actor=actor.id if actor else None, action=action, subject=subject, details=details
        )
    )


def audit_log(connection: Connection, limit: int = 100, offset: int = 0) -> Sequence[RowMapping]:
    """Return lines of the audit log, newest first: at, actor, action, subject and details."""
    columns = (audit.c.at, people.c.name.label("actor"), audit.c.action, audit.c.subject)
    query = select(*columns, audit.c.details).outerjoin(people, people.c.id == audit.c.actor)
    query = query.order_by(audit.c.id.desc()).limit(limit).offset(offset)
    return connection.execute(query).mappings().all()


# ---------------------------------------------------------------------------------- submissions


def _given(reason: str, otherwise: str) -> str:
    """Return a reason as it is kept. Raises NotPossible with the text `otherwise` for none."""
    if not reason.strip():
        raise NotPossible(otherwise)
    return reason.strip()[:500]


def withdraw(connection: Connection, actor: Person, submission: str) -> None:
    """Take a submission off the board, as its author wishes; it stays in the archive."""
    cancel(connection, submission)
    connection.execute(
        update(submissions).where(submissions.c.id == submission).values(withdrawn=func.now())
    )
    note(connection, actor, "withdraw", submission)


def disqualify(connection: Connection, actor: Person, submission: str, reason: str) -> None:
    """Disqualify a submission. Raises NotPossible without a reason, which its author will read."""
    reason = _given(reason, "a disqualification needs a reason, which its author will read")
    statement = update(submissions).where(submissions.c.id == submission)
    change(connection, statement.values(disqualified=reason), "there is no such submission")
    note(connection, actor, "disqualify", submission, reason=reason)


def reinstate(connection: Connection, actor: Person, submission: str) -> None:
    """End a disqualification; what its author withdrew stays withdrawn. Raises NotPossible."""
    found = submissions.c.id == submission, submissions.c.disqualified.is_not(None)
    statement = update(submissions).where(*found).values(disqualified=None)
    change(connection, statement, "this submission is not disqualified")
    note(connection, actor, "reinstate", submission)


# ------------------------------------------------------------------------------------- rejudging


def rejudge(connection: Connection, actor: Person, chosen: Collection[str], reason: str) -> int:
    """Queue the chosen submissions once more; return the rejudging's number. Raises NotPossible."""
    reason = _given(reason, "a rejudging needs a reason")
    found = connection.execute(
        select(submissions.c.id, gradings.c.model)
        .join(gradings, gradings.c.id == submissions.c.counts)
        .where(submissions.c.id.in_(chosen))
        .order_by(submissions.c.received)
    ).all()
    if not found:
        raise NotPossible("none of these submissions has a result yet")
    id = connection.execute(
        insert(rejudges).values(made_by=actor.id, reason=reason).returning(rejudges.c.id)
    ).scalar_one()
    for submission, model in found:
        queue_grading(connection, submission, actor.id, id, model)
    note(connection, actor, "rejudge", str(id), reason=reason, submissions=len(found))
    return int(id)


def counting_submissions(connection: Connection) -> list[str]:
    """Return the submissions that have a result and were neither withdrawn nor disqualified."""
    table = submissions.c
    taken_off = table.withdrawn.is_not(None) | table.disqualified.is_not(None)
    return list(connection.scalars(select(table.id).where(table.counts.is_not(None), ~taken_off)))


def rejudgings(connection: Connection, id: int | None = None) -> Sequence[RowMapping]:
    """Return the latest rejudgings, newest first, or the one with this number.

    Each is a set of submissions that were graded again, whose new results count only once applied.
    open: it was neither applied nor dropped. ended: how many of its gradings have ended.
    """
    return connection.execute(_REJUDGINGS, {"id": id}).mappings().all()


_REJUDGINGS = text(
    """SELECT r.id, r.reason, p.name AS made_by, r.created, r.applied, r.dropped,
        r.applied IS NULL AND r.dropped IS NULL AS open, count(*) AS gradings,
        count(*) FILTER (WHERE g.state IN ('done', 'cancelled')) AS ended
    FROM rejudges r JOIN people p ON p.id = r.made_by JOIN gradings g ON g.rejudge = r.id
    WHERE r.id = :id OR CAST(:id AS bigint) IS NULL
    GROUP BY r.id, p.name ORDER BY r.id DESC LIMIT 20"""
)


def changes(connection: Connection, rejudge: int) -> Sequence[RowMapping]:
    """Return the results of each submission before and after a rejudging, those that differ first.
    A row has submission, name, author, state, and verdict and score before and after."""
    return connection.execute(_CHANGES, {"rejudge": rejudge}).mappings().all()


_CHANGES = text(
    """SELECT s.id AS submission, s.name, p.name AS author, new.state,
        old.verdict AS verdict_before, new.verdict AS verdict_after,
        old_entry.score AS score_before, new_entry.score AS score_after
    FROM gradings new
    JOIN submissions s ON s.id = new.submission
    JOIN people p ON p.id = s.person
    LEFT JOIN gradings old ON old.id = s.counts
    LEFT JOIN entries old_entry ON old_entry.id = old.report
    LEFT JOIN entries new_entry ON new_entry.id = new.report
    WHERE new.rejudge = :rejudge
    ORDER BY old.verdict IS DISTINCT FROM new.verdict DESC, s.received"""
)


def apply_rejudging(connection: Connection, actor: Person, id: int) -> None:
    """Let the new results count; a judge-error replaces no result. Raises NotPossible."""
    found = _open(connection, id)
    if left := found["gradings"] - found["ended"]:
        raise NotPossible(f"{left} of its gradings have not ended yet")
    connection.execute(_APPLY, {"rejudge": id})
    connection.execute(update(rejudges).where(rejudges.c.id == id).values(applied=func.now()))
    note(connection, actor, "apply rejudging", str(id))


_APPLY = text(
    """UPDATE submissions SET counts = g.id FROM gradings g
    WHERE g.submission = submissions.id AND g.rejudge = :rejudge
        AND g.state = 'done' AND g.verdict <> 'judge-error'"""
)


def drop_rejudging(connection: Connection, actor: Person, id: int) -> None:
    """Drop a rejudging. Its results stay in the archive and never count. Raises NotPossible."""
    _open(connection, id)
    cancel_rejudging(connection, id)
    connection.execute(update(rejudges).where(rejudges.c.id == id).values(dropped=func.now()))
    note(connection, actor, "drop rejudging", str(id))


def _open(connection: Connection, id: int) -> RowMapping:
    connection.execute(select(rejudges.c.id).where(rejudges.c.id == id).with_for_update())
    found = next(iter(rejudgings(connection, id)), None)
    if found is None or not found["open"]:
        raise NotPossible("there is no such rejudging, or it was applied or dropped already")
    return found
