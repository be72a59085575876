"""A submission's source, line by line, with what the report says about each line.

A source may be anything that fits into a megabyte, so only a part of a long one is shown. Colouring
takes time in proportion to its length: Pygments' own rules for C look for functions, which takes
hours for some thousand blank lines.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import include
from pygments.lexers import CudaLexer
from pygments.token import Punctuation

from harness.board import escaping
from harness.judge import figures
from harness.protocol.report import Diagnostic, Finding, LineCounters, Place, Report

Kind = Literal["error", "warning", "note", "counters"]
_WEIGHT: dict[Kind, int] = {"error": 3, "warning": 2, "note": 1, "counters": 0}

MAX_LINES = 3000
MAX_CHARACTERS = 200_000
"""Limits of several times this repository's longest kernel. The whole file is next to the page."""

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


@dataclass(frozen=True, slots=True)
class AnnotatedSource:
    lines: tuple[Line, ...]
    hidden: int
    """The number of lines of the file that are not shown."""

    @property
    def notes(self) -> int:
        return sum(bool(line.notes) for line in self.lines)


def annotated_source(report: Report) -> AnnotatedSource:
    """Return the highlighted source with the notes of compiler, sanitizers and counters."""
    notes = _notes(report)
    everything = escaping.lines(report.submission.source).rstrip().split("\n")
    room = MAX_CHARACTERS
    shown: list[str] = []
    for line in everything[:MAX_LINES]:
        room -= len(line)
        if room < 0:
            break
        shown.append(line.rstrip())
    html = highlight("\n".join(shown), _Lexer(stripnl=False), HtmlFormatter(nowrap=True))
    coloured = html.removesuffix("\n").split("\n") if shown else []
    return AnnotatedSource(
        lines=tuple(
            Line(number, Markup(code), tuple(notes[number]))
            for number, code in enumerate(coloured, start=1)
        ),
        hidden=len(everything) - len(coloured),
    )


class _Lexer(CudaLexer):  # type: ignore[misc]  # Pygments' lexers are made by a metaclass
    """A lexer of CUDA word by word, without the rules that look for whole functions."""

    tokens = {  # noqa: RUF012 - the metaclass reads it
        "root": [
            *map(include, ("whitespace", "keywords", "types", "statements")),
            (r"[{}]", Punctuation),
        ]
    }


def style_sheet() -> str:
    """Return the style sheet of the highlighting in both colour schemes."""
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
    """Return the note about a line's memory accesses; every line executes instructions."""
    costs = (
        ("global memory", line.global_requests, line.global_sectors, "sectors"),
        ("shared memory", line.shared_requests, line.shared_wavefronts, "wavefronts"),
    )
    return "; ".join(
        f"{memory}: {figures.grouped(requests)} requests, {parts / requests:.1f} {unit} each"
        for memory, requests, parts, unit in costs
        if requests
    )
