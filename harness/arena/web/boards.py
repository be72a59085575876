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

from harness.arena.rules import Rules
from harness.arena.store import board, contest
from harness.arena.store.contest import Announcement
from harness.arena.web.context import Site, Visitor, now
from harness.arena.web.problems import Problem
from harness.arena.web.rendering import page
from harness.leaderboard.edition import Edition
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Board, as_data
from harness.leaderboard.site import Page, board_page, boards_by_gpu, file_names, runs_page

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
    rules: Rules
    frozen_at: datetime | None
    entries: tuple[Entry, ...]
    boards: Mapping[str, Sequence[Board]]
    """By GPU model, one a league."""
    announcements: tuple[Announcement, ...]
    pages: Mapping[str, bytes]
    """As HTML, compressed, by the page's file."""
    made_in: float
    """Seconds."""
    whole: dict[str, bytes] = field(default_factory=dict)
    """The pages with all rows, once somebody has asked."""

    def holds(self, rules: Rules, frozen_at: datetime | None) -> bool:
        """Whether this was ranked by the same rules."""
        return (self.rules, self.frozen_at) == (rules, frozen_at)


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
        if kept is None or not kept.holds(rules, frozen):
            return self._renewed(rules, frozen)
        if time.monotonic() - when < FRESH_SECONDS:
            return kept
        if kept.made_in < QUICK_SECONDS:
            return self._renewed(rules, frozen)
        if not self._making.locked():
            threading.Thread(target=self._renew_quietly, args=(rules, frozen), daemon=True).start()
        return kept

    def boards(self, visitor: Visitor) -> list[dict[str, Any]]:
        """For programs: of each GPU model the league that its board shows first."""
        return [as_data(of_leagues[0]) for of_leagues in self.ranked(visitor).boards.values()]

    def page(self, visitor: Visitor, file: str, *, whole: bool) -> bytes | None:
        """A board or the list of all runs as HTML, compressed. Raises Problem."""
        ranked = self.ranked(visitor)
        if not whole or file not in ranked.pages:
            return ranked.pages.get(file)
        with self._making:
            if not ranked.whole:
                parts = (ranked.rules, ranked.entries, ranked.boards, ranked.announcements)
                ranked.whole.update(_rendered(self._site, *parts, None))
        return ranked.whole[file]

    def _renew_quietly(self, rules: Rules, frozen: datetime | None) -> None:
        with suppress(Problem):  # the next visitor starts another
            self._renewed(rules, frozen)

    def _renewed(self, rules: Rules, frozen: datetime | None) -> Ranked:
        with self._making:
            when, kept = self._kept.get(frozen is None, (0.0, None))
            known = kept if kept is not None and kept.holds(rules, frozen) else None
            began = time.monotonic()
            if known is not None and began - when < FRESH_SECONDS:
                return known
            with self._site.transaction() as connection:
                version = board.version(connection)
                if known is not None and known.version == version:
                    self._kept[frozen is None] = began, known
                    return known
                own = self._site.signing_key.public
                entries = tuple(board.counting(connection, frozen, own))
                announced = tuple(contest.announced(connection))
            boards = boards_by_gpu(entries, Edition.current(), rules.leagues)
            pages = _rendered(self._site, rules, entries, boards, announced, MAX_ROWS)
            took = time.monotonic() - began
            made = Ranked(version, rules, frozen, entries, boards, announced, pages, took)
            self._kept[frozen is None] = time.monotonic(), made
            return made


def _rendered(
    site: Site,
    rules: Rules,
    entries: Sequence[Entry],
    boards: Mapping[str, Sequence[Board]],
    announcements: Sequence[Announcement],
    most: int | None,
) -> dict[str, bytes]:
    """Every board, and the list of all runs; most: rows of each."""
    names = file_names(list(boards))
    links = [Page(names[gpu], gpu) for gpu in boards] or [Page("index.html", "Leaderboard")]
    frame: dict[str, Any] = {"boards": links, "announcements": announcements}
    made: dict[str, bytes] = {}
    for gpu, of_leagues in boards.items():
        values = board_page(of_leagues, rules.leagues)
        frame["shortened"] = _shorten(values, "rows", "The best {} of {} kernels.", most)
        file = names[gpu]
        made[file] = _html(site, "board.html", here=file, **frame, **values)
    if not made:
        made["index.html"] = _html(site, "empty.html", here="index.html", **frame)
    overall = [of_leagues[0] for of_leagues in boards.values()]
    values = runs_page(entries, overall, Edition.current())
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
