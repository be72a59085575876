"""The screen of an explanation: what limits the kernel, which lines, and what a change is worth."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.cli.views.findings import brief_message, diagnostics
from harness.compiling.occupancy import WARP
from harness.judge import figures
from harness.judge.explain.explanation import Advice, Comparison, Explanation, LineCost
from harness.protocol.report import CodeLine, CompileError, Outcome, Submission, Verdict

MAX_LINES = 8
MIN_SHOWN_SHARE = 0.005
"""The smallest share that is shown; less rounds to nothing."""
MIN_BAR_SHARE = 0.02
"""A unit that takes a smaller share of the busiest unit's time is left out."""
_BAR = 12
"""The length of the longest bar, in characters."""


def screen(explanation: Explanation, source: str) -> RenderableType:
    """Return one screen, which ends with the findings."""
    return Group(*_parts(explanation, source))


def comparison(found: Comparison) -> RenderableType:
    """Return what changed between two kernels, and which unit made the difference."""
    title = Text(f"\nAgainst {found.name}", "bold")
    parts: list[RenderableType] = [title, Text(f"  {found.why}")]
    if found.before_ms is None or found.after_ms is None:
        return Group(*parts)
    table = Table.grid(padding=(0, 2))
    times = [("estimate", found.before_ms, found.after_ms)]
    times += [(str(each.unit), each.before_ms, each.after_ms) for each in found.units]
    for name, *both in times:
        table.add_row(f"  {name}", f"{' → '.join(map(figures.milliseconds, both))} ms")
    table.add_row("  occupancy", " → ".join(map(figures.percent, found.occupancy)))
    table.add_row("  registers", " → ".join(map(str, found.registers)))
    for name, rules in (("solved", found.solved), ("new", found.new)):
        if rules:
            table.add_row(f"  {name}", ", ".join(rules))
    return Group(*parts, table)


def machine_code(code: Sequence[CodeLine], line: int) -> RenderableType:
    """Return the machine instructions that a source line became."""
    found = next((each for each in code if each.line == line), None)
    title = Text(f"\nThe machine code of line {line}", "bold")
    if found is None:
        lines = [each.line for each in code]
        return Group(title, Text(f"  none; lines {min(lines)} to {max(lines)} have some"))
    count = sum(found.opcodes.values())
    more = count - len(found.instructions)
    left = [Text(f"  and {figures.grouped(more)} more", "dim")] if more else []
    return Group(title, *(Text(f"  {each}") for each in found.instructions), *left)


def refusal(outcome: Outcome, submission: Submission) -> RenderableType:
    """Return why there is nothing to explain, in the words of a grading."""
    found = outcome.diagnostics if isinstance(outcome, CompileError) else ()
    verdict = (outcome.verdict.value, "bold red")
    line = Text.assemble((submission.name, "bold"), "  ", verdict, brief_message(outcome))
    return Group(*diagnostics(found, submission), line)


def first_finding(explanation: Explanation) -> Text:
    """Return the one line about the explanation that a grading shows."""
    if not explanation.units:
        return Text("what limits it: explain FILE", "dim")
    if not explanation.findings:
        return Text(f"limited by {explanation.units[0].unit}; we know no remedy", "dim")
    first = explanation.findings[0]
    return Text.assemble("first to try: ", _headline(first), _see(first))


def _parts(e: Explanation, source: str) -> Iterable[RenderableType]:
    if e.verdict is not None and e.verdict is not Verdict.ACCEPTED:
        yield Text.assemble((f"{e.verdict.value}: ", "bold red"), e.verdict_message)
        if e.verdict is not Verdict.JUDGE_ERROR:
            yield Text("Make it right before you make it fast; here is its speed anyway.", "dim")
    yield facts(_rows(e))
    if e.units:
        yield Text("\nHow long each unit alone would take, at the ranked size", "bold")
        yield _units(e)
    lines = source.splitlines()
    costly = _costly(e.lines)
    if costly:
        yield Text("\nThe lines that cost most", "bold")
        yield _heat(costly, lines)
    counted = any(line.cost is not None for line in e.lines)
    if counted:
        yield Text("\nFindings", "bold")
    if counted and not e.findings:
        yield Text("  we know no change that would save time")
    for number, finding in enumerate(e.findings, 1):
        yield _finding(f"  {number}.", finding)
    for note in e.notes:
        yield Text(f"\n{note}", "yellow")
    if e.against is not None:
        yield comparison(e.against)


def _headline(finding: Advice) -> Text:
    where = f"line {finding.line}: " if finding.line else ""
    gain = f"{finding.gain:.1f}" if finding.gain >= 2 else f"{finding.gain:.2f}"
    return Text.assemble(
        f"{where}{finding.message}: {figures.percent(finding.cost)} of the time, ",
        (f"about {gain}×", "bold"),
    )


def _finding(number: str, finding: Advice) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row(number, _headline(finding))
    table.add_row("", Text(f"{finding.remedy}{_see(finding)}", "dim"))
    return table


def _see(finding: Advice) -> str:
    return f" → {finding.see}" if finding.see else ""


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def _rows(e: Explanation) -> Iterable[tuple[str, str]]:
    yield "kernel", f"{e.name}, for {'an ' if e.assumed else ''}{e.gpu}"
    yield "resources", figures.resources(e.resources)
    yield "occupancy", figures.occupancy(e.occupancy)
    if e.block_bytes is None or e.block_flop is None:
        yield "blocks", f"{figures.grouped(e.blocks)}, which divide the work among themselves"
    else:
        tail = f", {100 * e.tail:.1f} % idle in the last" if e.tail > 0.001 else ""
        yield "waves", f"{figures.grouped(e.blocks)} blocks in {e.waves:.2f} waves{tail}"
        yield (
            "per block",
            f"moves {e.block_bytes / 1e6:.2f} MB or more, does {e.block_flop / 1e6:.0f} MFLOP: "
            f"{e.block_flop / e.block_bytes:.1f} FLOP/byte",
        )
    if e.mix:
        total = sum(e.mix.values())
        shown = ", ".join(
            f"{figures.percent(count / total)} {kind}"
            for kind, count in list(e.mix.items())[:5]
            if count >= MIN_SHOWN_SHARE * total
        )
        where = "whole kernel"
        if e.loop:
            first, last = e.loop
            where = f"loop of line {first}" if first == last else f"loop of lines {first}-{last}"
        yield "machine code", f"{where}: {shown}"
    if e.estimated_ms is not None:
        found = f", measured {figures.milliseconds(e.measured_ms)} ms" if e.measured_ms else ""
        yield "estimate", f"{figures.milliseconds(e.estimated_ms)} ms{found}"


def _units(e: Explanation) -> Table:
    table = Table.grid(padding=(0, 2))
    longest = e.units[0].ms
    for time in e.units:
        if time.ms < MIN_BAR_SHARE * longest:
            continue
        bar = "█" * max(1, round(_BAR * time.ms / longest)) if time.ms else ""
        why = Text(time.why, "dim")
        table.add_row(f"  {time.unit}", f"{figures.milliseconds(time.ms)} ms", bar, why)
    return table


def _costly(lines: tuple[LineCost, ...]) -> list[LineCost]:
    """Return the lines with most of the work, in the order of the file."""

    def share(line: LineCost) -> float:
        return line.cost or 0.0

    most = sorted((line for line in lines if share(line) >= 0.01), key=share, reverse=True)
    return sorted(most[:MAX_LINES], key=lambda line: line.line)


def _heat(costly: list[LineCost], source: list[str]) -> Table:
    """Return a table of the lines, with the columns that say something of one of them."""
    columns = {
        "  line": [str(each.line) for each in costly],
        "cost": [_share(each.cost) for each in costly],
        "L1": [_share(each.l1_share) for each in costly],
        "sectors": [
            _with_ideal(each.sectors_per_request, each.min_sectors_per_request) for each in costly
        ],
        "wavefronts": [
            _with_ideal(each.wavefronts_per_request, each.min_wavefronts_per_request)
            for each in costly
        ],
        "again": [
            f"{each.reads_again:.0f}×" if (each.reads_again or 0) >= 1.5 else "" for each in costly
        ],
        "lanes": [
            f"{each.lanes:.0f}" if each.lanes and each.lanes < WARP - 0.5 else "" for each in costly
        ],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim", expand=True)
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    for each, *cells in zip(costly, *shown.values(), strict=True):
        text = source[each.line - 1].strip() if each.line <= len(source) else ""
        table.add_row(*cells, Text(text, "dim"))
    return table


def _share(value: float | None) -> str:
    """Return a percentage, or nothing where it rounds to nothing."""
    return figures.percent(value) if value and value >= MIN_SHOWN_SHARE else ""


def _with_ideal(found: float | None, ideal: float | None) -> str:
    """Return a number, and the smallest possible number if that is less."""
    if found is None or ideal is None:
        return ""
    if found <= 1.05 * ideal:
        return f"{found:.1f}"
    return f"{found:.1f} ({ideal:.1f})"
