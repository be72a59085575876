"""Two submissions, or two versions of one, next to each other."""

import difflib
from dataclasses import dataclass

from harness.board.document import Document
from harness.board.entry import Entry, differ
from harness.judge import figures
from harness.judge.explain import explanation
from harness.judge.explain.compare import compare as why_it_changed
from harness.judge.explain.examination import from_report
from harness.judge.explain.explain import explain
from harness.protocol.report import Report

Quantities = list[tuple[str, str, float | str | None]]
"""Names, units and values."""

MAX_LINES = 2000
MAX_CHARACTERS = 200_000
"""Longer sources are not compared line by line, which takes time by the square of their length."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One quantity of both submissions; None where a report does not have it."""

    what: str
    unit: str
    a: float | str | None
    b: float | str | None

    @property
    def change(self) -> str:
        if isinstance(self.a, str) or isinstance(self.b, str) or self.a is None or self.b is None:
            return ""
        if self.a == self.b:
            return "="
        return figures.change(self.a, self.b) if self.a else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    a: Entry
    b: Entry
    conclusion: str
    """Whether the difference is larger than the noise, in one sentence."""
    facts: tuple[Fact, ...]
    diff: str
    """The unified diff of the sources; empty where they are equal or too long to compare."""
    too_long: bool = False
    explained: explanation.Comparison | None = None
    """Why B should be faster or slower than A by what was counted; None where one was not counted,
    or was graded on another device."""


def compare(a: Document, b: Document) -> Comparison:
    """Compare two reports: figures, scores and sources."""
    one, other = Entry.of(a.report, a.id), Entry.of(b.report, b.id)
    old, new = (document.report.submission.source for document in (a, b))
    too_long = old != new and (_is_too_long(old) or _is_too_long(new))
    a_lines, b_lines = (text.splitlines(keepends=True) for text in (old, new))
    titles = f"A {one.name}", f"B {other.name}"
    diff = () if too_long else difflib.unified_diff(a_lines, b_lines, *titles)
    return Comparison(
        a=one,
        b=other,
        conclusion=_conclusion(one, other),
        facts=_facts(_quantities(a.report, one), _quantities(b.report, other)),
        diff="".join(diff),
        too_long=too_long,
        explained=_explained(a.report, b.report) if one.device == other.device else None,
    )


def _explained(old: Report, new: Report) -> explanation.Comparison | None:
    before, after = from_report(old), from_report(new)
    if before is None or after is None:
        return None
    found = why_it_changed(explain(after), explain(before))
    return found if found.before_ms is not None and found.after_ms is not None else None


def _is_too_long(source: str) -> bool:
    return len(source) > MAX_CHARACTERS or len(source.splitlines()) > MAX_LINES


def _conclusion(a: Entry, b: Entry) -> str:
    unscored = [label for label, entry in (("A", a), ("B", b)) if entry.score is None]
    if unscored:
        have = "have" if len(unscored) == 2 else "has"
        return f"{' and '.join(unscored)} {have} no score: nothing to compare in speed."
    if a.device != b.device:
        return f"A ran on {a.device} and B on {b.device}: scores of two GPU models do not compare."
    if (a.judge, a.cases) != (b.judge, b.cases):
        return (
            f"A is of judge {a.judge}, cases {a.cases}, and B of judge {b.judge}, "
            f"cases {b.cases}: regrade before comparing."
        )
    change = figures.change(a.score or 1, b.score or 1)
    found = (
        "do not overlap: the difference is larger" if differ(a, b) else "overlap: it is not larger"
    )
    gpus = "" if a.uuid == b.uuid else " They ran on two GPUs of the model, which may differ too."
    return f"B against A: {change}. The 95 % intervals {found} than the noise of the runs.{gpus}"


def _quantities(report: Report, entry: Entry) -> Quantities:
    rows: Quantities = [
        ("verdict", "", entry.verdict),
        ("score", "× cuBLAS", entry.score),
        ("95 % interval", "", figures.interval(entry.low, entry.high) if entry.score else None),
        ("kernel", "ms", entry.kernel_ms),
        ("cuBLAS", "ms", entry.baseline_ms),
        ("throughput", "TFLOP/s", entry.tflops),
        ("device", "", entry.device),
        ("clock", "MHz", entry.clock_mhz),
        ("driver", "", entry.driver),
        ("CUDA", "", entry.cuda),
        ("cuBLAS version", "", entry.cublas),
        ("judge", "", entry.judge),
        ("cases", "", str(entry.cases)),
        ("badges", "", " ".join(sorted(entry.badges)) or None),
    ]
    kernel, verification, counters = report.kernel, report.verification, report.counters
    if kernel:
        rows += [
            ("registers", "a thread", kernel.resources.registers),
            ("spill stores", "bytes", kernel.resources.spill_store_bytes),
            ("spill loads", "bytes", kernel.resources.spill_load_bytes),
            ("static shared", "bytes", kernel.resources.static_shared_bytes),
            ("dynamic shared", "bytes", kernel.resources.dynamic_shared_bytes),
            ("blocks per multiprocessor", "", kernel.occupancy.blocks),
            ("occupancy", "%", 100 * kernel.occupancy.fraction),
        ]
    if entry.accuracy:
        rows.append(("accuracy grade", "", entry.accuracy))
    if verification:
        rows.append(("worst error", "", verification.worst_error))
    if counters:
        blocks = counters.counted_blocks
        rows += [
            ("counted at", "", str(counters.shape)),
            ("global load sectors", "per block", counters.global_load_sectors / blocks),
            ("global store sectors", "per block", counters.global_store_sectors / blocks),
            ("shared load wavefronts", "per block", counters.shared_load_wavefronts / blocks),
            ("shared store wavefronts", "per block", counters.shared_store_wavefronts / blocks),
            ("bank conflicts", "per block", counters.bank_conflicts / blocks),
            ("divergent branches", "per block", counters.divergent_branches / blocks),
            ("intensity", "FLOP/byte", counters.flop_per_global_byte),
        ]
    return rows


def _facts(a: Quantities, b: Quantities) -> tuple[Fact, ...]:
    """Return the quantities side by side, where either has them."""
    mine, theirs = ({(what, unit): value for what, unit, value in side} for side in (a, b))
    facts = [Fact(*name, mine.get(name), theirs.get(name)) for name in mine | theirs]
    return tuple(fact for fact in facts if fact.a is not None or fact.b is not None)
