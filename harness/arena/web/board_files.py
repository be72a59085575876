"""Renders the boards: all of their pages, or JSON for programs, compressed."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection

from harness.arena.store import board, people
from harness.arena.web.context import Site
from harness.arena.web.rendering import LEADERBOARD, File, shared_page
from harness.board.entry import Entry
from harness.board.ranking import as_data, rank
from harness.board.site import Page, board_page, file_names, runs_page
from harness.judge.explain.examination import from_report
from harness.judge.explain.explain import explain
from harness.protocol.report import Report
from problem.cases import RANKED

MAX_ROWS = 200
"""The most rows on a page, unless all are asked for."""

DATA = "board.json"


class Form(StrEnum):
    PAGES = "pages"
    """Pages for people, with the first rows of each board."""
    WHOLE_PAGES = "whole pages"
    DATA = "data"
    """The board of each GPU model, for programs."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The facts that boards depend on in addition to the database.

    stamp: of the rules. frozen_at: only what was submitted before counts.
    everything: also what was not accepted. pseudonyms: authors have pseudonyms.
    readable: kernels lead to their pages, which the reader may see.
    """

    form: Form
    stamp: tuple[int, ...]
    frozen_at: datetime | None
    everything: bool = False
    pseudonyms: bool = False
    readable: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """The files of a board by their names, all from one transaction."""

    version: int
    files: Mapping[str, File]


def render(site: Site, variant: Variant) -> Rendered:
    """Render all files of a variant. Raises Problem where the database does not answer."""
    with site.transaction() as connection:
        version = board.version(connection)
        entries = board.counting(connection, variant.frozen_at, site.trusted_keys)
        shown_as = people.pseudonyms(connection) if variant.pseudonyms else {}
        entries = [each._replace(author=shown_as.get(each.author, each.author)) for each in entries]
        boards = rank(entries)
        estimates = by_estimate(connection, entries) if site.rules.estimates and not boards else ()
    if variant.form is Form.DATA:
        data = [as_data(each) for each in boards]
        return Rendered(version, {DATA: File.of(json.dumps(data).encode())})
    names = file_names([each.gpu for each in boards])
    frame: dict[str, Any] = {
        "boards": [Page(names[each.gpu], each.gpu) for each in boards] or [LEADERBOARD],
        "version": version,
        "frozen_at": variant.frozen_at,
        "open_sources": variant.readable,
    }
    rendered: dict[str, File] = {}
    most = MAX_ROWS if variant.form is Form.PAGES else None

    def add(file: str, template: str, rows: str, said: str, values: dict[str, Any]) -> None:
        """Add a page. rows: the name of the value that is cut. said: the sentence about that."""
        count = len(values.get(rows, ()))
        cut = most is not None and count > most
        shortened = said.format(most, count) if cut else ""
        values |= {name: values[name][:most] for name in (rows, "unverified") if name in values}
        shown = shared_page(site, template, here=file, shortened=shortened, **frame, **values)
        rendered[file] = File.of(bytes(shown.body))

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
    return Rendered(version, rendered)


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
