"""A worker's line to the database: one connection, and each question asked until it is answered."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row

log = logging.getLogger(__name__)

AGAIN_SECONDS = 0.3
CONNECT_SECONDS = 5


class Line:
    """From any thread."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection: psycopg.Connection[dict[str, Any]] | None = None
        self._lock = threading.Lock()

    def ask(self, query: LiteralString, values: tuple[object, ...]) -> dict[str, Any] | None:
        """The first row."""
        return next(iter(self.ask_all(query, values)), None)

    def ask_all(self, query: LiteralString, values: tuple[object, ...]) -> list[dict[str, Any]]:
        """Every row. A database that goes away costs nothing but time."""
        with self._lock:
            while True:
                try:
                    if self._connection is None:
                        self._connection = self._connected()
                    return self._connection.execute(query, values).fetchall()
                except psycopg.OperationalError as error:
                    log.warning("the database does not answer: %s", error)
                    self.close()
                    time.sleep(AGAIN_SECONDS)

    def yes(self, query: LiteralString, values: tuple[object, ...]) -> bool:
        row = self.ask(query, values)
        return bool(row and row["yes"])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connected(self) -> psycopg.Connection[dict[str, Any]]:
        return psycopg.connect(
            self._conninfo,
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=CONNECT_SECONDS,
            # A network that goes without a word is noticed, and not waited for.
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
        )
