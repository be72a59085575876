"""The boards as they stand: ranked once for each change, not once for each visitor."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from harness.arena.store import board, contest
from harness.arena.store.contest import Announcement
from harness.arena.web.context import Site, Visitor, now
from harness.arena.web.rendering import page
from harness.leaderboard.edition import Edition
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Board, Filter, as_data, rank
from harness.leaderboard.site import (
    Page,
    board_of,
    board_page,
    file_names,
    league_badges,
    runs_page,
)

FRESH_SECONDS = 0.5
"""A board may be so old: a burst of results is ranked together."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """All boards of one moment."""

    version: int
    frozen_at: datetime | None
    entries: tuple[Entry, ...]
    boards: tuple[Board, ...]
    announcements: tuple[Announcement, ...]


class Boards:
    """Keeps what was ranked last, for contestants and for organisers."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept: dict[bool, tuple[float, Ranked]] = {}
        self._pages: dict[bool, tuple[Ranked, Mapping[str, bytes]]] = {}
        self._lock = threading.Lock()
        self._rendering = threading.Lock()

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
                    boards = rank(entries, Edition.current())
                    announced = tuple(contest.announced(connection))
                    kept = Ranked(version, frozen, entries, boards, announced)
            self._kept[frozen is None] = time.monotonic(), kept
            return kept

    def boards(self, visitor: Visitor) -> list[dict[str, Any]]:
        """For programs."""
        return [as_data(each) for each in self.ranked(visitor).boards]

    def pages(self, visitor: Visitor) -> Mapping[str, bytes]:
        """Every board and the list of all runs as HTML, compressed, by the page's file.

        Whoever comes while a new one is made gets the one before.
        """
        ranked = self.ranked(visitor)
        before, kept = self._pages.get(ranked.frozen_at is None, (None, None))
        if kept is not None and before is ranked:
            return kept
        if self._rendering.acquire(blocking=kept is None):
            try:
                kept = self._render(ranked)
                self._pages[ranked.frozen_at is None] = ranked, kept
            finally:
                self._rendering.release()
        assert kept is not None
        return kept

    def _render(self, ranked: Ranked) -> Mapping[str, bytes]:
        edition = Edition.current()
        leagues = [
            ranked.boards if not badges else rank(ranked.entries, edition, Filter(badges=badges))
            for badges in league_badges()
        ]
        names = file_names([each.gpu for each in ranked.boards])
        links = [Page(names[each.gpu], each.gpu) for each in ranked.boards]
        links = links or [Page("index.html", "Leaderboard")]
        frame: dict[str, Any] = {"boards": links, "announcements": ranked.announcements}
        made: dict[str, bytes] = {}
        for each in ranked.boards:
            values = board_page([board_of(each.gpu, league) for league in leagues])
            file = names[each.gpu]
            made[file] = _html(self._site, "board.html", here=file, **frame, **values)
        if not made:
            made["index.html"] = _html(self._site, "empty.html", here="index.html", **frame)
        values = runs_page(ranked.entries, ranked.boards, edition)
        made["runs.html"] = _html(self._site, "runs.html", here="runs.html", **frame, **values)
        return made


def _html(site: Site, template: str, **values: Any) -> bytes:
    return gzip.compress(bytes(page(site, template, **values).body), compresslevel=4)
