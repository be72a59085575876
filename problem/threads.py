"""The number of cores that this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Return the number of cores that this process may use. Others may be reserved for other
    processes."""
    return len(os.sched_getaffinity(0))
