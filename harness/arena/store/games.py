"""What a worker asks of the database about the games of play-offs."""

from __future__ import annotations

import hashlib
from uuid import UUID

from psycopg.types.json import Jsonb

from harness.arena.store.line import Line
from harness.arena.store.membership import Membership
from harness.judge.stages.playoff import Game
from harness.protocol.report import Submission


class Games:
    """One worker's calls; from any thread."""

    def __init__(self, line: Line, membership: Membership) -> None:
        self._line = line
        self._membership = membership

    def take(self, game: UUID) -> list[Submission]:
        """Begin: who plays; nobody where it is another's or was called off."""
        rows = self._line.ask_all(
            "SELECT * FROM arena_take_game(%s, %s)", (game, self._membership.session)
        )
        return [
            Submission(
                name=row["name"],
                author=row["author"],
                sha256=hashlib.sha256(row["source"].encode()).hexdigest(),
                source=row["source"],
            )
            for row in rows
        ]

    def play_on(self, game: UUID) -> bool:
        """Say that it lives; whether it still counts."""
        return self._line.yes("SELECT arena_play_on(%s) AS yes", (game,))

    def finish(self, game: UUID, found: Game) -> bool:
        """Hand in the rounds; whether they count."""
        rounds = Jsonb(found.model_dump(mode="json"))
        return self._line.yes("SELECT arena_finish_game(%s, %s, NULL) AS yes", (game, rounds))

    def fail(self, game: UUID, why: str) -> bool:
        """Say why there are no rounds: no other GPU need try."""
        return self._line.yes("SELECT arena_finish_game(%s, NULL, %s) AS yes", (game, why))

    def give_back(self, game: UUID) -> bool:
        """Let another GPU play it; whether it was still held."""
        return self._line.yes("SELECT arena_finish_game(%s, NULL, NULL) AS yes", (game,))
