"""The board of the solutions of a repository, from reports that are committed beside them.

reports/<gpu>/<solution>.json belongs to solutions/<solution>.cu, word for word of its code: a
changed kernel cannot keep an old score, but its first comment may quote it. The board stands in the
README between two markers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import escaping, figures
from harness.compiling.errors import SourceError
from harness.compiling.source import parse
from harness.files import write_whole
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Board, Edition, Row, rank
from harness.leaderboard.store import Document, StoreError
from harness.report import Report, Score, Unscored

BEGIN, END = "<!-- board -->", "<!-- /board -->"
EMPTY = "No report is committed yet."


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed report."""

    path: Path
    document: Document

    @property
    def entry(self) -> Entry:
        return Entry.of(self.document.report, self.document.id)


def read(folder: Path) -> list[Committed]:
    """Every report of the folder. Raises StoreError where a file is none."""
    return [
        Committed(path, Document.parse(path.read_text(encoding="utf-8"), str(path)))
        for path in sorted(folder.glob("*/*.json"))
    ]


def misfits(reports: Iterable[Committed], solutions: Path) -> list[str]:
    """What does not belong together, one sentence each; empty where all is well."""
    return [
        f"{committed.path}: {problem}"
        for committed in reports
        for problem in _problems(committed, solutions)
    ]


def markdown(reports: Sequence[Committed], solutions: Path, readme: Path) -> str:
    """The boards as a table and a chart each, with links that hold from the README's folder."""
    by_id = {committed.document.id: committed for committed in reports}

    def link(text: str, target: Path) -> str:
        relative = Path(os.path.relpath(target, readme.parent)).as_posix()
        return f"[{text}]({relative.replace(' ', '%20')})"

    def line(row: Row) -> str:
        entry, committed = row.entry, by_id[row.entry.id]
        kernel = solutions / f"{entry.name}.cu"
        cells = (
            link(_cell(entry.name), kernel),
            f"**{figures.ratio(entry.score)}**",
            figures.interval(entry.low, entry.high),
            "regrade" if row.rank is None else str(row.rank),
            figures.milliseconds(entry.kernel_ms),
            figures.percent(entry.peak_share),
            *_resources(committed.document.report),
            ", ".join(sorted(entry.badges)),
            _cell(_elsewhere(kernel)),
            link("report", committed.path),
        )
        return f"| {' | '.join(cells)} |"

    boards = rank([committed.entry for committed in reports], Edition.current())
    parts = [
        "\n".join(
            (
                f"**{_cell(board.gpu)}**: score = t(cuBLAS SGEMM) / t(kernel); 1.00 is cuBLAS.",
                "",
                f"| {' | '.join(_COLUMNS)} |",
                "|---|---:|---|---:|---:|---:|---:|---:|---|---:|---|---|---|",
                *map(line, _in_order(board)),
                "",
                _provenance(board),
                *_chart(board),
                *_other_sizes(by_id[row.entry.id].document.report for row in _in_order(board)),
            )
        )
        for board in boards
    ]
    return "\n\n".join(parts) or EMPTY


def section(readme: str) -> str | None:
    """What stands between the markers; None where there are none."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1:
        return None
    inside, found, _ = readme.partition(BEGIN)[2].partition(END)
    return inside.strip("\n") if found else None


def write(readme: Path, board: str) -> bool:
    """Put the board between the README's markers; whether that changed the file."""
    text = readme.read_text(encoding="utf-8")
    if section(text) is None:
        raise StoreError(f"{readme} needs one {BEGIN} and, after it, one {END}.")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    new = f"{before}{BEGIN}\n{board}\n{END}{after}"
    if new == text:
        return False
    write_whole(readme, new)
    return True


_COLUMNS = (
    *("kernel", "score", "95 % interval", "rank", "ms", "of FP32 peak", "registers"),
    *("shared memory", "occupancy", "power", "badges", "elsewhere", ""),
)


def _in_order(board: Board) -> list[Row]:
    """By name, which is the order in which one reads them."""
    return sorted((*board.rows, *board.regrade), key=lambda row: row.entry.name)


def _resources(report: Report) -> tuple[str, str, str, str]:
    """Registers, shared memory, occupancy, and the power of the rounds."""
    facts = report.kernel
    if facts is None:
        return "–", "–", "–", "–"
    resources, occupancy = facts.resources, facts.occupancy
    limited = f", by {occupancy.limited_by}" if occupancy.fraction < 1 else ""
    watts = [round.power_w for round in report.measurement.rounds] if report.measurement else []
    return (
        str(resources.registers),
        f"{resources.shared_bytes / 1024:.3g} KiB",
        f"{figures.percent(occupancy.fraction)}{limited}",
        f"{median(watts):.0f} W" if watts else "–",
    )


def _other_sizes(reports: Iterable[Report]) -> list[str]:
    """Scores at other sizes, of those that were graded with `--sizes`."""
    scores = {
        report.submission.name: {str(size.shape): size.score for size in report.measurement.sizes}
        for report in reports
        if report.measurement and report.measurement.sizes
    }
    if not scores:
        return []
    shapes = list(dict.fromkeys(shape for sizes in scores.values() for shape in sizes))

    def cell(score: Score | Unscored | None) -> str:
        return figures.ratio(score.ratio) if isinstance(score, Score) else "–"

    return [
        "",
        "Other sizes, M×N×K, for information:",
        "",
        f"| kernel | {' | '.join(shapes)} |",
        f"|---|{'---:|' * len(shapes)}",
        *(
            f"| {_cell(name)} | {' | '.join(cell(sizes.get(shape)) for shape in shapes)} |"
            for name, sizes in scores.items()
        ),
    ]


_ELSEWHERE = re.compile(r"^// Elsewhere: (.+)\.$", re.MULTILINE)


def _elsewhere(kernel: Path) -> str:
    """What others measured with the same idea, as the kernel's first comment quotes it."""
    found = _ELSEWHERE.search(kernel.read_text(encoding="utf-8")) if kernel.is_file() else None
    return found[1] if found else ""


def _problems(committed: Committed, solutions: Path) -> Iterator[str]:
    report = committed.document.report
    kernel = solutions / f"{committed.path.stem}.cu"
    if report.submission.name != committed.path.stem:
        yield f"is the report of {report.submission.name}, not of {committed.path.stem}."
    elif not kernel.is_file():
        yield f"there is no {kernel}; remove the report."
    elif report.kernel and _code_sha256(kernel) != report.kernel.code_sha256:
        yield f"{kernel} has changed since; grade it again."
    gpu = report.device.name if report.device else "none"
    folder = committed.path.parent.name
    if folder.replace("-", " ").casefold() not in gpu.casefold():
        yield f"was graded on {gpu}, which is not {folder}."
    if report.score is None or report.quick:
        yield "is no complete accepted run on a GPU; grade the kernel again."


def _code_sha256(kernel: Path) -> str | None:
    """Of the code without its comments; None where it cannot be read as a submission."""
    try:
        return parse(kernel.read_text(encoding="utf-8")).code_sha256
    except SourceError:
        return None


def _provenance(board: Board) -> str:
    entries = [row.entry for row in (*board.rows, *board.regrade)]

    def span(values: Iterable[object]) -> str:
        different = sorted({str(value) for value in values if value is not None})
        if len(different) < 2:
            return "".join(different) or "–"
        return f"{different[0]} to {different[-1]}"

    return (
        f"SM clock {span(entry.clock_mhz for entry in entries)} MHz and power as NVML read it "
        "(medians of the rounds; a short kernel is over before the reading has caught up), "
        f"driver {span(entry.driver for entry in entries)}, "
        f"CUDA {span(entry.cuda for entry in entries)}, "
        f"cuBLAS {span(entry.cublas for entry in entries)}, "
        f"judge {span(entry.judge for entry in entries)}, "
        f"cases {span(entry.cases for entry in entries)}, "
        f"graded {span(entry.created[:10] for entry in entries)}."
    )


def _chart(board: Board) -> list[str]:
    """A Mermaid chart, which code hosts draw and which is readable where they do not."""
    entries = [row.entry for row in _in_order(board) if row.rank is not None]
    if not entries:
        return []
    scores = [entry.score or 0.0 for entry in entries]
    names = ", ".join(f'"{_label(entry.name)}"' for entry in entries)
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
    """Text that is nothing but text in a Markdown table."""
    return "".join(
        f"\\{character}" if character in "\\`*[]<>|" else character
        for character in escaping.one_line(text)
    )


def _label(text: str) -> str:
    return escaping.one_line(text).replace('"', "'")
