"""The organiser's pages and forms: people, course, workers, submissions, rejudgings."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, PlainTextResponse
from sqlalchemy import Connection

from harness.arena.problems import NotPossible, Problem
from harness.arena.rules import FIRST, LAST
from harness.arena.store import contest, course, people, watching, workers
from harness.arena.store.course import Result
from harness.arena.store.people import Role
from harness.arena.web.context import PRIVATE, OrganisersChange, ThisOrganiser, Visitor, now
from harness.arena.web.pages import history_page
from harness.arena.web.rendering import PER_PAGE, page

router = APIRouter(prefix="/organiser", include_in_schema=False)

Text = Annotated[str, Form(max_length=2000)]
Submission = Annotated[str, Form(pattern=r"^[0-9a-f]{16}$")]
Number = Annotated[int, Form(ge=0, le=2**62)]


Offset = Annotated[int, Query(ge=0, le=1_000_000)]


def shown(visitor: Visitor, template: str, found: Mapping[str, Any], **more: Any) -> Response:
    """Return a page for a person who has signed in; without the page, what was found for a program,
    which comes with a key."""
    if visitor.session is None:
        return JSONResponse(jsonable_encoder(found), headers=PRIVATE)
    return page(visitor, template, here="organiser", **found, **more)


@router.get("")
def overview(request: Request, visitor: ThisOrganiser) -> Response:
    site, rules = visitor.site, visitor.rules
    with site.transaction() as connection:
        found = {
            "rules_problem": site.rules_file.problem,
            "closed": rules.closed(now()),
            "frozen": rules.frozen(now()),
            "thawed": rules.thawed,
            "states": watching.counts_by_state(connection),
            "workers": workers.all_workers(connection),
            "machines": workers.machines(connection),
            "rejudgings": contest.rejudgings(connection),
        }
        return shown(
            visitor,
            "organiser.html",
            found,
            typical=watching.typical_seconds(connection, otherwise=0),
            oldest=watching.oldest_waiting(connection),
            gpu=rules.gpu,
            rules_file=site.data_dir.rules,
            address=str(request.base_url).rstrip("/"),
        )


@router.get("/submissions")
def everybodys_submissions(
    visitor: ThisOrganiser, find: Annotated[str, Query(max_length=100)] = "", offset: Offset = 0
) -> Response:
    with visitor.site.transaction() as connection:
        found = watching.recent(connection, find=find, limit=PER_PAGE + 1, offset=offset)
    if visitor.session is None:
        return JSONResponse(jsonable_encoder(found[:PER_PAGE]), headers=PRIVATE)
    return page(
        visitor,
        "organiser_submissions.html",
        here="organiser",
        submissions=found[:PER_PAGE],
        find=find,
        offset=offset,
        more=len(found) > PER_PAGE,
    )


@router.get("/people")
def everybody(visitor: ThisOrganiser) -> Response:
    with visitor.site.transaction() as connection:
        return _people(visitor, connection)


def _people(
    visitor: Visitor, connection: Connection, link: str | None = None, key: str | None = None
) -> Response:
    found: dict[str, object] = {
        "link": link,
        "key": key,
        "everybody": people.everybody(connection),
        "invitations": people.open_invitations(connection),
    }
    pseudonyms = visitor.rules.pseudonyms
    return shown(visitor, "organiser_people.html", found, pseudonyms=pseudonyms)


@router.get("/audit")
def audit_log(visitor: ThisOrganiser, offset: Offset = 0) -> Response:
    with visitor.site.transaction() as connection:
        lines = contest.audit_log(connection, limit=PER_PAGE + 1, offset=offset)
    return shown(
        visitor,
        "organiser_audit.html",
        {"audit": lines[:PER_PAGE]},
        offset=offset,
        more=len(lines) > PER_PAGE,
    )


# ------------------------------------------------------------------------------- people


@router.post("/invite")
def invite(
    request: Request,
    change: OrganisersChange,
    role: Annotated[Role, Form()] = Role.CONTESTANT,
    uses: Annotated[int, Form(ge=1, le=1000)] = 1,
    note: Text = "",
) -> Response:
    link = people.invite(change.connection, change.person.id, role, uses, note)
    change.note("invite", note[:100], role=role, uses=uses)
    address = str(request.url_for("join_form", link=link))
    return _people(change.visitor, change.connection, link=address)


@router.post("/invitations/end")
def end_invitation(change: OrganisersChange, id: Number) -> Response:
    people.end_invitation(change.connection, id)
    change.note("end invitation", str(id))
    return change.to("organiser/people")


@router.post("/people")
def set_disabled(
    change: OrganisersChange, id: Number, disabled: Annotated[bool, Form()] = False
) -> Response:
    if id == change.person.id:
        raise NotPossible("you cannot lock yourself out")
    people.set_disabled(change.connection, id, disabled)
    change.note("lock out" if disabled else "let in", str(id))
    return change.to("organiser/people")


@router.post("/people/key")
def reset_key(change: OrganisersChange, id: Number) -> Response:
    """Make a new key for somebody who has lost theirs, and end all earlier ones."""
    key = people.reset_keys(change.connection, id, "made by an organiser")
    change.note("reset key", str(id))
    return _people(change.visitor, change.connection, key=key)


@router.get("/people/{id}")
def history(visitor: ThisOrganiser, id: int, offset: Offset = 0) -> Response:
    """Show everything that one person has submitted."""
    with visitor.site.transaction() as connection:
        person = people.by_id(connection, id)
    if person is None:
        raise Problem(404, "There is nobody with this number.")
    return history_page(visitor, person, offset)


# ------------------------------------------------------------------------------- course


@router.post("/roster")
def import_roster(
    request: Request,
    change: OrganisersChange,
    roster: Annotated[str, Form(max_length=1_000_000)] = "",
) -> Response:
    """Make a personal link for each line of the roster, as CSV. The arena keeps no copy."""
    links = course.import_roster(change.connection, change.person, course.read_roster(roster))
    change.note("import roster", str(len(links)))
    rows = ((*astuple(each), str(request.url_for("join_form", link=link))) for each, link in links)
    return _file("links.csv", course.as_csv((*course.COLUMNS, "link"), rows), "text/csv")


@router.get("/gradebook.csv")
def gradebook(visitor: ThisOrganiser) -> Response:
    with visitor.site.transaction() as connection:
        found = course.gradebook(connection, visitor.rules)
    head = tuple(each.name for each in fields(Result))
    return _file("gradebook.csv", course.as_csv(head, map(astuple, found)), "text/csv")


def _file(name: str, content: str, kind: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', **PRIVATE}
    return PlainTextResponse(content, headers=headers, media_type=kind)


@router.post("/people/extend")
def extend(change: OrganisersChange, id: Number, until: Text = "") -> Response:
    """Set one person's own deadline, in UTC; an empty one ends it."""
    people.extend(change.connection, id, _moment(until))
    change.note("extend", str(id), until=until)
    return change.to("organiser/people")


def _moment(text: str) -> datetime | None:
    """Raises NotPossible."""
    if not text.strip():
        return None
    with suppress(ValueError):
        found = datetime.fromisoformat(text.strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        if FIRST <= found <= LAST:
            return found
    raise NotPossible(f"write a time as 2026-12-19T18:00, not as {text[:40]!r}")


@router.post("/thaw")
def thaw(change: OrganisersChange) -> Response:
    """Show everybody the board as it is now."""
    frozen_from = change.site.rules.frozen_from
    if frozen_from is None:
        raise NotPossible("the rules do not freeze the board")
    change.note("thaw", str(frozen_from))
    change.site.rules_file.thaw()
    return change.to("organiser")


# ------------------------------------------------------------------------------ workers


@router.post("/workers/drain")
def drain(change: OrganisersChange, id: Text = "") -> Response:
    """Let a worker end after its current tasks."""
    workers.drain(change.connection, change.person, id)
    return change.to("organiser")


@router.post("/workers/keys")
def new_worker_key(change: OrganisersChange, name: Text = "") -> Response:
    """Make a worker key, as a file. The arena keeps no copy."""
    key = workers.new_machine(change.connection, name)
    change.note("new worker key", name)
    file = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "machine"
    return _file(f"{file}.key", f"{key}\n", "text/plain")


@router.post("/workers/keys/revoke")
def revoke_worker_key(change: OrganisersChange, id: Number) -> Response:
    workers.revoke(change.connection, change.person, id)
    return change.to("organiser")


# -------------------------------------------------------------------------- submissions


@router.post("/disqualify")
def disqualify(change: OrganisersChange, id: Submission, reason: Text = "") -> Response:
    contest.disqualify(change.connection, change.person, id, reason)
    return change.to(f"submissions/{id}")


@router.post("/reinstate")
def reinstate(change: OrganisersChange, id: Submission) -> Response:
    contest.reinstate(change.connection, change.person, id)
    return change.to(f"submissions/{id}")


@router.post("/rejudge")
def rejudge(
    change: OrganisersChange,
    which: Annotated[Literal["chosen", "all"], Form()],
    ids: Annotated[list[Submission] | None, Form(max_length=PER_PAGE)] = None,
    reason: Text = "",
) -> Response:
    """Queue the chosen submissions, or all that count, once more."""
    chosen = contest.counting_submissions(change.connection) if which == "all" else ids
    if not chosen:
        raise NotPossible("choose the submissions that are to be graded again")
    contest.rejudge(change.connection, change.person, chosen, reason)
    return change.to("organiser")


@router.get("/rejudgings/{id}")
def rejudging(visitor: ThisOrganiser, id: int) -> Response:
    """Show the changes that a rejudging would make."""
    with visitor.site.transaction() as connection:
        found = next(iter(contest.rejudgings(connection, id)), None)
        if found is None:
            raise Problem(404, "There is no such rejudging.")
        changes = contest.changes(connection, id)
    return shown(visitor, "rejudging.html", {"rejudging": found, "changes": changes})


@router.post("/rejudgings/{id}/{what}")
def decide(change: OrganisersChange, id: int, what: Literal["apply", "drop"]) -> Response:
    actions = {"apply": contest.apply_rejudging, "drop": contest.drop_rejudging}
    actions[what](change.connection, change.person, id)
    return change.to("organiser")
