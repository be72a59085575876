"""The boards, rendered once for each change and not for each visitor.

A board changes with a result, a withdrawal or the rules. In between its pages, and its JSON for
programs, are kept as compressed bytes, and a visitor costs neither a query nor a thread.
"""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from harness.arena.problems import Problem
from harness.arena.store import board, people
from harness.arena.web.context import Site, Visitor, now
from harness.arena.web.rendering import LEADERBOARD, File, page
from harness.board.entry import Entry
from harness.board.ranking import as_data, rank
from harness.board.site import Page, board_page, file_names, runs_page
from harness.judge.explain.examination import from_report
from harness.judge.explain.explain import explain
from harness.protocol.report import Report
from problem.cases import RANKED

FRESH_SECONDS = 0.5
"""The age up to which a board is shown without a check, so that a burst is ranked together."""

MAX_ROWS = 1000
"""The most rows on a page."""

DATA = "board.json"


@dataclass(frozen=True, slots=True)
class Variant:
    """The facts that boards depend on in addition to the database.

    as_data: JSON for programs instead of pages for people. stamp: of the rules.
    frozen_at: only what was submitted before counts. everything: also what was not accepted.
    pseudonyms: authors have pseudonyms.
    readable: kernels lead to their pages, which the reader may see.
    """

    as_data: bool
    stamp: tuple[int, int]
    frozen_at: datetime | None
    everything: bool = False
    pseudonyms: bool = False
    readable: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """The files of a board by their names, all from one transaction."""

    version: int
    files: Mapping[str, File]


class Boards:
    """Keeps the latest boards of each kind of visitor."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept: dict[Variant, Rendered] = {}
        self._checked: dict[Variant, float] = {}
        """The times at which they were last found to be up to date."""
        self._lock = asyncio.Lock()

    async def rendered(self, visitor: Visitor, as_data: bool = False) -> Rendered:
        """Return the boards as this visitor may see them: frozen for all but organisers.

        Raises Problem.
        """
        rules = self._site.rules
        organises = visitor.organises
        if rules.private_board and visitor.person is None:
            raise Problem(401, "Sign in first: only participants see the boards.")
        variant = Variant(
            as_data,
            stamp=self._site.rules_file.stamp,
            frozen_at=rules.frozen_from if rules.frozen(now()) and not organises else None,
            everything=organises or rules.failures,
            pseudonyms=rules.pseudonyms and not organises,
            readable=visitor.reads_imported,
        )
        if self._is_old(variant):
            async with self._lock:  # those who wait get what the first has rendered
                if self._is_old(variant):
                    await self._renew(variant)
        return self._kept[variant]

    def _is_old(self, variant: Variant) -> bool:
        kept = variant in self._kept
        return not kept or time.monotonic() >= self._checked[variant] + FRESH_SECONDS

    async def _renew(self, variant: Variant) -> None:
        kept = self._kept.get(variant)
        try:
            if kept is None or kept.version != await run_in_threadpool(self._version):
                kept = await run_in_threadpool(render, self._site, variant)
        except Problem:  # the database is away
            if kept is None:
                raise
        # Boards of earlier rules are not asked for any more.
        current = {each: it for each, it in self._kept.items() if each.stamp == variant.stamp}
        self._kept = {**current, variant: kept}
        self._checked[variant] = time.monotonic()

    def _version(self) -> int:
        with self._site.transaction() as connection:
            return board.version(connection)


def render(site: Site, variant: Variant) -> Rendered:
    """Render all files of a variant. Raises Problem where the database does not answer."""
    with site.transaction() as connection:
        version = board.version(connection)
        entries = board.counting(connection, variant.frozen_at, site.trusted_keys)
        shown_as = people.pseudonyms(connection) if variant.pseudonyms else {}
        entries = [each._replace(author=shown_as.get(each.author, each.author)) for each in entries]
        boards = rank(entries)
        estimates = by_estimate(connection, entries) if site.rules.estimates and not boards else ()
    if variant.as_data:
        data = [as_data(each) for each in boards]
        return Rendered(version, {DATA: File.of(json.dumps(data).encode())})
    names = file_names([each.gpu for each in boards])
    anybody = Visitor(site, None)
    frame: dict[str, Any] = {
        "shared": True,
        "boards": [Page(names[each.gpu], each.gpu) for each in boards] or [LEADERBOARD],
        "version": version,
        "frozen_at": variant.frozen_at,
        "open_sources": variant.readable,
    }
    files: dict[str, File] = {}

    def add(file: str, template: str, rows: str, said: str, values: dict[str, Any]) -> None:
        """Add a page. rows: the name of the value that is cut. said: the sentence about that."""
        count = len(values.get(rows, ()))
        shortened = said.format(MAX_ROWS, count) if count > MAX_ROWS else ""
        values |= {name: values[name][:MAX_ROWS] for name in (rows, "unverified") if name in values}
        shown = page(anybody, template, here=file, shortened=shortened, **frame, **values)
        files[file] = File.of(bytes(shown.body))

    best = "The best {} of {} kernels."
    for each in boards:
        add(names[each.gpu], "board.html", "rows", best, board_page(each))
    if estimates:
        values = {"rows": estimates, "ranked": RANKED.shape}
        add("index.html", "estimates.html", "rows", best, values)
    elif not boards:
        add("index.html", "empty.html", "", "", {})
    runs = [each for each in entries if variant.everything or each.accepted]
    values = runs_page(runs, boards)
    add("runs.html", "runs.html", "runs", "The newest {} of {} runs.", values)
    return Rendered(version, files)


# ------------------------------------------------------- kernels that no GPU has measured


class Row(NamedTuple):
    """A kernel by estimate. Place and time are None where its report does not suffice."""

    place: int | None
    entry: Entry
    ms: float | None


_known: dict[str, float | None] = {}
"""Times that were estimated from reports, by the reports' ids."""


def by_estimate(connection: Connection, entries: Iterable[Entry]) -> list[Row]:
    """Return the accepted kernels that no GPU ran, the fastest by estimate first.

    As on a board, each author's kernel of one name has one row, with the best program of that name.
    Equal estimates share a place.
    """
    rows: dict[tuple[str, str], Row] = {}
    chosen = (each for each in entries if each.verified and each.accepted and not each.on_gpu)
    found = [(_estimate(connection, each), each) for each in chosen if not each.quick]
    found.sort(key=lambda each: (each[0] or float("inf"), each[1].created))
    for ms, entry in found:
        rows.setdefault((entry.author, entry.name), Row(None, entry, ms))
    times = [row.ms for row in rows.values() if row.ms is not None]
    return [
        row if row.ms is None else row._replace(place=1 + bisect_left(times, row.ms))
        for row in rows.values()
    ]


def _estimate(connection: Connection, entry: Entry) -> float | None:
    """Return the estimated milliseconds at the ranked size on an H100."""
    if entry.id not in _known:
        text = board.report_text(connection, entry.id)
        examined = from_report(Report.model_validate_json(text)) if text else None
        _known[entry.id] = explain(examined).estimated_ms if examined else None
    return _known[entry.id]
