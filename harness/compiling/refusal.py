"""Why a submission does not compile."""

from __future__ import annotations

from harness.compiling import diagnostics
from harness.report import CompileError, Diagnostic, RuntimeFault, Stage


class Refused(Exception):
    """Why a submission does not compile."""

    def __init__(self, outcome: CompileError | RuntimeFault) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def refuse(message: str, *found: Diagnostic) -> Refused:
    return Refused(CompileError(stage=Stage.COMPILE, message=message, diagnostics=found))


def refuse_for(errors: tuple[Diagnostic, ...], log: str) -> Refused:
    """The first error says what is wrong."""
    if not errors:
        errors = (Diagnostic(severity="error", message=diagnostics.last_line(log)),)
    first = errors[0]
    where = f"line {first.line}: " if first.line else ""
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return refuse(f"{where}{first.message}{more}", *errors)
