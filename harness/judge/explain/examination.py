"""The facts about a kernel that an explanation needs, from a report or from `judge.examine`."""

from dataclasses import dataclass

from harness.protocol.report import Counters, DeviceInfo, DisassembledKernel, Outcome, Report


@dataclass(frozen=True, slots=True)
class Examination:
    """The facts about one kernel.

    outcome: the error that a grading, or a quick look at a few cases, found; None for a right
    kernel.
    blocks_depend: blocks depend on one another, so they need not be equally long.
    note: the reason why something could not be determined.
    """

    name: str
    source: str
    device: DeviceInfo | None
    kernel: DisassembledKernel
    counters: Counters | None
    outcome: Outcome | None = None
    measured_ms: float | None = None
    blocks_depend: bool = False
    note: str = ""


def from_report(report: Report) -> Examination | None:
    """Return the facts in a report; None if the kernel did not compile, or was wrong."""
    if not isinstance(report.kernel, DisassembledKernel):
        return None
    return Examination(
        name=report.submission.name,
        source=report.submission.source,
        device=report.device,
        kernel=report.kernel,
        counters=report.counters,
        outcome=report.outcome,
        measured_ms=report.score.kernel_ms if report.score else None,
        blocks_depend=bool(report.counters and report.counters.blocks_depend),
    )
