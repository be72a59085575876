"""Starting an arena from its folder: prepare its database, and list its processes."""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL

from harness.arena.data_dir import DataDir, Secrets
from harness.arena.postgres import Server, address
from harness.arena.processes import COOKIE_VARIABLE, DATABASE_VARIABLE, Settings
from harness.arena.store.preparing import prepare
from harness.arena.supervisor import Part, workers
from harness.protocol.errors import UsageError


@contextmanager
def alone_in(data_dir: DataDir) -> Iterator[None]:
    """Lock the folder of an arena. Raises UsageError where another arena runs there."""
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


def parts(owner: URL, secrets: Secrets, settings: Settings, count: int | None) -> list[Part]:
    """Return the arena's processes. Only the web service knows the database's address.

    count: of workers; by default one for each GPU, or one.
    """
    environment = {
        DATABASE_VARIABLE: owner.render_as_string(hide_password=False),
        COOKIE_VARIABLE: secrets.cookies,
    }
    return [
        Part("web", "harness.arena.web.server", [settings.model_dump_json()], environment),
        *workers(settings.address, secrets.worker, "auto", count, settings.quick),
    ]


def check_port(settings: Settings) -> None:
    """Raises UsageError where nothing can listen on the address."""
    try:
        with socket.create_server((settings.host, settings.port), reuse_port=False):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; name another "
            "with --host and --port"
        ) from None
