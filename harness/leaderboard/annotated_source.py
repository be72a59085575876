"""A submission's source, line by line, with what the report says of each line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer

from harness import escaping, figures
from harness.report import Diagnostic, Finding, LineCounters, Place, Report

Kind = Literal["error", "warning", "note", "counters"]
_WEIGHT: dict[Kind, int] = {"error": 3, "warning": 2, "note": 1, "counters": 0}

LIGHT, DARK = "xcode", "github-dark"
"""Pygments styles, chosen for contrast: 4.5 or more on every background of site.css."""


@dataclass(frozen=True, slots=True)
class Note:
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    code: Markup
    """Highlighted and escaped."""
    notes: tuple[Note, ...]

    @property
    def worst(self) -> Kind:
        return max((note.kind for note in self.notes), key=_WEIGHT.__getitem__)


def annotated_source(report: Report) -> list[Line]:
    notes = _notes(report)
    source = escaping.lines(report.submission.source)
    html = highlight(source, CudaLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return [
        Line(number, Markup(code), tuple(notes[number]))
        for number, code in enumerate(html.rstrip("\n").split("\n"), start=1)
    ]


def style_sheet() -> str:
    """The highlighting in both colour schemes."""
    light, dark = _rules(LIGHT), _rules(DARK)
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _rules(style: str) -> str:
    formatter = HtmlFormatter(style=style)
    sheet: str = formatter.get_style_defs(".listing code")  # type: ignore[no-untyped-call]
    return "\n".join(line for line in sheet.split("\n") if line.startswith(".listing code ."))


def _notes(report: Report) -> defaultdict[int, list[Note]]:
    notes: defaultdict[int, list[Note]] = defaultdict(list)
    outcome = report.outcome
    diagnostics: tuple[Diagnostic, ...] = getattr(outcome, "diagnostics", ())
    for diagnostic in (*diagnostics, *report.diagnostics):
        if diagnostic.line:
            notes[diagnostic.line].append(Note(diagnostic.severity, diagnostic.message))
    for line, text in _findings(getattr(outcome, "findings", ())):
        notes[line].append(Note("error", text))
    place: Place | None = getattr(outcome, "at", None)
    if place and place.line:
        notes[place.line].append(Note("error", getattr(outcome, "message", "")))
    for counted in report.counters.lines if report.counters else ():
        if text := _counted(counted):
            notes[counted.line].append(Note("counters", text))
    return notes


def _findings(findings: tuple[Finding, ...]) -> Iterator[tuple[int, str]]:
    for finding in findings:
        for place in {finding.at.line, finding.other.line if finding.other else None}:
            if place:
                yield place, f"{finding.tool.value}: {finding.message}"


def _counted(line: LineCounters) -> str:
    """Only memory is worth a note: every line executes instructions."""
    costs = (
        ("global memory", line.global_requests, line.global_sectors, "sectors"),
        ("shared memory", line.shared_requests, line.shared_wavefronts, "wavefronts"),
    )
    return "; ".join(
        f"{memory}: {figures.grouped(requests)} requests, {parts / requests:.1f} {unit} each"
        for memory, requests, parts, unit in costs
        if requests
    )
