"""The error that a board's commands report."""

from __future__ import annotations

from harness.protocol.errors import UsageError


class StoreError(UsageError):
    """A store, a key or a report cannot be used; the message says what is wrong and what to do."""
