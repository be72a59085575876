"""Opening the database."""

from __future__ import annotations

from sqlalchemy import URL, Engine, create_engine, event

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
