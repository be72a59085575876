"""How many threads are worth having for work that all cores can share."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Cores that this process may use: fewer than the machine has where others have their own."""
    return len(os.sched_getaffinity(0))
