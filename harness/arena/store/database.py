"""Opening the database."""

from __future__ import annotations

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

CONNECT_SECONDS = 5


def open_engine(url: URL, connections: int = 10) -> Engine:
    """Connections that are looked at before they are used, so that a restart costs a retry."""
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_pre_ping=True,
        pool_timeout=CONNECT_SECONDS,
        connect_args={"connect_timeout": CONNECT_SECONDS},
    )

    @event.listens_for(engine, "connect")
    def _in_utc(connection: object, _: object) -> None:
        with connection.cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute("SET TIME ZONE 'UTC'")
        connection.commit()  # type: ignore[attr-defined]

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
