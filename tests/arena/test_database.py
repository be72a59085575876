"""Tests of the database: its version, its own constraints and its connections."""

from collections.abc import Callable

import pytest
from sqlalchemy import URL, Engine, text

from harness.arena.data_dir import Secrets
from harness.arena.store import board
from harness.arena.store.database import open_engine
from harness.arena.store.preparing import prepare
from harness.board import schema
from harness.board.document import Document
from harness.board.store import enter_document
from tests.board import factory


def test_a_board_of_an_earlier_judge_becomes_an_arenas(
    fresh_database: Callable[[], URL], secrets: Secrets
) -> None:
    url = fresh_database()
    engine = open_engine(url, connections=1)
    with engine.begin() as connection:
        schema.bring_up_to_date(connection, "the board")
        enter_document(connection, Document.of(factory.report("tile", "ada", 1.2)))
    prepare(url, secrets)
    with engine.begin() as connection:
        (entry,) = board.counting(connection)
    assert (entry.name, entry.verified) == ("tile", False)
    engine.dispose()


def test_not_even_its_owner_edits_the_audit_log(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("INSERT INTO audit (action, subject) VALUES ('a', 'b')"))
        with pytest.raises(Exception, match="only ever added to"):
            connection.execute(text("UPDATE audit SET action = 'c'"))


def test_a_connection_is_checked_before_it_is_used(engine: Engine) -> None:
    """If the server has ended a connection, its next user gets a new one without an error."""
    own = open_engine(engine.url, connections=1)
    for _ in range(2):
        with own.connect() as connection:
            process = connection.scalar(text("SELECT pg_backend_pid()"))
        with engine.begin() as link:
            link.execute(text("SELECT pg_terminate_backend(:process)"), {"process": process})
    own.dispose()
