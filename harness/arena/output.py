"""Where the arena's commands write: the command line has a terminal that fits."""

from __future__ import annotations

from typing import Protocol


class Output(Protocol):
    """Shows lines to whoever started the command."""

    def show(self, *lines: str) -> None:
        """Write the command's answer."""

    def note(self, text: str) -> None:
        """Write beside the answer."""
