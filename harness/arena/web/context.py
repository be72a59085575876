"""The context of a request: the database, the rules, and the visitor."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Self

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.exc import DataError, DBAPIError, OperationalError, TimeoutError
from starlette.concurrency import run_in_threadpool

from harness.arena.data_dir import DataDir
from harness.arena.problems import INVALID_KEY, Problem, database_unavailable
from harness.arena.processes import Settings
from harness.arena.rules import Rules, RulesFile
from harness.arena.store import contest, people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Person
from harness.arena.store.watching import Status
from harness.arena.web.guard import COOKIE
from harness.board.document import Document

log = logging.getLogger(__name__)

PRIVATE = {"Cache-Control": "no-store"}
"""Headers of answers that only this visitor may see, and no proxy may cache."""


@dataclass(frozen=True, slots=True)
class Site:
    engine: Engine
    data_dir: DataDir
    rules_file: RulesFile
    settings: Settings

    @classmethod
    def opened(cls, settings: str, database: str, connections: int) -> Self:
        """Open the arena. settings: as JSON. database: its address, with the password."""
        given = Settings.model_validate_json(settings)
        data_dir = DataDir(given.data)
        return cls(
            engine=open_engine(make_url(database), connections),
            data_dir=data_dir,
            rules_file=RulesFile(data_dir.rules),
            settings=given,
        )

    @property
    def rules(self) -> Rules:
        return self.rules_file.now

    @property
    def root(self) -> str:
        """The path under which a proxy serves it: "" or "/arena"."""
        return self.settings.root

    def signed(self, document: Document, author: str) -> Document:
        """Return a stored report with the arena's signature.

        One that names its author by a pseudonym is not signed, so that one run gives one result
        that others can verify.
        """
        submission = document.report.submission
        if author != submission.author:
            renamed = submission.model_copy(update={"author": author})
            return Document.of(document.report.model_copy(update={"submission": renamed}))
        return document.signed_by(self.data_dir.signing_key)

    def to(self, path: str) -> RedirectResponse:
        """Send the browser to this page."""
        return RedirectResponse(f"{self.root}/{path}", 303)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction. Raises Problem where the database does not answer."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except TimeoutError:
            raise database_unavailable() from None
        except DataError:
            raise Problem(
                400, "The request has a character or a number that cannot be stored."
            ) from None
        except OperationalError as error:
            log.error("the database failed: %s", error.orig)
            raise database_unavailable(str(error.orig)) from None
        except DBAPIError as error:
            if error.connection_invalidated:
                raise database_unavailable(str(error.orig)) from None
            raise


@dataclass(frozen=True, slots=True)
class Visitor:
    """The sender of a request, and how they have identified themselves."""

    site: Site
    person: Person | None
    session: str | None = None
    """The content of their cookie; None if they came with a key."""

    @property
    def rules(self) -> Rules:
        return self.site.rules

    @property
    def signed_in(self) -> Person:
        if self.person is None:
            raise Problem(401, "Sign in first.")
        return self.person

    @property
    def organises(self) -> bool:
        return self.person is not None and self.person.organises

    def check_organiser(self) -> None:
        """Raises Problem for everybody else."""
        if not self.signed_in.organises:
            raise Problem(403, "This is for organisers.")

    def owns(self, status: Status) -> bool:
        """Return whether the visitor submitted it or is an organiser."""
        return self.organises or (self.person is not None and self.person.id == status.person)

    def reads(self, status: Status) -> bool:
        """Return whether they may read a submission's source and report."""
        return self.owns(status) or (status.disqualified is None and self._sources_open)

    @property
    def reads_imported(self) -> bool:
        """Return whether they may read imported reports."""
        return self.organises or self._sources_open

    @property
    def _sources_open(self) -> bool:
        return self.rules.sources_open(now())

    def shown(self, status: Status) -> Status:
        """Return a status with the name of its author as this visitor may know it."""
        if self.rules.pseudonyms and not self.owns(status):
            return status.model_copy(update={"author": status.pseudonym})
        return status

    @property
    def shown_as(self) -> str | None:
        """Their pseudonym, where the boards name them by it."""
        hidden = self.rules.pseudonyms and self.person is not None and not self.organises
        return self.person.pseudonym if hidden and self.person else None


def now() -> datetime:
    return datetime.now(UTC)


async def site(request: Request) -> Site:
    found: Site = request.app.state.site
    return found


async def visitor(request: Request, site: Annotated[Site, Depends(site)]) -> Visitor:
    """Identify the visitor by a key in a header or a session's cookie. Raises Problem."""
    if "authorization" in request.headers or COOKIE in request.cookies:
        return await run_in_threadpool(_known, request, site)
    return Visitor(site, None)


def bearer_key(request: Request) -> str:
    """Return the key in a request's header. Raises Problem."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Problem(401, "Write the header as: Authorization: Bearer YOUR_KEY.")
    return key.strip()


def _known(request: Request, site: Site) -> Visitor:
    if "authorization" in request.headers:
        key = bearer_key(request)
        with site.transaction() as connection:
            person = people.by_key(connection, key)
        if person is None:
            raise Problem(401, INVALID_KEY)
        return Visitor(site, person)
    session = request.cookies.get(COOKIE)
    if not session:
        return Visitor(site, None)
    with site.transaction() as connection:
        return Visitor(site, people.by_session(connection, session), session)


ThisSite = Annotated[Site, Depends(site)]
ThisVisitor = Annotated[Visitor, Depends(visitor)]


async def organiser(visitor: ThisVisitor) -> Visitor:
    """Raises Problem for everybody else."""
    visitor.check_organiser()
    return visitor


ThisOrganiser = Annotated[Visitor, Depends(organiser)]
"""A visitor who is an organiser; others are refused."""


@dataclass(frozen=True, slots=True)
class Change:
    """A form that changes something, in one transaction that ends before the answer is sent."""

    visitor: Visitor
    person: Person
    connection: Connection

    @property
    def site(self) -> Site:
        return self.visitor.site

    def note(self, action: str, subject: str, **details: object) -> None:
        """Write a line of the audit log."""
        contest.note(self.connection, self.person, action, subject, **details)

    def to(self, page: str) -> RedirectResponse:
        return self.site.to(page)


def own_change(visitor: ThisVisitor) -> Iterator[Change]:
    """Raises Problem for strangers."""
    person = visitor.signed_in
    with visitor.site.transaction() as connection:
        yield Change(visitor, person, connection)


OwnChange = Annotated[Change, Depends(own_change, scope="function")]


def organisers_change(change: OwnChange) -> Change:
    """Raises Problem for everybody but organisers."""
    change.visitor.check_organiser()
    return change


OrganisersChange = Annotated[Change, Depends(organisers_change, scope="function")]
