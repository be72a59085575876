"""What `harness arena` does: start everything, say where it is, and keep it up until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import time
import urllib.error
import urllib.request

from sqlalchemy import URL

from harness.arena import rules
from harness.arena.arena import (
    Settings,
    alone_in,
    check_ports,
    database,
    first_key,
    folder,
    parts,
    reached,
)
from harness.arena.backup import backup, restore
from harness.arena.certificate import certificate
from harness.arena.logs import log_as
from harness.arena.machines import new_key
from harness.arena.place import Place
from harness.arena.postgres import ServerFailed
from harness.arena.rules import RulesError
from harness.arena.store.database import address, open_engine
from harness.arena.store.preparing import DatabaseError
from harness.arena.supervisor import Supervisor
from harness.arena.worker_key import WorkerKey
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError

START_SECONDS = 60.0


def run(arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Raises UsageError where it cannot be done."""
    place = folder(arguments.data)
    url = _url(arguments.database)
    log_as("arena")
    try:
        if arguments.what == "run":
            _serve(arguments, place, url, terminal)
            terminal.note("The arena has ended; what was handed in is kept.")
        elif arguments.what == "backup":
            backup(place, url, arguments.file)
            terminal.note(f"{arguments.file} has everything; keep it where nobody else reads it.")
        elif arguments.what == "worker-key":
            _worker_key(arguments, place, url).write(arguments.file)
            terminal.note(
                f"{arguments.file} is the key of {arguments.name}: copy it there, and start "
                f"`python3 -m harness worker --arena {arguments.file.name}`"
            )
        else:
            restore(place, url, arguments.file)
            terminal.note(f"{place.folder} is the arena of {arguments.file} now; start it.")
    except (DatabaseError, ServerFailed, RulesError) as error:
        raise UsageError(str(error)) from None


def _worker_key(arguments: argparse.Namespace, place: Place, url: URL | None) -> WorkerKey:
    """Of one machine. Raises UsageError or DatabaseError."""
    if url is None and arguments.address is None:
        raise UsageError("name with --address where that machine reaches what --listen says")
    with reached(place, url) as owner:
        engine = open_engine(owner, connections=1)
        try:
            with engine.begin() as connection:
                known_by = certificate(place.certificate) if url is None else None
                return new_key(connection, owner, arguments.name, arguments.address, known_by)
        finally:
            engine.dispose()


def _serve(
    arguments: argparse.Namespace, place: Place, url: URL | None, terminal: Terminal
) -> None:
    """Until it is stopped."""
    settings = Settings(
        host=arguments.host,
        port=arguments.port,
        root=arguments.root,
        secure=arguments.https,
        proxy=arguments.proxy,
        workers=arguments.workers,
        lease=arguments.lease,
        listen=arguments.listen,
    )
    if settings.listen is not None and url is not None:
        raise UsageError(
            "--listen is for the arena's own database; one that --database names is reached "
            "where it listens by itself"
        )
    quick = rules.read(place.rules).quick
    with alone_in(place):
        check_ports(settings)
        with database(place, url, quick=quick) as (owner, server):
            key = first_key(owner)
            supervisor = Supervisor(server, parts(owner, place.secrets(), place, settings))
            signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
            signal.signal(signal.SIGINT, lambda *_: supervisor.stop())
            supervisor.run(lambda: _greet(terminal, settings, key))


def _greet(terminal: Terminal, settings: Settings, key: str | None) -> None:
    """Once it answers."""
    deadline = time.monotonic() + START_SECONDS
    while not _answers(f"{settings.address}/healthz"):
        if time.monotonic() > deadline:
            terminal.note(f"No worker has begun within {START_SECONDS:.0f} s; its log says why.")
            break
        time.sleep(0.1)
    terminal.show(f"The arena is at {settings.address}{settings.root}/")
    if key is None:
        terminal.show("Sign in with your key, as before.")
    else:
        terminal.show(
            f"The organiser's key is {key}", "It is shown this once: the arena keeps its hash only."
        )


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
