"""Signing in and out, joining by invitation, one's own keys."""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse
from sqlalchemy import Connection

from harness.arena.problems import INVALID_KEY, NotPossible, Problem
from harness.arena.store import contest, people
from harness.arena.store.people import Role
from harness.arena.web.context import Change, OwnChange, Site, ThisVisitor, Visitor
from harness.arena.web.guard import COOKIE
from harness.arena.web.rendering import page

router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form(max_length=200)]


def with_session(site: Site, answer: Response, token: str) -> Response:
    """Set the session's cookie, which scripts cannot read and other sites' forms do not send."""
    answer.set_cookie(
        COOKIE,
        token,
        max_age=people.SESSION_DAYS * 86400,
        path=f"{site.root}/",
        secure=site.settings.secure,
        httponly=True,
        samesite="lax",
    )
    return answer


@router.get("/account")
def account(visitor: ThisVisitor) -> Response:
    if visitor.person is None:
        openid = visitor.rules.openid
        return page(visitor, "signin.html", here="account", problem=None, openid=openid)
    with visitor.site.transaction() as connection:
        return _account(visitor, connection)


def _account(visitor: Visitor, connection: Connection, new_key: str | None = None) -> HTMLResponse:
    return page(
        visitor,
        "account.html",
        here="account",
        keys=people.keys_of(connection, visitor.signed_in.id),
        new_key=new_key,
        shown_as=visitor.shown_as,
    )


@router.post("/signin")
def sign_in(request: Request, visitor: ThisVisitor, key: Text = "") -> Response:
    with visitor.site.transaction() as connection:
        person = people.by_key(connection, key.strip())
        token = people.sign_in(connection, person.id, key.strip()) if person else ""
        action = "sign in" if person else "sign-in refused"
        address = request.client.host if request.client else ""
        contest.note(connection, person, action, person.name if person else address)
    if person is None:
        raise Problem(401, INVALID_KEY)
    return with_session(visitor.site, visitor.site.to("submit"), token)


@router.post("/signout")
def sign_out(change: OwnChange) -> Response:
    people.sign_out(change.connection, change.visitor.session or "")
    return _signed_out(change, "")


@router.post("/signout/everywhere")
def sign_out_everywhere(change: OwnChange) -> Response:
    """End all sessions of this person; keys stay valid."""
    people.sign_out_everywhere(change.connection, change.person.id)
    change.note("sign out everywhere", change.person.name)
    return _signed_out(change, "account")


def _signed_out(change: Change, page: str) -> Response:
    answer = change.to(page)
    answer.delete_cookie(COOKIE, path=f"{change.site.root}/")
    return answer


@router.post("/account/keys")
def make_key(
    change: OwnChange, label: Text = "", days: Annotated[int, Form(ge=0, le=3650)] = 0
) -> Response:
    """days: until it expires; 0 for never."""
    key = people.new_key(change.connection, change.person.id, label, days or None)
    change.note("new key", change.person.name, label=label)
    return _account(change.visitor, change.connection, key)


@router.post("/account/keys/revoke")
def revoke_key(change: OwnChange, hash: Text = "") -> Response:
    if not people.revoke_key(change.connection, change.person.id, hash):
        raise Problem(404, "You have no such key.")
    change.note("revoke key", change.person.name)
    return change.to("account")


@router.get("/join/{link}")
def join_form(visitor: ThisVisitor, link: str) -> Response:
    return _join(visitor, link)


def _join(visitor: Visitor, link: str, name: str = "", problem: str | None = None) -> HTMLResponse:
    with visitor.site.transaction() as connection:
        try:
            invitation = people.invited(connection, link)
        except NotPossible as error:
            raise Problem(404, str(error)) from None
    return page(
        visitor,
        "join.html",
        here="account",
        organises=invitation.role == Role.ORGANISER,
        pseudonyms=visitor.rules.pseudonyms,
        name=name,
        invited=invitation.name,
        problem=problem,
        status=422 if problem else 200,
    )


@router.post("/join/{link}")
def join(visitor: ThisVisitor, link: str, name: Text = "") -> Response:
    site = visitor.site
    try:
        with site.transaction() as connection:
            person = people.join(connection, link, name)
            key = people.new_key(connection, person.id, "first key")
            session = people.sign_in(connection, person.id, key)
            contest.note(connection, person, "join", person.name, role=person.role)
            answer = _account(Visitor(site, person, session), connection, key)
    except NotPossible as error:
        return _join(visitor, link, name, error.detail)
    return with_session(site, answer, session)
