"""One entry of the board: what ranking and tables need of a report, and its identity."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from datetime import UTC
from statistics import median
from typing import NamedTuple, Self

import harness
from harness.protocol.report import Badge, DeviceKind, DisassembledKernel, Report, Verdict
from problem.cases import CASES_VERSION


class Version(NamedTuple):
    """The version of the program, and that of the cases that it tries."""

    judge: str
    cases: int

    @classmethod
    def current(cls) -> Self:
        """Return the version of the judge that is running."""
        return cls(harness.__version__, CASES_VERSION)

    @property
    def age(self) -> tuple[int, tuple[tuple[int, str], ...]]:
        """Return a key by which later versions sort after earlier ones."""
        parts = tuple(
            (int(part), "") if part.isascii() and part.isdecimal() else (0, part)
            for part in self.judge.split(".")
        )
        return self.cases, parts

    def __str__(self) -> str:
        return f"judge {self.judge}, cases {self.cases}"


ANONYMOUS = "anonymous"
"""The author of a report that names none."""


class Entry(NamedTuple):
    """A row of the index. It is a named tuple because ten thousand are read to show one ranking."""

    id: str
    """The sha256 of the report's text: the same report is the same entry in every store."""
    created: str
    """When it was graded: UTC, ISO 8601, so that text order is time order."""
    name: str
    author: str
    sha256: str
    """The sha256 of the source."""
    code: str
    """The identity of the kernel: the sha256 of its PTX program, regardless of its text. If
    the grading ended before there was a program, it is the sha256 of the source."""
    verdict: str
    stage: str | None
    """The stage in which it ended; None where it was accepted."""
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
    """The median SM clock over the rounds that count."""
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
    """The GPU's own identifier: two GPUs of one model need not be equally fast."""
    accuracy: str | None = None
    """The grade of its accuracy on structured inputs: A is the best."""
    verified: bool = False
    """Whether the board's own key or a listed key signed it."""

    @classmethod
    def of(cls, report: Report, id: str) -> Self:
        """Return the entry of a report; nothing in it is verified yet."""
        device, kernel, score = report.device, report.kernel, report.score
        source = source_hash(report)
        rounds = report.measurement.rounds if report.measurement else ()
        clocks = [round.clock_mhz for round in rounds if not round.dropped]
        return cls(
            id=id,
            created=report.created.astimezone(UTC).isoformat(timespec="microseconds"),
            name=report.submission.name,
            author=report.submission.author or ANONYMOUS,
            sha256=source,
            code=(kernel and kernel.program_sha256) or source,
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
            cublas=device.baseline_version if device else None,
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
            accuracy=report.accuracy.grade.value if report.accuracy else None,
        )

    @property
    def short_id(self) -> str:
        """An id that is long enough to name a file: two of a million entries share it once in 10^7
        stores."""
        return self.id[:16]

    @property
    def badges(self) -> frozenset[str]:
        return frozenset(badge for badge in (self.cores, self.launch) if badge)

    @property
    def accepted(self) -> bool:
        return self.verdict == Verdict.ACCEPTED

    @property
    def version(self) -> Version:
        return Version(self.judge, self.cases)


INDEXED = tuple(name for name in Entry._fields if name != "verified")
"""The fields that follow from the report alone, and so are kept in an index."""


def source_hash(report: Report) -> str:
    """Return the sha256 of the source, which a report from elsewhere may state wrongly; where the
    file could not be read, what the report states."""
    source = report.submission.source.encode("utf-8", "replace")
    return hashlib.sha256(source).hexdigest() if source else report.submission.sha256


def differ(one: Entry, other: Entry) -> bool:
    """Return whether the 95 % intervals of the two scores do not overlap."""
    if None in (one.low, one.high, other.low, other.high):
        return False
    return (one.low or 0) > (other.high or 0) or (other.low or 0) > (one.high or 0)


def _badge(report: Report, *choices: Badge) -> str | None:
    """Return the badge of the choices that the kernel has; None where its machine code was not
    read."""
    kernel = report.kernel
    badges = kernel.badges if isinstance(kernel, DisassembledKernel) and kernel.instructions else ()
    return next((badge.value for badge in choices if badge in badges), None)


Facts = dict[str, str]
"""Short phrases by subject."""


def facts(entry: Entry) -> Facts:
    """Return who graded the entry when, and with which software."""
    known = {
        "author": ("by", entry.author),
        "graded": ("graded", entry.created[:10]),
        "driver": ("driver", entry.driver),
        "cuda": ("CUDA", entry.cuda),
        "cublas": ("cuBLAS", entry.cublas),
        "judge": ("judge", entry.judge),
        "cases": ("cases", entry.cases),
    }
    found = {what: f"{word} {value}" for what, (word, value) in known.items() if value is not None}
    return found if entry.clock_mhz is None else {**found, "clock": f"{entry.clock_mhz} MHz"}


def usual_facts(entries: Iterable[Entry]) -> Facts:
    """Return the facts that more than half of the entries have in common."""
    all_facts = [facts(entry) for entry in entries]
    counts = Counter(fact for each in all_facts for fact in each.items())
    return dict(fact for fact, count in counts.items() if 2 * count > len(all_facts))


def own_facts(entry: Entry, common: Facts) -> Facts:
    """Return the facts of an entry that differ from the usual ones."""
    return {what: said for what, said in facts(entry).items() if common.get(what) != said}
