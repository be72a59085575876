"""An arena in its folder: run it until Ctrl-C, or make keys in its database."""

import fcntl
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection

from harness.arena import rules
from harness.arena.data_dir import DataDir
from harness.arena.postgres import Server, address
from harness.arena.problems import NotPossible
from harness.arena.processes import DATABASE_VARIABLE, Settings
from harness.arena.store import contest, people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.arena.store.preparing import prepare
from harness.arena.store.workers import new_machine
from harness.arena.supervisor import Part, Supervisor, workers
from harness.protocol.errors import UsageError

START_SECONDS = 60.0
FIRST_ORGANISER = "organiser"

Show = Callable[[str], None]
"""Shows a line to the person at the terminal."""


def serve(
    data_dir: DataDir, url: URL | None, settings: Settings, count: int | None, show: Show
) -> None:
    """Run the arena until it is stopped. count: of workers. Raises UsageError."""
    with alone_in(data_dir):
        check_port(settings)
        rules.read(data_dir.rules)  # so that a mistake is said before the start
        with database(data_dir, url) as (owner, server):
            first = first_key(owner, show)
            supervisor = Supervisor(
                server, parts(owner, data_dir.secrets().worker, settings, count)
            )
            signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
            signal.signal(signal.SIGINT, lambda *_: supervisor.stop())
            supervisor.run(lambda: _show_address(settings, first, show))


def first_key(owner: URL, show: Show) -> bool:
    """Make the first organiser and show the key, if there is no organiser. Return whether one was
    made.

    The key is shown before the transaction ends. After a kill in between, the next start shows
    another key.
    """
    with _connected(owner) as connection:
        if people.has_organiser(connection):
            return False
        person = people.add_person(connection, FIRST_ORGANISER, Role.ORGANISER)
        show(f"The organiser's key is {people.new_key(connection, person.id, 'first start')}")
        show(
            "It is shown this once: the arena keeps only its hash. To get another one, run "
            f"`nox -s arena -- key --for {FIRST_ORGANISER}`."
        )
        return True


def _show_address(settings: Settings, first: bool, show: Show) -> None:
    """Show the arena's address once the arena answers."""
    deadline = time.monotonic() + START_SECONDS
    while not _answers(f"{settings.address}/healthz"):
        if time.monotonic() > deadline:
            show(f"No worker has begun within {START_SECONDS:.0f} s; the log may say why.")
            break
        time.sleep(0.1)
    show(f"The arena is at {settings.address}{settings.root}/")
    if not first:
        show("Sign in with your key, as before.")


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def new_key(data_dir: DataDir, url: URL | None, name: str, keep: Show) -> None:
    """Make a new key for somebody who has lost theirs. Raises NotPossible or UsageError.

    keep: is called with the key before it is valid.
    """
    with _transaction(data_dir, url) as connection:
        person = people.named(connection, name)
        if person is None:
            raise NotPossible(f"there is no person called {name}")
        keep(people.new_key(connection, person.id, "made on the arena's machine"))
        contest.note(connection, None, "new key", person.name)


def new_worker_key(data_dir: DataDir, url: URL | None, name: str, keep: Show) -> None:
    """Make a worker key for a machine. Raises NotPossible or UsageError. keep: as for new_key."""
    with _transaction(data_dir, url) as connection:
        keep(new_machine(connection, name))
        contest.note(connection, None, "new worker key", name)


@contextmanager
def _transaction(data_dir: DataDir, url: URL | None) -> Iterator[Connection]:
    """Open a transaction in an arena's database, whether it runs or not. Raises UsageError."""
    if url is None and not data_dir.holds_an_arena:
        raise UsageError(f"there is no arena in {data_dir.folder}; name its folder with --data")
    with reached(data_dir, url) as owner, _connected(owner) as connection:
        yield connection


@contextmanager
def _connected(owner: URL) -> Iterator[Connection]:
    engine = open_engine(owner, connections=1)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def alone_in(data_dir: DataDir) -> Iterator[None]:
    """Lock the folder of an arena. Raises UsageError where another arena runs there."""
    data_dir.make()
    with open(data_dir.running, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"an arena runs in {data_dir.folder} already; stop it first") from None
        yield


def is_running(data_dir: DataDir) -> bool:
    """Return whether an arena runs there now."""
    try:
        with alone_in(data_dir):
            return False
    except UsageError:
        return True


@contextmanager
def database(data_dir: DataDir, url: URL | None = None) -> Iterator[tuple[URL, Server | None]]:
    """Prepare an external database, or start the arena's own; yield its address and its server."""
    secrets = data_dir.secrets()
    if url is not None:
        data_dir.close_to_others()
        prepare(url, secrets)
        yield url, None
        return
    server = Server(data_dir.database, secrets.owner)
    data_dir.close_to_others(server.user)
    try:
        server.keep_up()
        prepare(server.url, secrets)
        yield server.url, server
    finally:
        server.stop()


@contextmanager
def reached(data_dir: DataDir, url: URL | None) -> Iterator[URL]:
    """Yield the address of an arena's database, which is started if it does not run."""
    if url is not None:
        yield url
    elif is_running(data_dir):
        yield address(data_dir.database, data_dir.secrets().owner)
    else:
        with alone_in(data_dir), database(data_dir) as (owner, _):
            yield owner


def parts(owner: URL, worker_key: str, settings: Settings, count: int | None) -> list[Part]:
    """Return the arena's processes. Only the web service knows the database's address.

    count: of workers; by default one for each GPU, or one.
    """
    environment = {DATABASE_VARIABLE: owner.render_as_string(hide_password=False)}
    return [
        Part("web", "harness.arena.web.server", [settings.model_dump_json()], environment),
        *workers(settings.address, worker_key, "auto", count),
    ]


def check_port(settings: Settings) -> None:
    """Raises UsageError where nothing can listen on the address."""
    try:
        with socket.create_server((settings.host, settings.port), reuse_port=False):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while ")[0]
        raise UsageError(
            f"cannot listen on {settings.host}:{settings.port}: {reason}; name another "
            "with --host and --port"
        ) from None
