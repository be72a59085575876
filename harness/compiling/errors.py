"""What is wrong with a source before it is compiled."""

from __future__ import annotations

from harness.protocol.report import Diagnostic


class SourceError(Exception):
    """The source cannot be a submission; says where and what to do."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(severity="error", message=message, line=line, column=column)
