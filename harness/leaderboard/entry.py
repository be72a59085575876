"""One entry of the leaderboard: what ranking and tables need of a report, and its identity."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from statistics import median
from typing import Any, NamedTuple, Self

from harness.report import Badge, DeviceKind, Report, Verdict

ANONYMOUS = "anonymous"
"""The author of a report that names none."""


class Entry(NamedTuple):
    """A row of the index. A named tuple, because ten thousand are read to show one ranking."""

    id: str
    """sha256 of the report's canonical JSON: the same report is the same entry everywhere."""
    created: str
    """When it was graded: UTC, ISO 8601, so that text order is time order."""
    name: str
    author: str
    sha256: str
    """Of the source."""
    code: str
    """sha256 of the code without comments and white space; of the source where it was not read."""
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
            code=(
                (kernel.program_sha256 or kernel.code_sha256)
                if kernel
                else report.submission.sha256
            ),
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


def timestamp(moment: datetime) -> str:
    """UTC, ISO 8601, always of the same length; a time without a zone is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds")


def canonical(document: Any) -> str:
    """JSON in the one form that is stored and hashed: keys in their order, no spaces, UTF-8."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def identity(text: str) -> str:
    """The id of an entry, from its canonical JSON."""
    return hashlib.sha256(text.encode()).hexdigest()


def _badge(report: Report, *choices: Badge) -> str | None:
    badges = report.kernel.badges if report.kernel else ()
    return next((badge.value for badge in choices if badge in badges), None)
