"""One entry of the leaderboard: what ranking and tables need of a report, and its identity."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple, Self

from harness.protocol.report import Badge, DeviceKind, DisassembledKernel, Report, Verdict

ANONYMOUS = "anonymous"
"""The author of a report that names none."""


class Entry(NamedTuple):
    """A row of the index. A named tuple, because ten thousand are read to show one ranking."""

    id: str
    """sha256 of the report's text: the same report is the same entry everywhere."""
    created: str
    """When it was graded: UTC, ISO 8601, so that text order is time order."""
    name: str
    author: str
    sha256: str
    """Of the source."""
    code: str
    """What tells one kernel from another, whatever its comments: sha256 of its program, as its own
    compiler printed it; where there is none, of the words of its source."""
    verdict: str
    stage: str | None
    """Where it ended, unless it was accepted."""
    quick: bool
    judge: str
    cases: int
    seed: str
    """Text, because a seed may exceed SQLite's integers."""
    device: str | None
    """The GPU's model, or the CPU device's name; None where nothing ran."""
    on_gpu: bool
    driver: str | None
    cuda: str | None
    cublas: str | None
    clock_mhz: int | None
    """Median SM clock over the rounds that count."""
    score: float | None
    low: float | None
    high: float | None
    kernel_ms: float | None
    baseline_ms: float | None
    tflops: float | None
    peak_share: float | None
    cores: str | None
    """Badge.CUDA_CORES or Badge.TENSOR_CORES."""
    launch: str | None
    """Badge.DEFAULT_LAUNCH or Badge.DECLARED_LAUNCH."""
    registers: int | None
    uuid: str | None
    """Which GPU of its model: two of them need not be equally fast."""
    own: bool = False
    """Signed with the key of the store that holds it: its own judge has graded it. What is not its
    own is a claim."""

    @classmethod
    def of(cls, report: Report, id: str) -> Self:
        device, kernel, score = report.device, report.kernel, report.score
        rounds = report.measurement.rounds if report.measurement else ()
        clocks = [round.clock_mhz for round in rounds if not round.dropped]
        return cls(
            id=id,
            created=timestamp(report.created),
            name=report.submission.name,
            author=report.submission.author or ANONYMOUS,
            sha256=report.submission.sha256,
            code=_code(report),
            verdict=report.verdict.value,
            stage=getattr(report.outcome, "stage", None),
            quick=report.quick,
            judge=report.environment.judge,
            cases=report.environment.cases,
            seed=str(report.seed),
            device=device.name if device else None,
            on_gpu=device is not None and device.kind is DeviceKind.CUDA,
            driver=device.driver if device else None,
            cuda=device.cuda_runtime if device else None,
            cublas=device.cublas if device else None,
            clock_mhz=round(median(clocks)) if clocks else None,
            score=score.ratio if score else None,
            low=score.low if score else None,
            high=score.high if score else None,
            kernel_ms=score.kernel_ms if score else None,
            baseline_ms=score.baseline_ms if score else None,
            tflops=score.tflops if score else None,
            peak_share=score.peak_share if score else None,
            cores=_badge(report, Badge.CUDA_CORES, Badge.TENSOR_CORES),
            launch=_badge(report, Badge.DEFAULT_LAUNCH, Badge.DECLARED_LAUNCH),
            registers=kernel.resources.registers if kernel else None,
            uuid=device.uuid if device else None,
        )

    @property
    def short_id(self) -> str:
        """Long enough to name a file: two of a million entries share it once in 10^7 stores."""
        return self.id[:16]

    @property
    def badges(self) -> frozenset[str]:
        return frozenset(badge for badge in (self.cores, self.launch) if badge)

    @property
    def accepted(self) -> bool:
        return self.verdict == Verdict.ACCEPTED


INDEXED = tuple(name for name in Entry._fields if name != "own")
"""What follows from the report alone, and so is kept in an index."""


def timestamp(moment: datetime) -> str:
    """UTC, ISO 8601, always of the same length; a time without a zone is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds")


MAX_CODE = 1 << 17
"""Characters: several times the longest kernel. A board reads no longer text again."""


def _code(report: Report) -> str:
    from harness.compiling.errors import SourceError
    from harness.compiling.source import parse  # a parser would slow every command

    if report.kernel and report.kernel.program_sha256:
        return report.kernel.program_sha256
    if len(report.submission.source) > MAX_CODE:
        return report.submission.sha256
    try:
        return parse(report.submission.source).code_sha256
    except SourceError:
        return report.submission.sha256


def _badge(report: Report, *choices: Badge) -> str | None:
    """None, and so no rank in a league, where nobody could read the machine code."""
    kernel = report.kernel
    badges = kernel.badges if isinstance(kernel, DisassembledKernel) and kernel.instructions else ()
    return next((badge.value for badge in choices if badge in badges), None)
