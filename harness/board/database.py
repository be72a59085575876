"""What a store asks of the database that it is over, whichever that is."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection


class Database(Protocol):
    """Open, with the board's tables of today's version.

    Whatever goes wrong inside of `reading` and `writing` is a StoreError that says so.
    """

    @property
    def name(self) -> str:
        """As people call it."""

    @property
    def key(self) -> Path | None:
        """The file of the key that signs what is graded here; it need not exist. None where a
        database does not say."""

    def reading(self) -> AbstractContextManager[Connection]:
        """One transaction."""

    def writing(self) -> AbstractContextManager[Connection]:
        """One transaction, alone: committed at its end, and nothing of it kept where it fails."""

    def check(self) -> None:
        """Read everything. Raises StoreError where anything is damaged."""

    def damaged(self, reason: str) -> str:
        """The sentence for a database that is."""

    def close(self) -> None: ...
