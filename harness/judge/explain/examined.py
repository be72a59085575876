"""What is known of a kernel when it is to be explained, wherever that comes from."""

from __future__ import annotations

from dataclasses import dataclass

from harness.protocol.device import Profile
from harness.protocol.report import Counters, DeviceInfo, DisassembledKernel, Outcome, Report


@dataclass(frozen=True, slots=True)
class Examined:
    """outcome: what a grading, or a quick look at a few cases, made of it; None where it is right.
    blocks_share_work: blocks that depend on one another need not be equally long.
    note: why something could not be told.
    """

    name: str
    source: str
    device: DeviceInfo | None
    kernel: DisassembledKernel
    counters: Counters | None
    outcome: Outcome | None = None
    measured_ms: float | None = None
    profile: Profile | None = None
    blocks_share_work: bool = False
    note: str = ""


def from_report(report: Report) -> Examined | None:
    """None of a kernel of which too little is known: it did not compile, or was wrong."""
    if not isinstance(report.kernel, DisassembledKernel):
        return None
    return Examined(
        name=report.submission.name,
        source=report.submission.source,
        device=report.device,
        kernel=report.kernel,
        counters=report.counters,
        outcome=report.outcome,
        measured_ms=report.score.kernel_ms if report.score else None,
        blocks_share_work=bool(report.counters and report.counters.blocks_depend),
    )
