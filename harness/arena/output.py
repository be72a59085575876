"""The interface through which the arena's commands write to the terminal."""

from __future__ import annotations

from typing import Protocol


class Output(Protocol):
    """Shows lines to the person who started the command."""

    def show(self, *lines: str) -> None:
        """Write the command's answer."""

    def note(self, text: str) -> None:
        """Write a remark, on standard error."""
