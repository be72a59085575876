"""The places that a contest's rules name: after the end, who shares one of them is played off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, combinations, groupby

from sqlalchemy import Connection

from harness.arena.rules import Rules, RulesFile
from harness.arena.states import State
from harness.arena.store import board, gradings, playoffs
from harness.board.edition import Edition
from harness.board.ranking import Board, Row
from harness.board.site import boards_by_gpu


class Contested:
    """Looks again when the board or the rules have changed."""

    def __init__(self, rules: RulesFile, own: str) -> None:
        """own: the key that signs for this arena."""
        self._rules = rules
        self._own = own
        self._looked_at: tuple[int, Rules] | None = None

    def call(self, connection: Connection, now: datetime) -> list[int]:
        """Call what is to be played off now; their numbers. While one is open nothing more is
        called: what it finds may put others next to each other."""
        rules = self._rules.now
        if not rules.playoff_places or rules.ends is None or now < rules.ends:
            return []
        look = board.version(connection), rules
        waiting = gradings.counts_by_state(connection)
        if look == self._looked_at or waiting.get(State.QUEUED) or waiting.get(State.GRADING):
            return []
        if playoffs.any_open(connection):
            return []
        self._looked_at = look
        return _call(connection, rules, self._own)


def _call(connection: Connection, rules: Rules, own: str) -> list[int]:
    met = playoffs.met(connection)
    entries = board.counting(connection, own=own)
    played = playoffs.results(connection)
    boards = boards_by_gpu(entries, Edition.current(), rules.leagues, played=played)
    called: list[int] = []
    for each in chain.from_iterable(boards.values()):
        for place, rows in _shared(each, rules.playoff_places):
            players = _players(connection, rows)
            pairs = {(each.gpu, *pair) for pair in combinations(sorted(players), 2)}
            if pairs <= met:
                continue
            met |= pairs
            reason = f"place {place}, which {len(rows)} kernels share"
            called.append(playoffs.call(connection, None, list(players.values()), reason))
    return called


def _shared(board: Board, places: int) -> Iterator[tuple[int, Sequence[Row]]]:
    """The first places that several programs share."""
    for place, group in groupby(board.rows, lambda row: row.rank or 0):
        rows = list(group)
        if place <= places and len({row.entry.code for row in rows}) > 1:
            yield place, rows


def _players(connection: Connection, rows: Sequence[Row]) -> dict[str, str]:
    """The best of them, each program once, with its submission. What was imported has none, and
    does not play."""
    found: dict[str, str] = {}
    for row in rows:
        submission = board.submission_of(connection, row.entry.id)
        if submission is not None and len(found) < playoffs.MOST_PLAYERS:
            found.setdefault(row.entry.code, submission)
    return found
