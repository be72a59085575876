"""A process that enters a report is killed at any moment: no report is lost, and none is torn."""

import os
import signal

import pytest
from sqlalchemy import event

from harness.board.document import Document
from harness.board.store import Store
from tests.board import factory
from tests.board.stores import KINDS, New, Where
from tests.forked import in_fork

STATEMENTS = {"sqlite": 5, "postgresql": 6}
"""The statements that enter one signed report: BEGIN (PostgreSQL also sets a time limit), three
INSERTs, COMMIT."""

ONE, OTHER = (factory.report(f"kernel {number}", rounds=8) for number in range(2))


def die(store: Store, statement: int) -> None:
    """Kill this process at the start of its n-th statement from now."""
    begun = 0

    def count(*_: object) -> None:
        nonlocal begun
        begun += 1
        if begun == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    engine = store._engine  # type: ignore[attr-defined]
    event.listen(engine, "before_cursor_execute", count)
    event.listen(engine, "commit", count)


def enter_and_die(where: Where, statement: int) -> str:
    with where.open() as store:
        die(store, statement)
        return store.enter(OTHER)


@pytest.mark.parametrize(
    ("kind", "statement"),
    [(kind, number) for kind in KINDS for number in range(1, STATEMENTS[kind] + 2)],
)
def test_a_kill_at_any_statement_leaves_all_or_nothing(new: New, kind: str, statement: int) -> None:
    where, id = new(kind), Document.of(OTHER).id
    with where.open() as store:
        store.enter(ONE)
    killed = statement <= STATEMENTS[kind]
    assert in_fork(lambda: enter_and_die(where, statement)) == (-signal.SIGKILL if killed else id)
    with where.open(create=False) as store:
        texts = list(store.documents())
        assert store.enter(OTHER) == id
        store.check()
    assert len(texts) == (1 if killed else 2)
