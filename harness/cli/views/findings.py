"""What is wrong with a kernel, and where: diagnostics, findings and counterexamples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.protocol.report import Counterexample, Diagnostic, Finding, Submission

MAX_DIAGNOSTICS = 5
MAX_FINDINGS = 4
SOURCE_WIDTH = 68


def diagnostics(
    diagnostics: Sequence[Diagnostic], submission: Submission
) -> Iterable[RenderableType]:
    for found in diagnostics[:MAX_DIAGNOSTICS]:
        style = "yellow" if found.severity == "warning" else "red"
        where = f"{submission.name}.cu"
        if found.line:
            where += f":{found.line}" + (f":{found.column}" if found.column else "")
        yield Text.assemble((where, "bold"), ": ", (found.severity, style), f": {found.message}")
        if found.line:
            yield from source_line(submission, found.line, found.column)
    hidden = len(diagnostics) - MAX_DIAGNOSTICS
    if hidden > 0:
        yield Text(f"… and {hidden} more", "dim")


def source_line(submission: Submission, line: int, column: int | None) -> Iterable[RenderableType]:
    lines = submission.source.splitlines()
    if not 1 <= line <= len(lines):
        return
    text = lines[line - 1].replace("\t", " ").rstrip()
    # A long line is shown around the place.
    start = max(0, (column or 1) - SOURCE_WIDTH // 2) if len(text) > SOURCE_WIDTH else 0
    shown = text[start : start + SOURCE_WIDTH]
    yield Text.assemble((f"{line:6} │ ", "dim"), shown, no_wrap=True, overflow="crop")
    if column:
        yield Text.assemble(("       │ ", "dim"), " " * (column - 1 - start), ("^", "bold"))


def findings(findings: Sequence[Finding], submission: Submission) -> Iterable[RenderableType]:
    for found in findings[:MAX_FINDINGS]:
        more = f" ({found.occurrences} times)" if found.occurrences > 1 else ""
        yield Text.assemble((f"{found.tool.value}: ", "red"), found.message + more)
        who = []
        if found.at.thread:
            who.append(f"thread {_xyz(found.at.thread)} of block {_xyz(found.at.block)}")
        if found.other and found.other.thread:
            who.append(f"and thread {_xyz(found.other.thread)}")
        if found.shape:
            who.append(f"at {found.shape}")
        if who:
            yield Text("       " + " ".join(who), "dim")
        for place in (found.at, found.other):
            if place and place.line:
                yield from source_line(submission, place.line, None)
    hidden = len(findings) - MAX_FINDINGS
    if hidden > 0:
        yield Text(f"… and {hidden} more findings", "dim")


def _xyz(position: tuple[int, int, int] | None) -> str:
    return f"({', '.join(map(str, position))})" if position else "?"


def counterexample(found: Counterexample, seed: int) -> Iterable[RenderableType]:
    shape = found.case.shape
    yield Text(
        f"wrong at M={shape.M} N={shape.N} K={shape.K}, {found.case.inputs}, seed {seed}: "
        f"{found.wrong_blocks} of {found.blocks} blocks"
    )
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("row", "column", "expected", "found"):
        table.add_column(title, justify="right")
    for element in found.elements:
        table.add_row(
            str(element.row),
            str(element.column),
            f"{element.expected:.9g}",
            f"{element.found:.9g}",
        )
    picture = Table.grid(padding=(0, 3))
    height = len(found.elements) + 1
    rows = found.map.rows
    drawn = Text("\n".join(rows).replace("#", "█").replace(".", "·"), "red")
    if found.wrong_blocks == found.blocks:
        yield table
        yield Text(found.pattern, "bold")
        return
    if len(rows) <= max(height, 12) and len(rows[0]) <= 30:
        picture.add_row(table, drawn)
        yield picture
    else:
        yield table
        yield drawn
    blocks = 16 * found.map.scale
    yield Text(f"each mark is {blocks}×{blocks} elements of C; █ wrong, · right", "dim")
    yield Text(found.pattern, "bold")
