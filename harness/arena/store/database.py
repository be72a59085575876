"""Opening the database."""

from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError

CONNECT_SECONDS = 5


def open_engine(url: URL, connections: int = 10) -> Engine:
    """Open an engine in UTC that checks each connection before use: a restart costs a retry."""
    return create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_SECONDS, "options": "-c TimeZone=UTC"},
    )


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
    from psycopg.conninfo import make_conninfo  # not all have it

    parts = url.translate_connect_args(username="user", database="dbname")
    return make_conninfo(**{**url.query, **parts})
