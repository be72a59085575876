"""Tests of the database: its version, its own constraints and its connections."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from harness.arena.store.database import open_engine


def test_not_even_its_owner_edits_the_audit_log(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("INSERT INTO audit (action, subject) VALUES ('a', 'b')"))
        with pytest.raises(Exception, match="only ever added to"):
            connection.execute(text("UPDATE audit SET action = 'c'"))


def test_nobody_connects_without_the_password(engine: Engine) -> None:
    with pytest.raises(OperationalError, match="password authentication failed"):
        open_engine(engine.url.set(password="guessed")).connect()


def test_a_connection_is_checked_before_it_is_used(engine: Engine) -> None:
    """If the server has ended a connection, its next user gets a new one without an error."""
    own = open_engine(engine.url, connections=1)
    for _ in range(2):
        with own.connect() as connection:
            process = connection.scalar(text("SELECT pg_backend_pid()"))
        with engine.begin() as link:
            link.execute(text("SELECT pg_terminate_backend(:process)"), {"process": process})
    own.dispose()
