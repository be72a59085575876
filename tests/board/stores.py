"""Stores of every kind, for the tests of what all kinds have in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.cli.commands._stores import Address, open_store

if TYPE_CHECKING:
    from harness.board.store import Store

KINDS = ("sqlite", "postgresql")


class Where(NamedTuple):
    """The address of a store that a test may create, and the file of the key that it signs with."""

    address: Address
    key: Path

    def open(self, create: bool = True) -> AbstractContextManager[Store]:
        return open_store(self.address, create, self.key)


New = Callable[[str], Where]
"""A function that returns a new address and key file for a store of this kind."""
