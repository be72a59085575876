"""The command `harness arena`: run an arena until Ctrl-C, back it up, make keys."""

from __future__ import annotations

import argparse
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine

from harness.arena import rules
from harness.arena.arena import alone_in, check_port, database, parts, reached
from harness.arena.backup import backup, restore
from harness.arena.data_dir import DataDir
from harness.arena.logs import Output, log_as
from harness.arena.problems import NotPossible
from harness.arena.processes import Settings
from harness.arena.store import contest, people, workers
from harness.arena.store.database import address, open_engine
from harness.arena.store.people import Role
from harness.arena.supervisor import Supervisor
from harness.protocol.errors import UsageError

START_SECONDS = 60.0
FIRST_ORGANISER = "organiser"


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Raises UsageError where it cannot be done."""
    data_dir = DataDir(arguments.data)
    url = _url(arguments.database)
    log_as("arena")
    try:
        if arguments.what == "run":
            _serve(arguments, data_dir, url, output)
            output.note("The arena has ended; all submissions are kept.")
        elif arguments.what == "backup":
            backup(data_dir, url, arguments.file)
            output.note(f"{arguments.file} contains the whole arena; let nobody else read it.")
        elif arguments.what == "restore":
            restore(data_dir, url, arguments.file)
            output.note(f"{data_dir.folder} is the arena of {arguments.file} now; start it.")
        elif arguments.what == "key":
            _new_key(data_dir, url, arguments.name, output)
        else:
            _new_worker_key(data_dir, url, arguments.name, arguments.file, output)
    except NotPossible as error:
        raise UsageError(str(error)) from None


def _new_key(data_dir: DataDir, url: URL | None, name: str, output: Output) -> None:
    """Print a new key for somebody who has lost theirs. It is shown before it is valid."""
    with _transaction(data_dir, url) as connection:
        person = people.named(connection, name)
        if person is None:
            raise NotPossible(f"there is no person called {name}")
        key = people.new_key(connection, person.id, "made on the arena's machine")
        contest.note(connection, None, "new key", person.name)
        output.show(f"The key of {person.name} is {key}")


def _new_worker_key(
    data_dir: DataDir, url: URL | None, name: str, file: Path | None, output: Output
) -> None:
    with _transaction(data_dir, url) as connection:
        key = workers.new_machine(connection, name)
        contest.note(connection, None, "new worker key", name)
        if file is None:
            output.show(f"The worker key of {name} is {key}")
        else:
            _write_private(file, key)
            output.note(f"{file} holds the worker key of {name}: copy it to that machine")


def _write_private(path: Path, key: str) -> None:
    """Raises UsageError where there is a file already."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"there is a file {path} already; name another") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"{key}\n")


@contextmanager
def _transaction(data_dir: DataDir, url: URL | None) -> Iterator[Connection]:
    """Open a transaction in an arena's database, whether it runs or not. Raises UsageError."""
    if url is None and not data_dir.holds_an_arena:
        raise UsageError(f"there is no arena in {data_dir.folder}; name its folder with --data")
    with reached(data_dir, url) as owner, _engine(owner) as engine, engine.begin() as connection:
        yield connection


@contextmanager
def _engine(owner: URL) -> Iterator[Engine]:
    engine = open_engine(owner, connections=1)
    try:
        yield engine
    finally:
        engine.dispose()


def _serve(
    arguments: argparse.Namespace, data_dir: DataDir, url: URL | None, output: Output
) -> None:
    """Run the arena until it is stopped."""
    settings = Settings(
        rules=data_dir.rules,
        signing_key=data_dir.signing_key,
        quick=rules.read(data_dir.rules).quick,
        secure=arguments.https,
        **{name: getattr(arguments, name) for name in ("host", "port", "root", "proxy", "lease")},
    )
    with alone_in(data_dir):
        check_port(settings)
        with database(data_dir, url) as (owner, server):
            first = first_key(owner, output)
            processes = parts(owner, data_dir.secrets(), settings, arguments.workers)
            supervisor = Supervisor(server, processes)
            signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
            signal.signal(signal.SIGINT, lambda *_: supervisor.stop())
            supervisor.run(lambda: _show_address(output, settings, first))


def first_key(owner: URL, output: Output) -> bool:
    """Make the first organiser and show the key, if there is no organiser. Return whether one was
    made.

    The key is shown before the transaction ends. After a kill in between, the next start shows
    another key.
    """
    with _engine(owner) as engine, engine.begin() as connection:
        if people.has_organiser(connection):
            return False
        person = people.add_person(connection, FIRST_ORGANISER, Role.ORGANISER)
        key = people.new_key(connection, person.id, "first start")
        output.show(
            f"The organiser's key is {key}",
            "It is shown this once: the arena keeps only its hash. To get another one, run "
            f"`nox -s arena -- key --for {FIRST_ORGANISER}`.",
        )
        return True


def _show_address(output: Output, settings: Settings, first: bool) -> None:
    """Show the arena's address once the arena answers."""
    deadline = time.monotonic() + START_SECONDS
    while not _answers(f"{settings.address}/healthz"):
        if time.monotonic() > deadline:
            output.note(f"No worker has begun within {START_SECONDS:.0f} s; the log may say why.")
            break
        time.sleep(0.1)
    output.show(f"The arena is at {settings.address}{settings.root}/")
    if not first:
        output.show("Sign in with your key, as before.")


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _url(text: str | None) -> URL | None:
    if text is None:
        return None
    url = address(text)
    if url is None:
        raise UsageError("--database takes postgresql://OWNER:PASSWORD@HOST/DATABASE")
    return url
