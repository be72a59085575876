"""Waiting for conditions that other processes and threads bring about."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0
"""The seconds to wait before a test fails. A busy machine may need most of them."""


def eventually(ask: Callable[[], T], what: str) -> T:
    """Wait for the first true answer and return it.

    The condition must last, as it is checked only from time to time.
    """
    deadline = time.monotonic() + PATIENCE
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:g} s"
        time.sleep(0.02)
    return answer
