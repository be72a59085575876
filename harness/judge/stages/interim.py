"""Sentences about a kernel for a view that follows the grading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.judge import figures
from harness.protocol.report import (
    Accepted,
    Diagnostic,
    DisassembledKernel,
    Finding,
    FirstLaunch,
    KernelFacts,
    Outcome,
    Sanitizing,
    Verification,
)


def of_kernel(kernel: KernelFacts, warnings: Sequence[Diagnostic]) -> Iterable[str]:
    """Describe the compiled kernel."""
    room = kernel.occupancy
    occupied = f"{room.fraction:.0%} occupancy, limited by {room.limited_by}"
    yield f"{figures.resources(kernel.resources)}; {occupied}"
    yield from _warnings(warnings)


def of_machine_code(kernel: DisassembledKernel, warnings: Sequence[Diagnostic]) -> Iterable[str]:
    """Describe the machine code."""
    yield ", ".join(badge.value for badge in kernel.badges)
    yield from _warnings(warnings)


def _warnings(warnings: Sequence[Diagnostic]) -> Iterable[str]:
    for warning in warnings:
        where = f"line {warning.line}: " if warning.line else ""
        yield f"{where}{warning.severity}: {warning.message}"


def of_verification(found: Verification) -> Iterable[str]:
    """Describe a verification in which all cases were correct."""
    yield figures.verification(found)
    if found.note:
        yield found.note


def of_failure(outcome: Outcome) -> Iterable[str]:
    """Describe a failed verification; a sanitizer may still say why."""
    if not isinstance(outcome, Accepted):
        yield f"{outcome.verdict.value}: {outcome.message}"


def of_sanitizing(program: Sanitizing, findings: Sequence[Finding]) -> Iterable[str]:
    """Describe what one sanitizer program found."""
    clean = [run.tool.value for run in program.tools if run.status == "clean"]
    if clean:
        yield f"{program.program}: nothing found by {', '.join(clean)}"
    for finding in findings:
        more = f" ({finding.occurrences} times)" if finding.occurrences > 1 else ""
        yield f"{finding.tool.value}: {finding.message}{more}"


def of_first_launch(found: FirstLaunch) -> Iterable[str]:
    yield f"first launch {found.first_launch_ms:.1f} ms, second {found.second_launch_ms:.1f} ms"
