"""The organiser's page, and everything that it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from sqlalchemy import Connection

from harness.arena.store import contest, gradings, people, workers
from harness.arena.store.people import NotPossible, Person, Role
from harness.arena.web.api import SubmissionStatus
from harness.arena.web.context import (
    PRIVATE,
    Site,
    ThisOrganiser,
    ThisSite,
    ThisVisitor,
    Visitor,
    now,
)
from harness.arena.web.pages import sign_in_first
from harness.arena.web.problems import Problem
from harness.arena.web.rendering import PER_PAGE, page

router = APIRouter(prefix="/organiser", include_in_schema=False)

Text = Annotated[str, Form(max_length=2000)]
Submission = Annotated[str, Form(pattern=r"^[0-9a-f]{16}$")]
Number = Annotated[int, Form(ge=0, le=2**62)]


Offset = Annotated[int, Query(ge=0, le=1_000_000)]


def shown(
    site: Site, template: str, visitor: Visitor, found: Mapping[str, Any], **more: Any
) -> Response:
    """Return a page for a person who has signed in; without the page, what was found for a program,
    which comes with a key."""
    if visitor.session is None:
        return JSONResponse(jsonable_encoder(found), headers=PRIVATE)
    return page(site, template, here="organiser", visitor=visitor, **found, **more)


@router.get("")
def overview(request: Request, site: ThisSite, visitor: ThisVisitor) -> Response:
    if visitor.person is None:
        return sign_in_first(site, visitor)
    visitor.check_organiser()
    rules = site.rules
    with site.transaction() as connection:
        found = {
            "rules_problem": site.rules_file.problem,
            "closed": rules.closed(now()),
            "frozen": rules.frozen(now()),
            "thawed": rules.thawed,
            "states": gradings.counts_by_state(connection),
            "workers": workers.all_workers(connection),
            "machines": workers.machines(connection),
            "rejudgings": contest.rejudgings(connection),
            "announcements": contest.announced(connection),
        }
        return shown(
            site,
            "organiser.html",
            visitor,
            found,
            typical=gradings.typical_seconds(connection, otherwise=0),
            oldest=gradings.oldest_waiting(connection),
            gpu=rules.gpu,
            rules_file=site.rules_file.path,
            address=str(request.base_url).rstrip("/"),
        )


@router.get("/submissions")
def everybodys_submissions(
    site: ThisSite,
    visitor: ThisOrganiser,
    find: Annotated[str, Query(max_length=100)] = "",
    offset: Offset = 0,
) -> Response:
    with site.transaction() as connection:
        found = gradings.recent(connection, find=find, limit=PER_PAGE + 1, offset=offset)
    if visitor.session is None:
        statuses = map(SubmissionStatus.of, found[:PER_PAGE])
        return JSONResponse(jsonable_encoder(list(statuses)), headers=PRIVATE)
    return page(
        site,
        "organiser_submissions.html",
        here="organiser",
        visitor=visitor,
        submissions=found[:PER_PAGE],
        find=find,
        offset=offset,
        more=len(found) > PER_PAGE,
        per_page=PER_PAGE,
    )


@router.get("/people")
def everybody(site: ThisSite, visitor: ThisOrganiser) -> Response:
    return _people(site, visitor)


def _people(
    site: Site, visitor: Visitor, link: str | None = None, key: str | None = None
) -> Response:
    with site.transaction() as connection:
        found: dict[str, object] = {
            "link": link,
            "key": key,
            "everybody": people.everybody(connection),
            "invitations": people.open_invitations(connection),
        }
    return shown(site, "organiser_people.html", visitor, found, pseudonyms=site.rules.pseudonyms)


@router.get("/audit")
def audit_log(site: ThisSite, visitor: ThisOrganiser, offset: Offset = 0) -> Response:
    with site.transaction() as connection:
        lines = contest.audit_log(connection, limit=PER_PAGE + 1, offset=offset)
    return shown(
        site,
        "organiser_audit.html",
        visitor,
        {"audit": lines[:PER_PAGE]},
        offset=offset,
        more=len(lines) > PER_PAGE,
        per_page=PER_PAGE,
    )


def do(
    site: Site,
    visitor: Visitor,
    token: str,
    what: Callable[[Connection, Person], object],
    back: str = "organiser",
) -> Response:
    """Do something as an organiser, in one transaction, then redirect to a page.

    Raises Problem where the visitor may not, or the form is not ours.
    """
    visitor.check(token)
    actor = visitor.organiser
    with site.transaction() as connection:
        what(connection, actor)
    return RedirectResponse(f"{site.root}/{back}", 303)


@router.post("/invite")
def invite(
    request: Request,
    site: ThisSite,
    visitor: ThisVisitor,
    token: Text = "",
    role: Annotated[Role, Form()] = Role.CONTESTANT,
    uses: Annotated[int, Form(ge=1, le=1000)] = 1,
    note: Text = "",
) -> Response:
    visitor.check(token)
    actor = visitor.organiser
    with site.transaction() as connection:
        link = people.invite(connection, actor.id, role, uses, note)
        contest.note(connection, actor, "invite", note[:100], role=role, uses=uses)
    return _people(site, visitor, link=str(request.url_for("join_form", link=link)))


@router.post("/invitations/end")
def end_invitation(
    site: ThisSite, visitor: ThisVisitor, token: Text = "", id: Number = 0
) -> Response:
    def end(connection: Connection, actor: Person) -> None:
        people.end_invitation(connection, id)
        contest.note(connection, actor, "end invitation", str(id))

    return do(site, visitor, token, end, "organiser/people")


@router.post("/people")
def set_disabled(
    site: ThisSite,
    visitor: ThisVisitor,
    token: Text = "",
    id: Number = 0,
    disabled: Annotated[bool, Form()] = False,
) -> Response:
    def set_it(connection: Connection, actor: Person) -> None:
        if id == actor.id:
            raise NotPossible("you cannot lock yourself out")
        people.set_disabled(connection, id, disabled)
        contest.note(connection, actor, "lock out" if disabled else "let in", str(id))

    return do(site, visitor, token, set_it, "organiser/people")


@router.post("/people/key")
def reset_key(site: ThisSite, visitor: ThisVisitor, token: Text = "", id: Number = 0) -> Response:
    """A new key for somebody who has lost theirs; all earlier ones end."""
    visitor.check(token)
    actor = visitor.organiser
    with site.transaction() as connection:
        key = people.reset_keys(connection, id, "made by an organiser")
        contest.note(connection, actor, "reset key", str(id))
    return _people(site, visitor, key=key)


@router.post("/workers")
def tell_worker(
    site: ThisSite, visitor: ThisVisitor, token: Text = "", id: Text = "", what: Text = ""
) -> Response:
    """Set a GPU aside, take it back, or let its worker end."""

    def tell(connection: Connection, actor: Person) -> None:
        if what == "drain":
            workers.drain(connection, actor, id)
        elif what == "set aside":
            workers.set_aside(connection, actor, id, True)
        elif what == "take back":
            workers.set_aside(connection, actor, id, False)
        else:
            raise NotPossible("a worker is drained, set aside or taken back")

    return do(site, visitor, token, tell)


@router.post("/workers/keys")
def new_worker_key(
    site: ThisSite, visitor: ThisVisitor, token: Text = "", name: Text = ""
) -> Response:
    """A worker key, as a file: the arena keeps no copy."""
    visitor.check(token)
    actor = visitor.organiser
    with site.transaction() as connection:
        key = workers.new_machine(connection, name)
        contest.note(connection, actor, "new worker key", name)
    file = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "machine"
    headers = {
        "Content-Disposition": f'attachment; filename="{file}.key"',
        **PRIVATE,
    }
    return PlainTextResponse(f"{key}\n", headers=headers)


@router.post("/workers/keys/revoke")
def revoke_worker_key(
    site: ThisSite, visitor: ThisVisitor, token: Text = "", id: Number = 0
) -> Response:
    return do(site, visitor, token, lambda link, actor: workers.revoke(link, actor, id))


@router.post("/disqualify")
def disqualify(
    site: ThisSite, visitor: ThisVisitor, id: Submission, token: Text = "", reason: Text = ""
) -> Response:
    def change(connection: Connection, actor: Person) -> None:
        contest.disqualify(connection, actor, id, reason)

    return do(site, visitor, token, change, f"submissions/{id}")


@router.post("/reinstate")
def reinstate(site: ThisSite, visitor: ThisVisitor, id: Submission, token: Text = "") -> Response:
    def change(connection: Connection, actor: Person) -> None:
        contest.reinstate(connection, actor, id)

    return do(site, visitor, token, change, f"submissions/{id}")


@router.post("/announce")
def announce(site: ThisSite, visitor: ThisVisitor, token: Text = "", text: Text = "") -> Response:
    return do(site, visitor, token, lambda link, actor: contest.announce(link, actor, text))


@router.post("/announcements/remove")
def remove_announcement(
    site: ThisSite, visitor: ThisVisitor, token: Text = "", id: Number = 0
) -> Response:
    return do(
        site, visitor, token, lambda link, actor: contest.remove_announcement(link, actor, id)
    )


@router.post("/rejudge")
def rejudge(
    site: ThisSite,
    visitor: ThisVisitor,
    which: Annotated[Literal["chosen", "all"], Form()],
    ids: Annotated[list[Submission] | None, Form(max_length=PER_PAGE)] = None,
    token: Text = "",
    reason: Text = "",
) -> Response:
    """Queue the chosen submissions, or all that count, once more."""

    def queue(connection: Connection, actor: Person) -> None:
        chosen = contest.counting_submissions(connection) if which == "all" else ids
        if not chosen:
            raise NotPossible("choose the submissions that are to be graded again")
        contest.rejudge(connection, actor, chosen, reason)

    return do(site, visitor, token, queue)


@router.get("/rejudgings/{id}")
def rejudging(site: ThisSite, visitor: ThisOrganiser, id: int) -> Response:
    """Show the changes that a rejudging would make."""
    with site.transaction() as connection:
        found = next(iter(contest.rejudgings(connection, id)), None)
        if found is None:
            raise Problem(404, "There is no such rejudging.")
        changes = contest.changes(connection, id)
    return shown(site, "rejudging.html", visitor, {"rejudging": found, "changes": changes})


@router.post("/rejudgings/{id}/{what}")
def decide(site: ThisSite, visitor: ThisVisitor, id: int, what: str, token: Text = "") -> Response:
    deeds = {"apply": contest.apply_rejudging, "drop": contest.drop_rejudging}
    if what not in deeds:
        raise Problem(404, "There is nothing at this address.")
    return do(site, visitor, token, lambda link, actor: deeds[what](link, actor, id))
