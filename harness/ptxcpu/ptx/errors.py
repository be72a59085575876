"""How a reader of PTX says that it cannot go on."""

from __future__ import annotations

from typing import Self


class PtxError(Exception):
    """Something in PTX that its reader does not know or does not support.

    `line` is the line of the user's source (0 if unknown), `instruction` the PTX text or "".
    """

    def __init__(self, reason: str, instruction: str = "", line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instruction = instruction
        self.line = line

    def at(self, instruction: str, line: int) -> Self:
        """The same error with its place, unless it already has one."""
        if self.instruction:
            return self
        return type(self)(self.reason, instruction, line)
