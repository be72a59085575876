"""One arena, from its folder: its database made ready, its parts started and kept up."""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

from harness.arena import rules
from harness.arena.certificate import certificate
from harness.arena.crew import crew
from harness.arena.place import Place, Secrets
from harness.arena.postgres import Server, address
from harness.arena.processes import COOKIE_VARIABLE, DATABASE_VARIABLE
from harness.arena.store import people, roles
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.arena.store.preparing import prepare
from harness.arena.supervisor import Part
from harness.arena.sweeper import LEASE_SECONDS
from harness.protocol.errors import UsageError

FIRST_ORGANISER = "organiser"


@dataclass(frozen=True, slots=True)
class Settings:
    """How an arena is run, apart from its rules.

    root: the path under which a proxy serves it.
    proxy: whose word about a visitor's address is taken; empty where there is no proxy.
    lease: seconds without a sign of life after which a worker is taken for dead.
    listen: host and port at which workers of other machines are let in.
    """

    host: str = "127.0.0.1"
    port: int = 8040
    root: str = ""
    secure: bool = False
    proxy: str = ""
    workers: int | None = None
    lease: float = LEASE_SECONDS
    listen: tuple[str, int] | None = None

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


@contextmanager
def alone_in(place: Place) -> Iterator[None]:
    """One arena a folder. Raises UsageError where another runs there."""
    with open(place.running, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"an arena runs in {place.folder} already; stop it first") from None
        yield


def is_running(place: Place) -> bool:
    """Whether an arena runs there now."""
    try:
        with alone_in(place):
            return False
    except UsageError:
        return True


@contextmanager
def database(
    place: Place, url: URL | None = None, *, fresh: bool = False, quick: bool = False
) -> Iterator[tuple[URL, Server | None]]:
    """The database's address as its owner: somebody else's, or one of our own, made ready.

    fresh: without a table, for a backup to be restored into. quick: how it judges.
    """
    secrets = place.secrets()
    if url is not None:
        if not fresh:
            prepare(url, secrets, quick)
        yield url, None
        return
    server = Server(place.database, secrets.owner)
    try:
        server.keep_up()
        if not fresh:
            prepare(server.url, secrets, quick)
        yield server.url, server
    finally:
        server.stop()


@contextmanager
def reached(place: Place, url: URL | None) -> Iterator[URL]:
    """The database of an arena, as its owner: one that runs, or else started for the while."""
    if url is not None:
        yield url
        return
    if is_running(place):
        yield address(place.database, place.secrets().owner)
        return
    with alone_in(place), database(place) as (owner, _):
        yield owner


def first_key(owner: URL) -> str | None:
    """The organiser's key, if there was no organiser yet."""
    engine = open_engine(owner, connections=1)
    try:
        with engine.begin() as connection:
            if people.has_organiser(connection):
                return None
            person = people.add_person(connection, FIRST_ORGANISER, Role.ORGANISER)
            return people.new_key(connection, person.id, "first start")
    finally:
        engine.dispose()


def parts(owner: URL, secrets: Secrets, place: Place, settings: Settings) -> list[Part]:
    """Its processes, each with the database's address in its own role."""
    quick = ["--quick"] if rules.read(place.rules).quick else []
    as_web = {DATABASE_VARIABLE: _text(roles.web(owner, secrets))}
    files = ["--rules", str(place.rules), "--signing-key", str(place.signing_key)]
    web = [
        *("--host", settings.host),
        *("--port", str(settings.port)),
        *("--root", settings.root),
        *files,
        *("--proxy", settings.proxy),
        *(["--secure"] if settings.secure else []),
        *(_gate_of(place, settings.listen[1]) if settings.listen else []),
    ]
    return [
        Part(
            "web",
            "harness.arena.web.server",
            web,
            as_web | {COOKIE_VARIABLE: secrets.cookies},
        ),
        Part(
            "sweeper",
            "harness.arena.sweeper",
            ["--lease", str(settings.lease), *quick],
            as_web,
        ),
        *([_gate(owner, secrets, place, *settings.listen)] if settings.listen else []),
        *crew(_text(roles.worker(owner, secrets)), "auto", settings.workers, quick),
    ]


def _gate_of(place: Place, port: int) -> list[str]:
    """What the pages make keys with."""
    return ["--gate-port", str(port), "--certificate", str(place.certificate)]


def _gate(owner: URL, secrets: Secrets, place: Place, host: str, port: int) -> Part:
    """Where workers of other machines come in."""
    certificate(place.certificate)
    arguments = ["--host", host, "--port", str(port), "--certificate", str(place.certificate)]
    address = roles.worker(owner, secrets).set(password=None)
    return Part("gate", "harness.arena.gate", arguments, {DATABASE_VARIABLE: _text(address)})


def check_ports(settings: Settings) -> None:
    """Raises UsageError where an address is taken or is none."""
    places = [((settings.host, settings.port), "--host and --port")]
    if settings.listen is not None:
        places.append((settings.listen, "--listen"))
    for (host, port), options in places:
        try:
            with socket.create_server((host, port), reuse_port=False):
                pass
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port}: {error.strerror}; name another with {options}"
            ) from None


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def folder(path: Path) -> Place:
    """Raises UsageError where it cannot be used."""
    try:
        return Place(path)
    except OSError as error:
        raise UsageError(f"{path} cannot hold an arena: {error.strerror}") from None
