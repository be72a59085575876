"""Mistakes in a submission, found in its source or by the compiler."""

from harness.protocol.report import CompileError, Diagnostic, RuntimeFault, Stage, Unsupported


class Refused(Exception):
    """The submission does not compile. The outcome says why."""

    def __init__(self, outcome: CompileError | RuntimeFault | Unsupported) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class SourceError(Refused):
    """The source cannot be a submission. The message gives the position and advice."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.diagnostic = Diagnostic(severity="error", message=message, line=line, column=column)
        found = (self.diagnostic,)
        super().__init__(CompileError(stage=Stage.READ, message=message, diagnostics=found))


def refuse(message: str, *found: Diagnostic) -> Refused:
    return Refused(CompileError(stage=Stage.COMPILE, message=message, diagnostics=found))


def refuse_launch(message: str) -> Refused:
    """Refuse a kernel that compiles, and that no GPU would launch."""
    return Refused(RuntimeFault(stage=Stage.COMPILE, message=message))


def refuse_for(
    first: Diagnostic, *others: Diagnostic, warnings: tuple[Diagnostic, ...] = ()
) -> Refused:
    """Refuse a submission because of errors. The first says what is wrong; warnings may say why."""
    where = f"line {first.line}: " if first.line else ""
    more = f" (and {len(others)} more)" if others else ""
    return refuse(f"{where}{first.message}{more}", first, *others, *warnings)


def refuse_as_unsupported(message: str, feature: str | None) -> Refused:
    """Refuse a submission because the architecture lacks something."""
    return Refused(Unsupported(stage=Stage.COMPILE, message=message, instruction=feature))
