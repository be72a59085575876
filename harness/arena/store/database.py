"""Opening the database."""

from __future__ import annotations

import time

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

CONNECT_SECONDS = 5
IDLE_SECONDS = 1.0
"""A connection that was used more recently is not checked. A check takes a millisecond, as long as
all queries of most pages."""


def open_engine(url: URL, connections: int = 10) -> Engine:
    """Open an engine in UTC that checks idle connections before use: a restart costs a retry."""
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        connect_args={"connect_timeout": CONNECT_SECONDS, "options": "-c TimeZone=UTC"},
    )

    @event.listens_for(engine, "checkin")
    def _note(_: object, entry: ConnectionPoolEntry) -> None:
        entry.info["used"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _check(connection: object, entry: ConnectionPoolEntry, _: object) -> None:
        if time.monotonic() - entry.info.get("used", float("inf")) > IDLE_SECONDS:
            try:
                engine.dialect.do_ping(connection)  # type: ignore[arg-type]
            except psycopg.Error:
                raise DisconnectionError from None

    return engine


def address(text: str) -> URL | None:
    """Return the address of a PostgreSQL; None where the text is not one."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        return None
    if url.get_backend_name() != "postgresql" or not url.database:
        return None
    return url.set(drivername="postgresql+psycopg")


def conninfo(url: URL) -> str:
    """Return the address as psycopg takes it: libpq reads no URL with a space in it."""
    parts = url.translate_connect_args(username="user", database="dbname")
    return make_conninfo(**{**url.query, **parts})
