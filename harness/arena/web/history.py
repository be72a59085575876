"""The history of a person: every attempt, its score, and what changed since the one before."""

from itertools import pairwise

from fastapi import Response

from harness.arena.store import watching
from harness.arena.store.people import Person
from harness.arena.store.watching import Status
from harness.arena.web.context import Visitor
from harness.arena.web.rendering import PER_PAGE, page
from harness.judge import figures


def history_page(visitor: Visitor, person: Person, offset: int, here: str = "") -> Response:
    """Return the page of a person's submissions, newest first."""
    with visitor.site.transaction() as connection:
        found = watching.recent(connection, person=person.id, limit=PER_PAGE + 1, offset=offset)
        count, accepted, best = watching.totals(connection, person.id)
    return page(
        visitor,
        "mine.html",
        here=here,
        author=None if here else person.name,
        submissions=found[:PER_PAGE],
        changes={newer.id: (older.id, _change(older, newer)) for newer, older in pairwise(found)},
        count=count,
        accepted=accepted,
        best=best,
        offset=offset,
        more=len(found) > PER_PAGE,
    )


def _change(older: Status, newer: Status) -> str:
    """Return the change in a few words; empty where there is nothing to compare yet."""
    if older.report is None or newer.report is None:
        return ""
    if older.sha256 == newer.sha256:
        return "same file"
    if older.score and newer.score:
        return figures.change(older.score, newer.score)
    return "source"
