"""The error of the PTX parser."""

from typing import Self


class PtxError(Exception):
    """Something in the PTX that the parser does not know or support.

    `line` is the line of the user's source (0 if unknown), `instruction` the PTX text or "".
    """

    def __init__(self, reason: str, instruction: str = "", line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instruction = instruction
        self.line = line

    def at(self, instruction: str, line: int) -> Self:
        """Return the same error with its position, unless it already has one."""
        if self.instruction:
            return self
        return type(self)(self.reason, instruction, line)
