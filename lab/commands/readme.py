"""Write the tables of the committed reports into reports/README.md and solutions/README.md.

reports/GPU/KERNEL.json belongs to solutions/KERNEL.cu. If the code of a kernel
changes, its report is invalid; comments may change.

example:
  python3 -m lab readme

The scores are written into the first file, and which kernel is the fastest at
which size into the second one, each between its markers.
"""

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import median

from harness.board import escaping
from harness.board.document import Committed, read_folder
from harness.board.ranking import Board, Row, rank
from harness.cli.commands._command import Exit
from harness.cli.commands.leaderboard import REPORTS
from harness.cli.views.console import Terminal
from harness.compiling import lexical
from harness.judge import figures
from harness.protocol.errors import StoreError, UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Badge, Report, Score, Unscored
from problem.cases import RANKED, Shape


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reports",
        type=Path,
        default=REPORTS,
        metavar="DIR",
        help="the folder of reports, DIR/GPU/KERNEL.json, and of the README.md",
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    reports, solutions = arguments.reports, arguments.reports.parent / "solutions"
    found = read_folder(reports)
    problems = mismatches(found, solutions)
    if problems:
        raise UsageError("the README was not written.\n" + "\n".join(problems))
    scores, choice = reports / "README.md", solutions / "README.md"
    tables = (
        (scores, BOARD, markdown(found, solutions, scores)),
        (choice, CHOICE, fastest(found, solutions, choice)),
    )
    for page, name, table in tables:
        changed = write(page, name, table)
        terminal.note(f"{page} {'was written' if changed else 'is as it should be'}.")
    return Exit.YES


BOARD, CHOICE = "board", "choice"
"""The names of the tables, which are between <!-- NAME --> and <!-- /NAME -->."""
EMPTY = "No report is committed yet."

COLUMNS = ("kernel", "score", "95 % interval", "rank", "ms", "of FP32 peak", "cores", "accuracy")
"""The columns. Accuracy is shown only if a report has it. The score links to the report."""


def markdown(reports: Sequence[Committed], solutions: Path, readme: Path) -> str:
    """Return the boards in Markdown, with links relative to the README's folder."""
    by_id = {committed.document.id: committed for committed in reports}

    def link(text: str, target: Path) -> str:
        relative = Path(os.path.relpath(target, readme.parent)).as_posix()
        return f"[{text}]({relative.replace(' ', '%20')})"

    def line(row: Row) -> str:
        entry = row.entry
        cells = (
            link(_cell(entry.name), solutions / f"{entry.name}.cu"),
            link(f"**{figures.ratio(entry.score)}**", by_id[entry.id].path),
            figures.interval(row.low, row.high),
            row.status.value if row.rank is None else str(row.rank),
            figures.milliseconds(entry.kernel_ms),
            figures.percent(entry.peak_share),
            (entry.cores or "–").removesuffix("-cores"),
            entry.accuracy or "–",
        )
        return f"| {' | '.join(cells[:columns])} |"

    entries = [committed.entry for committed in reports]
    columns = len(COLUMNS) if any(entry.accuracy for entry in entries) else len(COLUMNS) - 1
    boards = rank(entries)
    return "\n\n".join(_board(board, line, by_id, columns) for board in boards) or EMPTY


def _board(
    board: Board, line: Callable[[Row], str], by_id: dict[str, Committed], columns: int
) -> str:
    rows = _in_order(board)
    reports = [by_id[row.entry.id].document.report for row in rows]
    return "\n".join(
        (
            f"**{_cell(board.gpu)}**: score = t(cuBLAS SGEMM) / t(kernel); 1.00 is cuBLAS.",
            "",
            f"| {' | '.join(COLUMNS[:columns])} |",
            "|---|---:|---|---:|---:|---:|---|" + "---|" * (columns == len(COLUMNS)),
            *map(line, rows),
            "",
            _provenance(rows, reports) + (f" {_cell(board.scope)}" if board.rows else ""),
            *_chart(board),
            *_other_sizes(reports),
        )
    )


def markers(name: str) -> tuple[str, str]:
    """Return the lines before and after a table."""
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def section(readme: str, name: str) -> str | None:
    """Return the text between a table's markers, or None if there are no markers."""
    begin, end = markers(name)
    if readme.count(begin) != 1 or readme.count(end) != 1:
        return None
    inside, found, _ = readme.partition(begin)[2].partition(end)
    return inside.strip("\n") if found else None


def write(readme: Path, name: str, table: str) -> bool:
    """Put a table between the README's markers; return whether that changed the file."""
    text = readme.read_text(encoding="utf-8")
    begin, end = markers(name)
    if section(text, name) is None:
        raise StoreError(f"{readme} needs one {begin} and, after it, one {end}.")
    before, after = text.partition(begin)[0], text.partition(end)[2]
    new = f"{before}{begin}\n{table}\n{end}{after}"
    if new == text:
        return False
    write_whole(readme, new)
    return True


_ANY_CORES = frozenset({Badge.CUDA_CORES, Badge.TENSOR_CORES})
CHOICES: tuple[tuple[str, frozenset[str], frozenset[Badge]], ...] = (
    ("CUDA cores, accuracy A", frozenset("A"), frozenset({Badge.CUDA_CORES})),
    ("accuracy A", frozenset("A"), _ANY_CORES),
    ("accuracy A or B", frozenset("AB"), _ANY_CORES),
)
"""The columns of the second table: a heading, the permitted accuracy grades, the permitted
cores."""

MIN_CHOICE = 3
"""Kernels that have a score at a size of that table, at least."""


def fastest(reports: Sequence[Committed], solutions: Path, readme: Path) -> str:
    """Return a table in Markdown of the fastest kernel for each size and accuracy. Sizes at which
    too few kernels have a score to choose from are left out."""
    scores: dict[Shape, dict[str, float]] = {}
    entries = {committed.entry.name: committed.entry for committed in reports}
    for committed in reports:
        report, name = committed.document.report, committed.entry.name
        if report.score is not None:
            scores.setdefault(RANKED.shape, {})[name] = report.score.ratio
        for size in report.measurement.sizes if report.measurement else ():
            if isinstance(size.score, Score):
                scores.setdefault(size.shape, {})[name] = size.score.ratio

    def cell(at: dict[str, float], grades: frozenset[str], cores: frozenset[Badge]) -> str:
        fit = [
            name for name in at if entries[name].accuracy in grades and entries[name].cores in cores
        ]
        if not fit:
            return "–"
        best = max(fit, key=lambda name: at[name])
        target = Path(os.path.relpath(solutions / f"{best}.cu", readme.parent)).as_posix()
        return f"[{_cell(best)}]({target.replace(' ', '%20')}) {figures.ratio(at[best])}"

    lines = [f"| M×N×K | {' | '.join(heading for heading, *_ in CHOICES)} |"]
    lines.append("|---|" + "---|" * len(CHOICES))
    shown = [shape for shape in scores if len(scores[shape]) >= MIN_CHOICE]
    for shape in sorted(shown, key=lambda shape: (shape.M * shape.N * shape.K, shape.N)):
        cells = [cell(scores[shape], grades, cores) for _, grades, cores in CHOICES]
        lines.append(f"| {shape} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _in_order(board: Board) -> list[Row]:
    """Return the rows in the order of their names, in which solutions should be read."""
    return sorted((*board.rows, *board.unranked), key=lambda row: row.entry.name)


def _provenance(rows: Sequence[Row], reports: Sequence[Report]) -> str:
    """Return a sentence on the values that the rows share, and on the ranges of the others."""
    entries = [row.entry for row in rows]
    watts = [
        median(round.power_w for round in report.measurement.rounds)
        for report in reports
        if report.measurement
    ]

    def span(values: Iterable[object]) -> str:
        different = sorted({str(value) for value in values if value is not None})
        if len(different) < 2:
            return "".join(different) or "–"
        return f"{different[0]} to {different[-1]}"

    return (
        _cell(
            f"SM clock {span(entry.clock_mhz for entry in entries)} MHz, "
            f"{min(watts):.0f} to {max(watts):.0f} W as read by NVML (medians of the rounds; NVML "
            "updates too slowly for short kernels), "
            f"driver {span(entry.driver for entry in entries)}, "
            f"CUDA {span(entry.cuda for entry in entries)}, "
            f"cuBLAS {span(entry.cublas for entry in entries)}, "
            f"judge {span(entry.judge for entry in entries)}, "
            f"cases {span(entry.cases for entry in entries)}, "
            f"graded {span(entry.created[:10] for entry in entries)}. "
        )
        + "Each score links to its report, which has registers, occupancy and all other data."
    )


def _other_sizes(reports: Iterable[Report]) -> list[str]:
    """Return tables of scores at other sizes for the reports that have them (`--sizes`). There is
    one row for each size, and several tables where there are many kernels."""
    scored = [
        (report.submission.name, {str(size.shape): size.score for size in report.measurement.sizes})
        for report in reports
        if report.measurement and report.measurement.sizes
    ]
    if not scored:
        return []
    shapes = list(dict.fromkeys(chain.from_iterable(sizes for _, sizes in scored)))

    def cell(score: Score | Unscored | None) -> str:
        return figures.ratio(score.ratio) if isinstance(score, Score) else "–"

    lines = ["", "Other sizes, M×N×K, for information:"]
    for start in range(0, len(scored), 6):
        some = scored[start : start + 6]
        lines += [
            "",
            f"| size | {' | '.join(_cell(name) for name, _ in some)} |",
            f"|---|{'---:|' * len(some)}",
            *(
                f"| {shape} | {' | '.join(cell(sizes.get(shape)) for _, sizes in some)} |"
                for shape in shapes
            ),
        ]
    return lines


def _chart(board: Board) -> list[str]:
    """Return a Mermaid chart, whose source is readable where it is not drawn."""
    rows = [row for row in _in_order(board) if row.rank is not None]
    if not rows:
        return []
    scores = [row.entry.score or 0 for row in rows]
    labels = (escaping.one_line(row.entry.name).replace('"', "'") for row in rows)
    names = ", ".join(f'"{each}"' for each in labels)
    return [
        "",
        "```mermaid",
        "xychart-beta horizontal",
        '    title "Score; the line at 1 is cuBLAS"',
        f"    x-axis [{names}]",
        f'    y-axis "× cuBLAS" 0 --> {max(1.1, 1.05 * max(scores)):.2f}',
        f"    bar [{', '.join(f'{score:.3f}' for score in scores)}]",
        f"    line [{', '.join('1' for _ in scores)}]",
        "```",
    ]


def _cell(text: str) -> str:
    """Return the text with every character escaped that has a meaning in a Markdown table."""
    return "".join(
        f"\\{character}" if character in "\\`*[]<>|" else character
        for character in escaping.one_line(text)
    )


def mismatches(reports: Iterable[Committed], solutions: Path) -> list[str]:
    """Return a message for each report that does not match its kernel or its folder."""
    return [
        f"{committed.path}: {problem}"
        for committed in reports
        for problem in _problems(committed, solutions)
    ]


def _problems(committed: Committed, solutions: Path) -> Iterator[str]:
    report = committed.document.report
    kernel = solutions / f"{committed.path.stem}.cu"
    if report.submission.name != committed.path.stem:
        yield f"is the report of {report.submission.name}, not of {committed.path.stem}."
    elif not kernel.is_file():
        yield f"there is no {kernel}; remove the report."
    elif _tokens(kernel.read_text(encoding="utf-8")) != _tokens(report.submission.source):
        yield f"{kernel} has changed since; grade it again."
    gpu = report.device.name if report.device else "none"
    folder = committed.path.parent.name
    if folder.replace("-", " ").casefold() not in gpu.casefold():
        yield f"was graded on {gpu}, which is not {folder}."
    if report.score is None or report.quick:
        yield "is no complete accepted run on a GPU; grade the kernel again."


def _tokens(source: str) -> list[str]:
    """Return the tokens of a source of this repository, without comments except the launch line."""
    launch = [each[0] for each in lexical.comments(source) if each[0].startswith("// solve:")]
    return [*launch, *re.findall(r"\w+|\S", lexical.without_comments(source))]
