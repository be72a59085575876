"""Signing in through an OpenID provider, with Authlib.

Authlib is imported at the first use, because that takes as long as all other modules together.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request, Response
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from harness.arena.problems import NotPossible, Problem
from harness.arena.rules import OpenId
from harness.arena.store import contest, people
from harness.arena.store.people import Person, Role
from harness.arena.web.context import Site, ThisSite
from harness.arena.web.people import with_session

router = APIRouter(prefix="/openid", include_in_schema=False)

NAMES = ("preferred_username", "name", "nickname", "email")
"""The claims that may give a person's name, the best first."""


@router.get("/begin")
async def begin(request: Request, site: ThisSite) -> Response:
    from authlib.integrations.base_client import OAuthError
    from httpx import HTTPError

    provider = _provider(site)
    try:
        answer: Response = await _client(provider).authorize_redirect(
            request, str(request.url_for("back"))
        )
    except (HTTPError, OAuthError, ValueError):
        raise _away(provider) from None
    return answer


@router.get("/back")
async def back(request: Request, site: ThisSite) -> Response:
    """Exchange and check the code with which the provider sends people back."""
    from authlib.integrations.base_client import OAuthError
    from httpx import HTTPError

    provider = _provider(site)
    client = _client(provider)
    try:
        token = await client.authorize_access_token(request)
        claims: Mapping[str, Any] = token.get("userinfo") or {}
        wanted = {*provider.require, provider.login, provider.section or "sub"}
        if not wanted <= claims.keys() and "userinfo_endpoint" in client.server_metadata:
            more = await client.userinfo(token=token)  # some tokens name the subject alone
            claims = {**more, **claims} if more.get("sub") == claims.get("sub") else claims
    except HTTPError:
        raise _away(provider) from None
    except (OAuthError, ValueError, KeyError):
        raise Problem(403, "The provider did not confirm your sign-in; begin again.") from None
    session = await run_in_threadpool(_let_in, site, provider, claims)
    request.session.clear()
    return with_session(site, site.to("submit"), session)


def _let_in(site: Site, provider: OpenId, claims: Mapping[str, Any]) -> str:
    for claim, wanted in provider.require.items():
        said = claims.get(claim)
        if wanted != said and not (isinstance(said, list) and wanted in said):
            raise Problem(403, f"This arena is for people with the {claim} {wanted}.")
    subject = str(claims.get("sub") or "")
    if not subject:
        raise Problem(403, "The provider did not say who you are.")
    login, section = _place_in_course(provider, claims)
    with site.transaction() as connection:
        person = people.by_openid(connection, provider.issuer, subject)
        if person is None:
            if login is not None:
                person = people.by_roster(connection, login, provider.issuer, subject)
            person = person or _add(connection, provider, subject, claims)
            contest.note(connection, person, "join", person.name, issuer=provider.issuer)
        people.enrol(connection, person.id, login, section)
        contest.note(connection, person, "sign in", person.name, issuer=provider.issuer)
        return people.sign_in(connection, person.id)


def _place_in_course(provider: OpenId, claims: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return a person's login in the roster, and their section, as far as the claims say them."""
    login = claims.get(provider.login)
    if provider.login == "email" and claims.get("email_verified") in (False, "false"):
        login = None
    section = claims.get(provider.section or "")
    if isinstance(section, list):
        section = next(iter(section), None)
    return str(login) if login else None, str(section) if section else None


def _add(
    connection: Connection, provider: OpenId, subject: str, claims: Mapping[str, Any]
) -> Person:
    """Add a person under the name that the provider gives, or with a number after it."""
    said = [str(claims[name]).partition("@")[0] for name in NAMES if claims.get(name)]
    for name in [*said, "contestant"]:
        with suppress(NotPossible):
            return people.add_namesake(
                connection, name, Role.CONTESTANT, issuer=provider.issuer, subject=subject
            )
    raise Problem(409, "No name is left for you; ask the organiser for an invitation.")


def _provider(site: Site) -> OpenId:
    if site.rules.openid is None:
        raise Problem(404, "This arena has no OpenID provider.")
    return site.rules.openid


def _away(provider: OpenId) -> Problem:
    return Problem(502, f"{provider.title} does not answer; try again later.")


def _client(provider: OpenId) -> Any:
    return _registered(provider.issuer, provider.client_id, provider.client_secret)


@lru_cache(maxsize=4)
def _registered(issuer: str, client_id: str, client_secret: str) -> Any:
    from authlib.integrations.starlette_client import OAuth

    return OAuth().register(
        "provider",
        client_id=client_id,
        client_secret=client_secret,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256"},
    )
