"""Check-ups: what each GPU made of the reference set, and whether it may judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update

from harness.arena.checkup import CheckUp
from harness.arena.fitness import fault
from harness.arena.store.tables import checkups, workers

KEPT_ON_A_PAGE = 60
"""Check-ups of one GPU: two months of days."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One check-up and what was made of it."""

    worker: str
    at: datetime
    found: CheckUp
    fault: str | None


def judge(connection: Connection) -> list[Judged]:
    """Those that nobody has judged yet, one after the other: each counts for the next."""
    waiting = connection.execute(
        select(checkups.c.id, checkups.c.worker, checkups.c.at, checkups.c.found)
        .where(checkups.c.judged.is_(None))
        .order_by(checkups.c.at, checkups.c.id)
        .with_for_update(skip_locked=True)
    ).all()
    judged = []
    for row in waiting:
        found = CheckUp.model_validate(row.found)
        why = fault(found, _others(connection, row.worker, found))
        connection.execute(
            update(checkups).where(checkups.c.id == row.id).values(judged=func.now(), fault=why)
        )
        judged.append(Judged(row.worker, row.at, found, why))
    return judged


def _others(connection: Connection, worker: str, found: CheckUp) -> Sequence[CheckUp]:
    """The last of each other GPU of the model that is in service."""
    newest = func.row_number().over(partition_by=checkups.c.worker, order_by=checkups.c.at.desc())
    judged = (
        select(checkups.c.found, checkups.c.fault, newest.label("place"))
        .join(workers, workers.c.id == checkups.c.worker)
        .where(
            workers.c.model == found.device.name,
            workers.c.id != worker,
            workers.c.organiser_says.is_distinct_from("set aside"),
            checkups.c.judged.is_not(None),
        )
        .subquery()
    )
    rows = connection.execute(
        select(judged.c.found).where(judged.c.place == 1, judged.c.fault.is_(None))
    ).scalars()
    others = [CheckUp.model_validate(row) for row in rows]
    return [other for other in others if other.judge == found.judge]


def history(connection: Connection, worker: str) -> list[Judged]:
    """Newest first."""
    rows = connection.execute(
        select(checkups.c.worker, checkups.c.at, checkups.c.found, checkups.c.fault)
        .where(checkups.c.worker == worker, checkups.c.judged.is_not(None))
        .order_by(checkups.c.at.desc())
        .limit(KEPT_ON_A_PAGE)
    ).all()
    return [
        Judged(row.worker, row.at, CheckUp.model_validate(row.found), row.fault) for row in rows
    ]
