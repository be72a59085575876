"""The boards as they stand: ranked once for each change, not once for each visitor."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from harness.arena.store import board
from harness.arena.web.context import Site, Visitor, now
from harness.leaderboard.edition import Edition
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Board, as_data, rank

FRESH_SECONDS = 0.5
"""A board may be so old: a burst of results is ranked together."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """All boards of one moment."""

    version: int
    frozen_at: datetime | None
    entries: tuple[Entry, ...]
    boards: tuple[Board, ...]


class Boards:
    """Keeps what was ranked last, for contestants and for organisers."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept: dict[bool, tuple[float, Ranked]] = {}
        self._lock = threading.Lock()

    def ranked(self, visitor: Visitor) -> Ranked:
        """As this visitor may see them: frozen for all but organisers."""
        rules = self._site.rules
        organises = visitor.person is not None and visitor.person.organises
        frozen = rules.frozen_from if rules.frozen(now()) and not organises else None
        with self._lock:
            when, kept = self._kept.get(frozen is None, (0.0, None))
            fresh = time.monotonic() - when < FRESH_SECONDS
            if kept is not None and fresh and kept.frozen_at == frozen:
                return kept
            with self._site.transaction() as connection:
                version = board.version(connection)
                if kept is None or (kept.version, kept.frozen_at) != (version, frozen):
                    entries = tuple(board.counting(connection, frozen))
                    kept = Ranked(version, frozen, entries, rank(entries, Edition.current()))
            self._kept[frozen is None] = time.monotonic(), kept
            return kept

    def boards(self, visitor: Visitor) -> list[dict[str, Any]]:
        """For programs."""
        return [as_data(each) for each in self.ranked(visitor).boards]
