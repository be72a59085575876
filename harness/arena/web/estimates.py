"""The order of kernels by estimated time, for an arena in which no GPU measures them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection

from harness.arena.store import board
from harness.board.entry import Entry
from harness.judge.explain.examined import from_report
from harness.judge.explain.explain import explain
from harness.protocol.report import Report


class Row(NamedTuple):
    """A kernel; without a place and a time where its report does not suffice for an estimate."""

    place: int | None
    entry: Entry
    ms: float | None


_known: dict[str, float | None] = {}
"""What was estimated from reports, by their ids."""


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
