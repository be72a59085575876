"""What a worker asks of the database: its three functions, tried until the database answers."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from harness.arena.progress import GradingProgress
from harness.leaderboard.document import Document
from harness.leaderboard.entry import Entry

log = logging.getLogger(__name__)

AGAIN_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a worker holds while it grades."""

    attempt: UUID
    submission: str
    name: str
    author: str
    source: str


class Attempts:
    """One worker's calls, over one connection; from any thread."""

    def __init__(self, conninfo: str, worker: str) -> None:
        self._conninfo = conninfo
        self._worker = worker
        self._connection: psycopg.Connection[dict[str, Any]] | None = None
        self._lock = threading.Lock()

    def take(self, job: int) -> Attempt | None:
        """Begin; None where somebody has done or cancelled it meanwhile."""
        row = self._ask("SELECT * FROM arena_take(%s, %s)", (job, self._worker))
        return Attempt(**row) if row else None

    def go_on(self, attempt: UUID, progress: GradingProgress) -> bool:
        """Say that it lives and how far it is; whether it still counts."""
        said = Jsonb(progress.model_dump(mode="json"))
        return self._yes("SELECT arena_go_on(%s, %s) AS yes", (attempt, said))

    def finish(self, attempt: UUID, document: Document) -> bool:
        """Hand in the result, and not give up before the database has it; whether it counts.

        Asked again after a connection that broke, it says no where the first time it was kept.
        """
        entry = Entry.of(document.report, document.id)
        index = Jsonb(entry._asdict(), dumps=json.dumps)
        return self._yes(
            "SELECT arena_finish(%s, %s, %s, %s) AS yes",
            (attempt, document.id, document.text, index),
        )

    def give_back(self, attempt: UUID) -> bool:
        """Let somebody else grade it; whether it was still held."""
        return self._yes("SELECT arena_give_back(%s) AS yes", (attempt,))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _yes(self, query: LiteralString, values: tuple[object, ...]) -> bool:
        row = self._ask(query, values)
        return bool(row and row["yes"])

    def _ask(self, query: LiteralString, values: tuple[object, ...]) -> dict[str, Any] | None:
        with self._lock:
            while True:
                try:
                    if self._connection is None:
                        self._connection = psycopg.connect(
                            self._conninfo, autocommit=True, row_factory=dict_row, connect_timeout=5
                        )
                    return self._connection.execute(query, values).fetchone()
                except psycopg.OperationalError as error:
                    log.warning("the database does not answer: %s", error)
                    if self._connection is not None:
                        self._connection.close()
                    self._connection = None
                    time.sleep(AGAIN_SECONDS)
