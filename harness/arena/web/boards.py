"""The boards as they stand: ranked once for each change, not once for each visitor."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from harness.arena.store import board, contest
from harness.arena.store.contest import Announcement
from harness.arena.web.context import Site, Visitor, now
from harness.arena.web.problems import Problem
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

QUICK_SECONDS = 0.2
"""Whoever comes when a board has changed waits for one that is made so quickly, and of a larger
one gets that before, while the next is made."""

MAX_ROWS = 200
"""On a page, unless all are asked for."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """All boards of one moment."""

    version: int
    frozen_at: datetime | None
    entries: tuple[Entry, ...]
    boards: tuple[Board, ...]
    announcements: tuple[Announcement, ...]
    pages: Mapping[str, bytes]
    """As HTML, compressed, by the page's file."""
    made_in: float
    """Seconds."""
    whole: dict[str, bytes] = field(default_factory=dict)
    """The pages with all rows, once somebody has asked."""


class Boards:
    """Keeps what was ranked last, for contestants and for organisers."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept: dict[bool, tuple[float, Ranked]] = {}
        self._making = threading.Lock()

    def ranked(self, visitor: Visitor) -> Ranked:
        """As this visitor may see them: frozen for all but organisers. Raises Problem."""
        rules = self._site.rules
        organises = visitor.person is not None and visitor.person.organises
        frozen = rules.frozen_from if rules.frozen(now()) and not organises else None
        when, kept = self._kept.get(frozen is None, (0.0, None))
        if kept is None or kept.frozen_at != frozen:
            return self._renewed(frozen)
        if time.monotonic() - when < FRESH_SECONDS:
            return kept
        if kept.made_in < QUICK_SECONDS:
            return self._renewed(frozen)
        if not self._making.locked():
            threading.Thread(target=self._renew_quietly, args=(frozen,), daemon=True).start()
        return kept

    def boards(self, visitor: Visitor) -> list[dict[str, Any]]:
        """For programs."""
        return [as_data(each) for each in self.ranked(visitor).boards]

    def page(self, visitor: Visitor, file: str, *, whole: bool) -> bytes | None:
        """A board or the list of all runs as HTML, compressed. Raises Problem."""
        ranked = self.ranked(visitor)
        if not whole or file not in ranked.pages:
            return ranked.pages.get(file)
        with self._making:
            if not ranked.whole:
                ranked.whole.update(
                    _rendered(self._site, ranked.entries, ranked.boards, ranked.announcements, None)
                )
        return ranked.whole[file]

    def _renew_quietly(self, frozen: datetime | None) -> None:
        with suppress(Problem):  # the next visitor starts another
            self._renewed(frozen)

    def _renewed(self, frozen: datetime | None) -> Ranked:
        with self._making:
            when, kept = self._kept.get(frozen is None, (0.0, None))
            known = kept if kept is not None and kept.frozen_at == frozen else None
            began = time.monotonic()
            if known is not None and began - when < FRESH_SECONDS:
                return known
            with self._site.transaction() as connection:
                version = board.version(connection)
                if known is not None and known.version == version:
                    self._kept[frozen is None] = began, known
                    return known
                entries = tuple(board.counting(connection, frozen))
                announced = tuple(contest.announced(connection))
            boards = rank(entries, Edition.current())
            pages = _rendered(self._site, entries, boards, announced, MAX_ROWS)
            took = time.monotonic() - began
            made = Ranked(version, frozen, entries, boards, announced, pages, took)
            self._kept[frozen is None] = time.monotonic(), made
            return made


def _rendered(
    site: Site,
    entries: Sequence[Entry],
    boards: Sequence[Board],
    announcements: Sequence[Announcement],
    most: int | None,
) -> dict[str, bytes]:
    """Every board, and the list of all runs; most: rows of each."""
    edition = Edition.current()
    leagues = [
        boards if not badges else rank(entries, edition, Filter(badges=badges))
        for badges in league_badges()
    ]
    names = file_names([each.gpu for each in boards])
    links = [Page(names[each.gpu], each.gpu) for each in boards]
    links = links or [Page("index.html", "Leaderboard")]
    frame: dict[str, Any] = {"boards": links, "announcements": announcements}
    made: dict[str, bytes] = {}
    for each in boards:
        values = board_page([board_of(each.gpu, league) for league in leagues])
        frame["shortened"] = _shorten(values, "rows", "The best {} of {} kernels.", most)
        file = names[each.gpu]
        made[file] = _html(site, "board.html", here=file, **frame, **values)
    if not made:
        made["index.html"] = _html(site, "empty.html", here="index.html", **frame)
    values = runs_page(entries, boards, edition)
    frame["shortened"] = _shorten(values, "runs", "The newest {} of {} runs.", most)
    made["runs.html"] = _html(site, "runs.html", here="runs.html", **frame, **values)
    return made


def _shorten(values: dict[str, Any], name: str, sentence: str, most: int | None) -> str:
    """Keep the first rows, and say so; nothing where all are kept."""
    count = len(values[name])
    if most is None or count <= most:
        return ""
    values[name] = values[name][:most]
    return sentence.format(most, count)


def _html(site: Site, template: str, **values: Any) -> bytes:
    return gzip.compress(bytes(page(site, template, **values).body), compresslevel=4)
