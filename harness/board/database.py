"""The interface of the databases in which a store can be."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection


class Database(Protocol):
    """An open database with the board's tables of today's version.

    Whatever goes wrong inside of `reading` and `writing` is a StoreError that says so.
    """

    @property
    def name(self) -> str:
        """The name by which messages call the database."""

    @property
    def key(self) -> Path | None:
        """The file of the board's own key, which need not exist; None where none is known."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a transaction that reads."""

    def writing(self) -> AbstractContextManager[Connection]:
        """Open an exclusive transaction that is committed at its end, and undone where it fails."""

    def check(self) -> None:
        """Check the whole database. Raises StoreError where anything is damaged."""

    def damaged(self, reason: str) -> str:
        """Return the sentence for a damaged database."""

    def close(self) -> None: ...
