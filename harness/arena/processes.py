"""What every process of the arena does: it ends with the one that started it."""

from __future__ import annotations

import os
import sys
import threading

DATABASE_VARIABLE = "MATMUL_ARENA_DATABASE"
"""Holds the database's address, in the role that the process has."""

COOKIE_VARIABLE = "MATMUL_ARENA_COOKIES"


def end_with_parent() -> None:
    """The parent holds the other end of our standard input: when it is gone, so are we."""

    def wait() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()
