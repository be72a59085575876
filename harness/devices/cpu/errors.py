"""How the device says that it cannot run something: never the submission's fault."""

from __future__ import annotations


class CannotTranslate(Exception):
    """This device does not support an instruction, or refuses a size.

    `line` is the line of the user's source (0 if unknown), `instruction` the PTX text or "".
    """

    def __init__(self, reason: str, instruction: str = "", line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instruction = instruction
        self.line = line

    def at(self, instruction: str, line: int) -> CannotTranslate:
        """The same refusal with its place, unless it already has one."""
        if self.instruction:
            return self
        return CannotTranslate(self.reason, instruction, line)
