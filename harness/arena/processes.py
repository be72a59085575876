"""Settings and functions that the processes of an arena share."""

import os
import sys
import threading
from enum import IntEnum
from pathlib import Path

from harness.protocol.errors import UsageError
from harness.protocol.report import Value

DATABASE_VARIABLE = "MATMUL_ARENA_DATABASE"
"""Holds the database's address, which only the web process and the renderer know."""

ADDRESS_VARIABLE = "MATMUL_ARENA_ADDRESS"
"""Holds the address at which a worker reaches its arena."""

SUPERVISOR_VARIABLE = "MATMUL_ARENA_SUPERVISOR"
"""Names the supervisor that started a worker: a fresh UUID."""

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The address at which this machine reaches a server that listens on all addresses."""

NICENESS = 5
"""The niceness of workers and of the renderer, so that the web process answers pages first."""


class Settings(Value):
    """The settings of the web service: the one argument of its process, as JSON."""

    data: Path
    """The arena's folder."""
    host: str = "127.0.0.1"
    port: int = 8040
    root: str = ""
    """The path under which a proxy serves it: "" or "/arena"."""
    secure: bool = False
    """People reach it by https alone."""
    proxy: str = ""
    """The address of the proxy whose X-Forwarded-For is trusted; empty without one."""

    @property
    def address(self) -> str:
        """The address at which this machine reaches the arena."""
        host = ANY_ADDRESS.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


class ServerFailed(UsageError):
    """PostgreSQL does not start; the text is what it said last."""


class End(IntEnum):
    """The exit code of a part that is not to be started again."""

    DRAINED = 3
    """A worker was drained: it has finished its tasks."""
    REFUSED = 4
    """The arena does not take this worker; the last line of its log says why."""


def end_with_parent() -> None:
    """End this process when its parent does: the parent holds the other end of standard input."""

    def wait() -> None:
        # Past the buffer, whose lock Python asks for when it ends: it would abort then.
        while os.read(sys.stdin.fileno(), 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()
