"""Stores of both kinds, for the tests of what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.cli.commands._stores import key_of, open_store

if TYPE_CHECKING:
    from harness.board.store import Store

KINDS = ("file", "arena")


class Where(NamedTuple):
    """The path of a store that a test may create."""

    path: Path

    @property
    def key(self) -> Path:
        """The file of the key that it signs with."""
        return key_of(self.path)

    def open(self, create: bool = True) -> AbstractContextManager[Store]:
        return open_store(self.path, create)


New = Callable[[str], Where]
"""A function that returns a new place for a store of this kind."""
