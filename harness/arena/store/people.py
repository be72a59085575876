"""People, and their invitations, keys and sessions. Secrets are shown once and kept as hashes."""

import hashlib
import secrets
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    RowMapping,
    Update,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from harness.arena.problems import NotPossible
from harness.arena.store.tables import invitations, keys, people, sessions
from harness.board import names

KEY_PREFIX = "arena_"
"""The beginning of every key, so that it is recognised as one wherever it turns up."""

SESSION_DAYS = 14
INVITATION_DAYS = 30
_ANIMALS = ("Badger", "Crane", "Falcon", "Heron", "Lynx", "Otter", "Puffin", "Salmon", "Walrus")
MAX_NAME = 60
MAX_NAMESAKES = 100


class Role(StrEnum):
    CONTESTANT = "contestant"
    ORGANISER = "organiser"


@dataclass(frozen=True, slots=True)
class Person:
    """A person of the arena. Login, section and extended deadline are those of a course."""

    id: int
    name: str
    role: Role
    created: datetime
    disabled: datetime | None
    """The time at which an organiser locked them out."""
    login: str | None
    section: str | None
    extended: datetime | None
    pseudonym: str

    @property
    def organises(self) -> bool:
        return self.role is Role.ORGANISER


def change(connection: Connection, statement: Update, otherwise: str) -> None:
    """Change a row. Raises NotPossible with the text `otherwise` if there is no such row."""
    if not connection.execute(statement).rowcount:
        raise NotPossible(otherwise)


class Taken(NotPossible):
    """Somebody else has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name} is taken; choose another")


def hashed(token: str) -> str:
    """Return the hash of a token. Tokens are random and long, so no salt is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


_COLUMNS = tuple(people.c[each.name] for each in fields(Person))
_EVERYBODY = select(*_COLUMNS)
_ADMITTED = _EVERYBODY.where(people.c.disabled.is_(None))


def _all(connection: Connection, query: Executable) -> list[Person]:
    rows = connection.execute(query).mappings().all()
    return [Person(**{**row, "role": Role(row["role"])}) for row in rows]


def _one(connection: Connection, query: Executable) -> Person | None:
    return next(iter(_all(connection, query)), None)


# --------------------------------------------------------------------------------------- people


def add_person(
    connection: Connection,
    name: str,
    role: Role,
    *,
    issuer: str | None = None,
    subject: str | None = None,
) -> Person:
    """Add a person. Raises NotPossible where the name is taken or not allowed."""
    name = proper_name(name)
    taken = pseudonyms(connection).values()
    pseudonym = None
    while pseudonym in (None, *taken):
        pseudonym = f"{secrets.choice(_ANIMALS)} {1000 + secrets.randbelow(9000)}"
    person = _one(
        connection,
        insert(people)
        .values(name=name, role=role, issuer=issuer, subject=subject, pseudonym=pseudonym)
        .on_conflict_do_nothing()
        .returning(*_COLUMNS),
    )
    if person is None:
        raise Taken(name)
    return person


def add_namesake(connection: Connection, name: str, role: Role, **more: Any) -> Person:
    """Add a person, with a number after the name if it is taken. Raises NotPossible.

    more: as in add_person.
    """
    name = proper_name(name)
    for number in range(1, MAX_NAMESAKES):
        numbered = name if number == 1 else f"{name[: MAX_NAME - 3]} {number}"
        with suppress(Taken):
            return add_person(connection, numbered, role, **more)
    raise Taken(name)


def proper_name(name: str) -> str:
    """Return a person's name as it is kept. Raises NotPossible where it is not allowed."""
    name = " ".join(unicodedata.normalize("NFC", name).split())
    allowed = all(each in " .'’-_" or unicodedata.category(each)[0] in "LMN" for each in name)
    if not allowed or not name[:1].isalnum() or len(name) > MAX_NAME:
        raise NotPossible(
            f"a name has 1 to {MAX_NAME} letters, digits, spaces, dots, hyphens or apostrophes, "
            "and begins with a letter or a digit"
        )
    name = names.normalised(name)
    problem = names.problem(name)
    if problem is not None:
        raise NotPossible(f"the name {name} {problem}; choose another")
    return name


def pseudonyms(connection: Connection) -> dict[str, str]:
    """Return everybody's pseudonym by their name."""
    rows = connection.execute(select(people.c.name, people.c.pseudonym))
    return {row.name: row.pseudonym for row in rows}


def by_openid(connection: Connection, issuer: str, subject: str) -> Person | None:
    """Return the person whom an OpenID provider knows by this subject. Raises NotPossible where
    they are locked out."""
    return _not_locked_out(connection, (people.c.issuer == issuer) & (people.c.subject == subject))


def _not_locked_out(connection: Connection, which: ColumnElement[bool]) -> Person | None:
    person = _one(connection, _EVERYBODY.where(which).limit(1))
    if person is not None and person.disabled is not None:
        raise NotPossible("an organiser has locked you out")
    return person


def by_id(connection: Connection, id: int) -> Person | None:
    """Return anybody, also somebody who is locked out."""
    return _one(connection, _EVERYBODY.where(people.c.id == id))


def named(connection: Connection, name: str) -> Person | None:
    return _one(connection, _ADMITTED.where(func.lower(people.c.name) == name.lower()))


def enrol(connection: Connection, person: int, login: str | None, section: str | None) -> None:
    """Keep a person's section, and the first login."""
    login_now = func.coalesce(people.c.login, login)
    section_now = func.coalesce(section, people.c.section)
    where = update(people).where(people.c.id == person)
    connection.execute(where.values(login=login_now, section=section_now))


def extend(connection: Connection, person: int, until: datetime | None) -> None:
    """Give one person a deadline of their own. Raises NotPossible."""
    statement = update(people).where(people.c.id == person).values(extended=until)
    change(connection, statement, "there is no such person")


def has_organiser(connection: Connection) -> bool:
    return bool(connection.scalar(select(func.count()).where(people.c.role == Role.ORGANISER)))


def everybody(connection: Connection) -> list[Person]:
    """Return all people by name, also those who are locked out."""
    return _all(connection, _EVERYBODY.order_by(people.c.name))


def set_disabled(connection: Connection, person: int, disabled: bool) -> None:
    """Lock a person out, or let them in: what they submitted is kept. Raises NotPossible."""
    statement = update(people).where(people.c.id == person)
    since = func.now() if disabled else None
    change(connection, statement.values(disabled=since), "there is no such person")


# ----------------------------------------------------------------------------------------- keys


def new_key(connection: Connection, person: int, label: str, days: int | None = None) -> str:
    """Return a new key; only its hash is kept. days: until it expires; None for never."""
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    connection.execute(
        insert(keys).values(
            hash=hashed(key),
            person=person,
            label=label.strip()[:60] or "key",
            expires=None if days is None else func.now() + timedelta(days=days),
        )
    )
    return key


_VALID = keys.c.revoked.is_(None), keys.c.expires.is_(None) | (keys.c.expires > func.now())


def by_key(connection: Connection, key: str) -> Person | None:
    query = _ADMITTED.join(keys, keys.c.person == people.c.id)
    return _one(connection, query.where(keys.c.hash == hashed(key), *_VALID))


def keys_of(connection: Connection, person: int) -> Sequence[RowMapping]:
    """Return the hash, label, created, expires and revoked of each of a person's keys."""
    columns = (keys.c.hash, keys.c.label, keys.c.created, keys.c.expires, keys.c.revoked)
    query = select(*columns).where(keys.c.person == person).order_by(keys.c.created)
    return connection.execute(query).mappings().all()


def revoke_key(connection: Connection, person: int, hash: str) -> bool:
    """Revoke a key of this person's, which ends the sessions that it opened."""
    done = connection.execute(
        update(keys)
        .where(keys.c.person == person, keys.c.hash == hash, keys.c.revoked.is_(None))
        .values(revoked=func.now())
    )
    return done.rowcount > 0


def reset_keys(connection: Connection, person: int, label: str) -> str:
    """End all keys and sessions of a person, and return a new key. Raises NotPossible."""
    if connection.scalar(select(people.c.id).where(people.c.id == person)) is None:
        raise NotPossible("there is no such person")
    unrevoked = keys.c.person == person, keys.c.revoked.is_(None)
    connection.execute(update(keys).where(*unrevoked).values(revoked=func.now()))
    sign_out_everywhere(connection, person)
    return new_key(connection, person, label)


# ------------------------------------------------------------------------------------- sessions


def sign_in(connection: Connection, person: int, key: str | None = None) -> str:
    """Return what the cookie holds. key: by which the person signs in, and with which it ends."""
    token = secrets.token_urlsafe(32)
    connection.execute(delete(sessions).where(sessions.c.expires < func.now()))
    connection.execute(
        insert(sessions).values(
            hash=hashed(token),
            person=person,
            key=None if key is None else hashed(key),
            expires=func.now() + timedelta(days=SESSION_DAYS),
        )
    )
    return token


def by_session(connection: Connection, token: str) -> Person | None:
    """Return the person of a session. It ends with the key by which it was opened."""
    query = _ADMITTED.join(sessions, sessions.c.person == people.c.id)
    query = query.outerjoin(keys, keys.c.hash == sessions.c.key).where(*_VALID)
    lasting = sessions.c.hash == hashed(token), sessions.c.expires > func.now()
    return _one(connection, query.where(*lasting))


def sign_out(connection: Connection, token: str) -> None:
    connection.execute(delete(sessions).where(sessions.c.hash == hashed(token)))


def sign_out_everywhere(connection: Connection, person: int) -> None:
    connection.execute(delete(sessions).where(sessions.c.person == person))


# ---------------------------------------------------------------------------------- invitations


_USABLE = select(invitations).where(invitations.c.uses_left > 0, invitations.c.expires > func.now())


@dataclass(frozen=True, slots=True)
class Listing:
    """A line of a course's roster."""

    name: str
    login: str
    section: str


def invite(
    connection: Connection,
    made_by: int,
    role: Role,
    uses: int,
    note: str,
    listing: Listing | None = None,
) -> str:
    """Return the token of a link; only its hash is kept. listing: the person whose link it is."""
    token = secrets.token_urlsafe(24)
    connection.execute(
        insert(invitations).values(
            hash=hashed(token),
            role=role,
            note=note.strip()[:200],
            **(asdict(listing) if listing else {}),
            uses_left=uses,
            made_by=made_by,
            expires=func.now() + timedelta(days=INVITATION_DAYS),
        )
    )
    return token


def invited(connection: Connection, token: str) -> Row[Any]:
    """Return the invitation of a link, a row of its table. Raises NotPossible where it is not
    valid."""
    row = connection.execute(_USABLE.where(invitations.c.hash == hashed(token))).one_or_none()
    if row is None:
        raise NotPossible(
            "this invitation is not valid: it was used up, has expired, or never existed; "
            "ask the organiser for another"
        )
    return row


def join(connection: Connection, token: str, name: str) -> Person:
    """Use an invitation. Raises NotPossible."""
    return _use(connection, invited(connection, token), name)


def by_roster(connection: Connection, login: str, issuer: str, subject: str) -> Person | None:
    """Return the person with this login in the roster, who comes through an OpenID provider from
    now on; None where the roster has no such login. Raises NotPossible where they are locked out.

    They have joined by their link before, or join now.
    """
    by_link = (func.lower(people.c.login) == login.lower()) & people.c.issuer.is_(None)
    person = _not_locked_out(connection, by_link)
    if person is None:
        query = _USABLE.where(func.lower(invitations.c.login) == login.lower())
        row = connection.execute(query.order_by(invitations.c.id).limit(1)).one_or_none()
        if row is None:
            return None
        person = _use(connection, row)
    theirs = {"issuer": issuer, "subject": subject}
    connection.execute(update(people).where(people.c.id == person.id).values(**theirs))
    return person


def _use(connection: Connection, invitation: Row[Any], name: str = "") -> Person:
    """Add the person who uses an invitation. name: where the invitation has none. Raises
    NotPossible."""
    if invitation.name is None:
        person = add_person(connection, name, Role(invitation.role))
    else:
        person = add_namesake(connection, invitation.name, Role(invitation.role))
    if invitation.login is not None:
        course = {"login": invitation.login, "section": invitation.section}
        connection.execute(update(people).where(people.c.id == person.id).values(**course))
    open = invitations.c.id == invitation.id, invitations.c.uses_left > 0
    used = update(invitations).where(*open).values(uses_left=invitations.c.uses_left - 1)
    gone = "this invitation was used up a moment ago; ask the organiser for another"
    change(connection, used, gone)
    return person


def open_invitations(connection: Connection) -> Sequence[RowMapping]:
    """Return the columns of each invitation that can be used, but the hash of its link."""
    shown = [each for each in invitations.c if each is not invitations.c.hash]
    query = _USABLE.with_only_columns(*shown).order_by(invitations.c.created, invitations.c.id)
    return connection.execute(query).mappings().all()


def end_invitation(connection: Connection, id: int) -> None:
    """End an invitation. Raises NotPossible."""
    open = invitations.c.id == id, invitations.c.uses_left > 0
    ended = update(invitations).where(*open).values(uses_left=0)
    change(connection, ended, "there is no such invitation, or it has ended already")
