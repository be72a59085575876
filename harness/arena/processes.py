"""What every process of the arena does: it ends with the one that started it."""

from __future__ import annotations

import os
import sys
import threading
from enum import IntEnum

DATABASE_VARIABLE = "MATMUL_ARENA_DATABASE"
"""Holds the database's address, in the role that the process has."""

CREW_VARIABLE = "MATMUL_ARENA_CREW"
"""Names the supervisor that started a worker: a fresh UUID."""

COOKIE_VARIABLE = "MATMUL_ARENA_COOKIES"

NICENESS = 5
"""Of what grades and what ranks: on a machine that is short of processors, pages come first."""


class End(IntEnum):
    """The exit code of a part that is not to be started again."""

    DRAINED = 3
    """A worker has ended after what it had in hand, as it was told."""
    REFUSED = 4
    """The arena does not take this worker; the last line of its log says why."""


def end_with_parent() -> None:
    """The parent holds the other end of our standard input: when it is gone, so are we."""

    def wait() -> None:
        # Past the buffer, whose lock Python asks for when it ends: it would abort then.
        while os.read(sys.stdin.fileno(), 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()
