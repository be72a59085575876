"""Makes the boards: every page of them, or what programs read, compressed as it is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from harness.arena.store import board, contest, people
from harness.arena.store.contest import Announcement
from harness.arena.web.context import Site
from harness.arena.web.estimates import Row, by_estimate
from harness.arena.web.rendering import File, page
from harness.board.entry import Entry
from harness.board.ranking import Board, as_data, rank
from harness.board.site import Page, board_page, file_names, runs_page
from problem.cases import RANKED

MAX_ROWS = 200
"""On a page, unless all are asked for."""

DATA = "board.json"


class Form(StrEnum):
    """The forms in which boards are rendered."""

    PAGES = "pages"
    """For people, the first rows of each."""
    WHOLE_PAGES = "whole pages"
    DATA = "data"
    """For programs: the board of each GPU model."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The facts that boards depend on in addition to the database.

    stamp: of the rules. frozen_at: only what was submitted before counts.
    everything: also what was not accepted. pseudonyms: authors have no names.
    readable: kernels lead to their pages, which the reader may see.
    """

    form: Form
    stamp: tuple[int, ...]
    frozen_at: datetime | None
    everything: bool = False
    pseudonyms: bool = False
    readable: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """All of one moment, by the file's name."""

    version: int
    files: Mapping[str, File]


def make(site: Site, wanted: Wanted) -> Made:
    """Raises Problem where the database is away."""
    with site.transaction() as connection:
        version = board.version(connection)
        entries = board.counting(connection, wanted.frozen_at, site.trusted_keys)
        announcements = contest.announced(connection)
        shown_as = people.pseudonyms(connection) if wanted.pseudonyms else {}
    entries = [each._replace(author=shown_as.get(each.author, each.author)) for each in entries]
    boards = rank(entries)
    estimates = None
    if site.rules.estimates and not boards:
        with site.transaction() as connection:
            estimates = by_estimate(connection, entries)
    if wanted.form is Form.DATA:
        data = [as_data(each) for each in boards]
        return Made(version, {DATA: File.of(json.dumps(data).encode())})
    most = MAX_ROWS if wanted.form is Form.PAGES else None
    shown = [each for each in entries if wanted.everything or each.accepted]
    pages = _pages(site, version, shown, boards, estimates, announcements, most, wanted)
    return Made(version, {name: File.of(html) for name, html in pages.items()})


def _pages(
    site: Site,
    version: int,
    entries: Sequence[Entry],
    boards: Sequence[Board],
    estimates: Sequence[Row] | None,
    announcements: Sequence[Announcement],
    most: int | None,
    wanted: Wanted,
) -> dict[str, bytes]:
    """Every board, and the list of all runs; most: rows of each."""
    names = file_names([each.gpu for each in boards])
    links = [Page(names[each.gpu], each.gpu) for each in boards] or [
        Page("index.html", "Leaderboard")
    ]
    frame: dict[str, Any] = {"boards": links, "announcements": announcements, "version": version}
    frame["frozen_at"] = wanted.frozen_at
    frame["open_sources"] = wanted.readable
    made: dict[str, bytes] = {}
    for each in boards:
        values = board_page(each)
        values["unverified"] = values["unverified"][:most]
        frame["shortened"] = _shorten(values, "rows", "The best {} of {} kernels.", most)
        file = names[each.gpu]
        made[file] = _html(site, "board.html", here=file, **frame, **values)
    if estimates:
        values = {"rows": estimates, "ranked": RANKED.shape}
        frame["shortened"] = _shorten(values, "rows", "The best {} of {} kernels.", most)
        made["index.html"] = _html(site, "estimates.html", here="index.html", **frame, **values)
    elif not boards:
        made["index.html"] = _html(site, "empty.html", here="index.html", **frame)
    values = runs_page(entries, boards)
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
    return bytes(page(site, template, **values).body)
