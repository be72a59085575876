"""The organiser's routes for a course: roster, deadlines, freeze, gradebook, histories."""

from __future__ import annotations

from dataclasses import astuple, fields
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import StringConstraints
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from harness.arena import similar
from harness.arena.store import contest, course, people
from harness.arena.store.course import Result
from harness.arena.store.people import NotPossible, Person
from harness.arena.web.context import PRIVATE, Site, ThisOrganiser, ThisSite, ThisVisitor
from harness.arena.web.history import history_page
from harness.arena.web.organiser import Number, Offset, Text, do
from harness.arena.web.problems import Problem, unknown_submission
from harness.arena.web.renderer import Renderer
from harness.arena.web.rendering import page
from problem import starter

router = APIRouter(prefix="/organiser", include_in_schema=False)


@router.post("/roster")
def import_roster(
    request: Request,
    site: ThisSite,
    visitor: ThisVisitor,
    token: Text = "",
    roster: Annotated[str, Form(max_length=1_000_000)] = "",
) -> Response:
    """A personal link for each line of the roster, as CSV: the arena keeps no copy."""
    visitor.check(token)
    actor = visitor.organiser
    with site.transaction() as connection:
        links = course.import_roster(connection, actor, course.read_roster(roster))
        contest.note(connection, actor, "import roster", str(len(links)))
    rows = ((*astuple(each), str(request.url_for("join_form", link=link))) for each, link in links)
    return _csv("links.csv", course.as_csv((*course.COLUMNS, "link"), rows))


@router.get("/gradebook.csv")
def gradebook(site: ThisSite, _: ThisOrganiser) -> Response:
    with site.transaction() as connection:
        found = course.gradebook(connection, site.rules)
    head = tuple(each.name for each in fields(Result))
    return _csv("gradebook.csv", course.as_csv(head, map(astuple, found)))


@router.post("/people/extend")
def extend(
    site: ThisSite, visitor: ThisVisitor, token: Text = "", id: Number = 0, until: Text = ""
) -> Response:
    """A deadline of one person's own, in UTC; none where it is left empty."""

    def change(connection: Connection, actor: Person) -> None:
        people.extend(connection, id, _moment(until))
        contest.note(connection, actor, "extend", str(id), until=until)

    return do(site, visitor, token, change, "organiser/people")


def _moment(text: str) -> datetime | None:
    """Raises NotPossible."""
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise NotPossible(f"write a time as 2026-12-19T18:00, not as {text[:40]!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@router.post("/thaw")
def thaw(site: ThisSite, visitor: ThisVisitor, token: Text = "") -> Response:
    """Show everybody the board as it is now."""

    def change(connection: Connection, actor: Person) -> None:
        if site.rules.frozen_from is None:
            raise NotPossible("the rules freeze no board")
        contest.note(connection, actor, "thaw", str(site.rules.frozen_from))
        site.rules_file.thaw()

    return do(site, visitor, token, change)


@router.get("/people/{id}")
def history(site: ThisSite, visitor: ThisOrganiser, id: int, offset: Offset = 0) -> Response:
    """Everything that one person has submitted."""
    with site.transaction() as connection:
        person = people.by_id(connection, id)
    if person is None:
        raise Problem(404, "There is nobody with this number.")
    return history_page(site, visitor, person, offset)


@router.get("/similar")
async def similar_kernels(
    request: Request,
    site: ThisSite,
    visitor: ThisOrganiser,
    of: Annotated[list[Annotated[str, StringConstraints(max_length=64)]] | None, Query()] = None,
) -> Response:
    """Show the kernels of different people that are nearly the same, or two of them side by side.

    They are compared in another process.
    """
    renderer: Renderer = request.app.state.comparisons
    kernels = await run_in_threadpool(_kernels, site, of)
    pairs: list[similar.Pair] = []
    rows: list[similar.Row] = []
    if of is None:
        pairs = await renderer.call(partial(similar.pairs, kernels, starter.text()))
    elif len(kernels) == 2:
        a, b = kernels
        rows = await renderer.call(partial(similar.side_by_side, a.text, b.text))
    else:
        raise unknown_submission()
    return await run_in_threadpool(
        partial(page, site, "organiser_similar.html", here="organiser", visitor=visitor),
        pairs=pairs,
        rows=rows,
        kernels=kernels,
        shortest=similar.SHORTEST,
        of_a_person=course.MAX_OF_A_PERSON,
    )


def _kernels(site: Site, ids: list[str] | None) -> list[similar.Kernel]:
    """Return the kernels with these ids, or all that are compared."""
    with site.transaction() as connection:
        found = course.kernels(connection, ids)
    known = [*similar.solutions(), *found]
    return known if ids is None else [each for id in ids for each in known if each.id == id]


def _csv(name: str, content: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        **PRIVATE,
    }
    return PlainTextResponse(content, headers=headers, media_type="text/csv")
