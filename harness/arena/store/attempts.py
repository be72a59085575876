"""What a worker asks of the database about gradings."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from harness.arena.progress import GradingProgress
from harness.arena.store.line import Line
from harness.arena.store.membership import Membership
from harness.board.document import Document
from harness.board.entry import Entry


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a worker holds while it grades."""

    attempt: UUID
    submission: str
    name: str
    author: str
    source: str
    began: datetime
    """By the database's clock, which is the only one that counts."""


class Attempts:
    """One worker's calls; from any thread."""

    def __init__(self, line: Line, membership: Membership) -> None:
        self._line = line
        self._membership = membership

    def take(self, job: int) -> Attempt | None:
        """Begin; None where somebody has done or cancelled it meanwhile."""
        row = self._line.ask("SELECT * FROM arena_take(%s, %s)", (job, self._membership.session))
        return Attempt(**row) if row else None

    def go_on(self, attempt: UUID, progress: GradingProgress) -> bool:
        """Say that it lives and how far it is; whether it still counts."""
        said = Jsonb(progress.model_dump(mode="json"))
        return self._line.yes("SELECT arena_go_on(%s, %s) AS yes", (attempt, said))

    def finish(self, attempt: UUID, document: Document) -> bool:
        """Hand in the result, and not give up before the database has it; whether it counts.

        Asked again after a connection that broke, it says no where the first time it was kept.
        """
        entry = Entry.of(document.report, document.id)
        index = Jsonb(entry._asdict(), dumps=json.dumps)
        spent = math.fsum(stage.seconds for stage in document.report.stages)
        return self._line.yes(
            "SELECT arena_finish(%s, %s, %s, %s, %s) AS yes",
            (attempt, document.id, document.text, index, spent),
        )

    def give_back(self, attempt: UUID) -> bool:
        """Let somebody else grade it; whether it was still held."""
        return self._line.yes("SELECT arena_give_back(%s) AS yes", (attempt,))

    def close(self) -> None:
        self._line.close()
