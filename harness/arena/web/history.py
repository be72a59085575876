"""The history of a person: every attempt, its score, and what changed since the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from fastapi import Response

from harness.arena.store import gradings
from harness.arena.store.gradings import Status
from harness.arena.store.people import Person
from harness.arena.web.context import Visitor
from harness.arena.web.rendering import PER_PAGE, page
from harness.judge import figures

WIDTH, HEIGHT, MARGIN = 640, 120, 6
"""The size of the plot and its margin, in units of the picture."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Scores in the order of the attempts, in the coordinates of a picture."""

    points: list[tuple[float, ...]]
    best: list[tuple[float, ...]]
    """The line of the best score so far."""
    top: float
    """The best of all."""


def history_page(visitor: Visitor, person: Person, offset: int, here: str = "") -> Response:
    """Return the page of a person's submissions, newest first."""
    with visitor.site.reading() as connection:
        found = gradings.recent(connection, person=person.id, limit=PER_PAGE + 1, offset=offset)
        results = gradings.results(connection, person.id)
    scores = [each.score for each in results if each.score is not None]
    return page(
        visitor,
        "mine.html",
        here=here,
        author=None if here else person.name,
        submissions=found[:PER_PAGE],
        changes={newer.id: (older.id, _change(older, newer)) for newer, older in pairwise(found)},
        count=len(results),
        accepted=sum(each.verdict == "accepted" for each in results),
        best=max(scores, default=None),
        plot=_plot(scores) if len(scores) > 1 else None,
        width=WIDTH,
        height=HEIGHT,
        margin=MARGIN,
        offset=offset,
        more=len(found) > PER_PAGE,
        per_page=PER_PAGE,
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


def _plot(scores: Sequence[float]) -> Plot:
    top = max(scores)

    def place(number: float, score: float) -> tuple[float, ...]:
        across, down = number / (len(scores) - 1), 1 - score / top
        return tuple(
            round(MARGIN + share * (size - 2 * MARGIN), 1)
            for share, size in ((across, WIDTH), (down, HEIGHT))
        )

    best = list(accumulate(scores, max))
    steps = [(number, best[max(number - 1, 0)]) for number in range(len(best))]
    line = [place(*each) for pair in zip(steps, enumerate(best), strict=True) for each in pair]
    return Plot([place(*each) for each in enumerate(scores)], line, top)
