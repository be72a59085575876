"""The part of a screen that shows diagnostics, findings and counterexamples."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import (
    Console,  # noqa: TID251 - the type alone
    ConsoleOptions,
    RenderableType,
    RenderResult,
)
from rich.table import Table
from rich.text import Text

from harness.protocol.report import (
    Array,
    CompileError,
    Counterexample,
    Diagnostic,
    Finding,
    MemoryFault,
    Outcome,
    Race,
    Submission,
    WrongAnswer,
)

MAX_DIAGNOSTICS = 5
MAX_FINDINGS = 4
_MARGIN = 9
"""The columns of the line number and the rule next to it."""


def diagnostics(
    diagnostics: Sequence[Diagnostic], submission: Submission
) -> Iterable[RenderableType]:
    """Yield each diagnostic, with its line where it has one."""
    for found in diagnostics[:MAX_DIAGNOSTICS]:
        style = "yellow" if found.severity == "warning" else "red"
        where = f"{submission.name}.cu"
        if found.line:
            where += f":{found.line}" + (f":{found.column}" if found.column else "")
        yield Text.assemble((where, "bold"), ": ", (found.severity, style), f": {found.message}")
        yield from source_line(submission, found.line, found.column)
    hidden = len(diagnostics) - MAX_DIAGNOSTICS
    if hidden > 0:
        yield Text(f"… and {hidden} more", "dim")


def brief_message(outcome: Outcome) -> str:
    """Return the message, or only the line number where a finding or diagnostic above says it."""
    message = outcome.message
    shown: Sequence[Finding | Diagnostic] = ()
    if isinstance(outcome, MemoryFault | Race):
        shown = outcome.findings
    elif isinstance(outcome, CompileError):
        shown = outcome.diagnostics
    elif isinstance(outcome, WrongAnswer):
        return f"  at {outcome.counterexample.case}"
    if not shown or shown[0].message not in message:
        return f"  {message}"
    line = shown[0].at.line if isinstance(shown[0], Finding) else shown[0].line
    return f"  in line {line}" if line else ""


def source_line(
    submission: Submission, line: int | None, column: int | None = None
) -> Iterable[RenderableType]:
    """Yield a line of the source, with a caret under the column, unless there is no such line."""
    lines = submission.source.splitlines()
    if line and line <= len(lines):
        yield Excerpt(line, lines[line - 1].replace("\t", " ").rstrip(), column)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line of the source: the whole line if it fits, else the part around the caret."""

    number: int
    text: str
    column: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width - _MARGIN
        caret = min((self.column or 1) - 1, len(self.text))
        shown = self.text
        if len(shown) > width:  # without the indentation
            caret = max(0, caret - (len(shown) - len(shown.lstrip())))
            shown = shown.lstrip()
        if len(shown) > width:
            start = max(0, min(caret - width // 2, len(shown) - width))
            end = start + width
            before, after = "…" * (start > 0), "…" * (end < len(shown))
            shown = before + shown[start + len(before) : end - len(after)] + after
            caret -= start
        yield Text.assemble((f"{self.number:6} │ ", "dim"), shown, no_wrap=True, overflow="crop")
        if self.column:
            yield Text.assemble(("       │ ", "dim"), " " * caret, ("^", "bold"))


def findings(findings: Sequence[Finding], submission: Submission) -> Iterable[RenderableType]:
    """Yield each finding with its threads and the lines that it names."""
    for found in findings[:MAX_FINDINGS]:
        more = f" ({found.occurrences} times)" if found.occurrences > 1 else ""
        yield Text.assemble((f"{found.tool.value}: ", "red"), found.message + more)
        who = ", ".join(_circumstances(found))
        if who:
            yield Text(f"       {who}", "dim")
        lines = (place.line for place in (found.at, found.other) if place and place.line)
        for line in dict.fromkeys(lines):
            yield from source_line(submission, line, _column_of(found, submission, line))
    hidden = len(findings) - MAX_FINDINGS
    if hidden > 0:
        yield Text(f"… and {hidden} more finding{'s' * (hidden > 1)}", "dim")


def _circumstances(found: Finding) -> Iterable[str]:
    """Yield what the finding's sentence does not say: the threads, their block, the shape."""
    for place in (found.at, found.other):
        if place and place.thread and _xyz(place.thread) not in found.message:
            yield f"thread {_xyz(place.thread)}"
    if found.at.block:
        yield f"block {_xyz(found.at.block)}"
    if found.shape and str(found.shape) not in found.message:
        yield f"shape {found.shape}"


def _column_of(found: Finding, submission: Submission, line: int) -> int | None:
    """Return where on its line an access to a buffer probably is; tools name the line only."""
    lines = submission.source.splitlines()
    if found.access is None or found.array is None or line > len(lines):
        return None
    text = lines[line - 1]
    name = r"\w+" if found.array in [*Array] else found.array
    accesses = [match.start() for match in re.finditer(rf"\b{name}\s*\[", text)]
    if not accesses:
        accesses = [match.start() for match in re.finditer(r"\b\w+\s*\[|\*\s*\w+", text)]
    equals = re.search(r"(?<![<>=!])=(?!=)", text)
    if equals and accesses:
        left = [at for at in accesses if at < equals.start()]
        right = [at for at in accesses if at > equals.start()]
        accesses = (left if found.access == "write" else right) or accesses
    first = len(text) - len(text.lstrip())
    return (accesses[0] if accesses else first) + 1


def _xyz(position: tuple[int, int, int]) -> str:
    return f"({', '.join(map(str, position))})"


def counterexample(
    found: Counterexample, seed: int, explained: bool = False
) -> Iterable[RenderableType]:
    """Yield the wrong elements, a map of the wrong blocks, and what they look like.

    explained: whether findings above say already why C is wrong.
    """
    shape = found.case.shape
    yield Text(
        f"wrong at M={shape.M} N={shape.N} K={shape.K}, {found.case.inputs}, seed {seed}: "
        f"{found.wrong_blocks} of {found.blocks} blocks"
    )
    if explained:
        return
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("row", "column", "expected", "found"):
        table.add_column(title, justify="right")
    for element in found.elements:
        table.add_row(
            str(element.row), str(element.column), f"{element.expected:.9g}", f"{element.found:.9g}"
        )
    rows = found.map.rows
    if found.wrong_blocks == found.blocks:
        yield table
    else:
        drawn = Text("\n".join(rows).replace("#", "█").replace(".", "·"), "red")
        if len(rows) <= max(len(found.elements) + 1, 12) and len(rows[0]) <= 30:
            picture = Table.grid(padding=(0, 3))
            picture.add_row(table, drawn)
            yield picture
        else:
            yield table
            yield drawn
        side, wrong = 16 * found.map.scale, "wrong" if found.map.scale == 1 else "some are wrong"
        yield Text(f"each mark is {side}×{side} elements of C; █ {wrong}, · right", "dim")
    yield Text(found.pattern, "bold")
