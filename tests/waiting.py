"""Waits for what other processes and threads bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0
"""For what never comes. A machine that does other things, too, may take most of it."""


def eventually(ask: Callable[[], T], what: str) -> T:
    """The first answer that is true. What is asked for must last: nobody looks at every moment."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:g} s"
        time.sleep(0.02)
    return answer
