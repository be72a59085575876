"""The leaderboard as a static site: opens from disk, needs no network, runs no inline script.

A submission's page depends on its report alone and is named after it, so it is written once and
then left as it is; the boards and the list of all runs are written anew each time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.board import escaping, provenance
from harness.board.annotated_source import annotated_source, style_sheet
from harness.board.document import Document, StoreError
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.leagues import Leagues
from harness.board.ranking import Board, Filter, Row, Standing, rank, standing
from harness.judge import figures
from harness.judge.explain.examined import from_report
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Explanation, Roof
from harness.judge.explain.gpu import gpu_of
from harness.judge.stages.playoff import PlayOff
from harness.protocol.files import write_whole
from harness.protocol.report import Badge, DisassembledKernel, Report
from problem.cases import RANKED

MARKER = ".matmul-arena-site"
"""A folder with this file is a site of ours, which may be written over."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page that the navigation names."""

    file: str
    title: str


_BOARD, _RUNS = Page("index.html", "Leaderboard"), Page("runs.html", "All runs")
_FILED: dict[str, object] = {"served": False, "announcements": (), "shortened": ""}
"""What a page on disk is not and has not."""

_ALWAYS = (_BOARD, _RUNS)
"""The pages that every site has, whatever its GPUs."""


@dataclass(frozen=True, slots=True)
class LeagueRow:
    """A line of the board's page, with its rank in every league."""

    row: Row
    ranks: str
    """One rank a league, separated by commas; empty where the row is not in it."""

    @property
    def first_league(self) -> str:
        return self.ranks.split(",", 1)[0]


class Site:
    """Writes the pages of some entries into a folder."""

    def __init__(
        self,
        folder: Path,
        entries: Iterable[Entry],
        edition: Edition,
        chosen: Filter | None = None,
        played: Sequence[PlayOff] = (),
    ) -> None:
        """played: the play-offs that count. Raises StoreError where the folder holds something
        else."""
        chosen = chosen or Filter()
        self.folder = folder
        self.edition = edition
        everything = list(entries)
        self.entries = [entry for entry in everything if chosen.admits(entry)]
        self.leagues = Leagues()
        self.boards = boards_by_gpu(everything, edition, self.leagues, chosen, played)
        names = file_names(list(self.boards))
        self.pages = [Page(names[gpu], gpu) for gpu in self.boards] or [_BOARD]
        self.pages.append(_RUNS)
        self._claim()

    def write_boards(self) -> None:
        """The boards, the list of all runs, and what they share."""
        self._write_assets()
        for page, boards in zip(self.pages, self.boards.values(), strict=False):
            self._write(page.file, "board.html", **board_page(boards, self.leagues))
        if not self.boards:
            self._write("index.html", "empty.html")
        overall = [boards[0] for boards in self.boards.values()]
        self._write("runs.html", "runs.html", **runs_page(self.entries, overall, self.edition))

    def write_entries(self, document: Callable[[str], Document]) -> Iterator[str | None]:
        """The pages of submissions that are not there yet; yields, as each is written, why it could
        not be and says only so, or None.

        document: gives a report by its entry's id.
        """
        folder = self.folder / "entries"
        folder.mkdir(exist_ok=True)
        wanted = {entry.short_id for entry in self.entries}
        fresh = self._marker().read_text() == _template_version()
        there = {page.stem for page in folder.glob("*.html")}
        for gone in there - wanted:
            for suffix in (".html", ".json", ".cu"):
                (folder / gone).with_suffix(suffix).unlink(missing_ok=True)
        for entry in self.entries:
            if not (fresh and entry.short_id in there):
                yield self._write_entry(entry, document)
        self._marker().write_text(_template_version())

    def _write_entry(self, entry: Entry, document: Callable[[str], Document]) -> str | None:
        """A page that cannot be written costs that page, and not the site."""
        stem = f"entries/{entry.short_id}"
        try:
            found = document(entry.id)
            (self.folder / f"{stem}.json").write_text(found.json, encoding="utf-8")
            source = found.report.submission.source.encode()
            (self.folder / f"{stem}.cu").write_bytes(source)
            # The page comes last: where it is, the others are.
            page = entry_page(entry, found.report)
            self._write(f"{stem}.html", "entry.html", root="../", pages=_ALWAYS, **page)
        except OSError:
            raise  # the disk's fault, and so of all pages
        except Exception as error:
            why = f"{entry.short_id}: {type(error).__name__}: {error}"
            self._write(f"{stem}.html", "broken.html", root="../", pages=_ALWAYS, why=why)
            return why
        return None

    def _claim(self) -> None:
        if self.folder.exists() and not self._marker().exists() and any(self.folder.iterdir()):
            raise StoreError(
                f"{self.folder} holds something other than a leaderboard's site; nothing was "
                "written. Name an empty folder with --site."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._marker().touch()

    def _marker(self) -> Path:
        return self.folder / MARKER

    def _write_assets(self) -> None:
        assets = self.folder / "assets"
        assets.mkdir(exist_ok=True)
        for source in (files(__package__) / "assets").iterdir():
            (assets / source.name).write_bytes(source.read_bytes())
        with (assets / "site.css").open("a", encoding="utf-8") as sheet:
            sheet.write(style_sheet())
        library = Path(str(distribution("plotly").locate_file("plotly/package_data/plotly.min.js")))
        (assets / library.name).write_bytes(library.read_bytes())

    def _write(self, file: str, template: str, **values: object) -> None:
        frame = {"root": "", "here": file, "pages": self.pages, "edition": self.edition} | _FILED
        html = templates().get_template(template).render(frame | values)
        write_whole(self.folder / file, html)


REASONS = {
    Standing.REGRADE: "of another edition of the judge: regrade it",
    Standing.UNSTEADY: "unsteady: its interval is too wide to tell it from others",
    Standing.DISPUTED: "disputed: other reports say that it was rejected since; regrade it",
}
"""Why a scored run is not ranked."""


def boards_by_gpu(
    entries: Sequence[Entry],
    edition: Edition,
    leagues: Leagues,
    chosen: Filter | None = None,
    played: Sequence[PlayOff] = (),
) -> dict[str, list[Board]]:
    """Of each GPU model its board in every league; empty where nobody is in that."""
    chosen = chosen or Filter()
    ranked = [
        {
            board.gpu: board
            for board in rank(entries, edition, replace(chosen, badges=badges), played)
        }
        for badges in (chosen.badges | league for league in leagues.badges())
    ]
    gpus = dict.fromkeys(gpu for league in ranked for gpu in league)
    return {gpu: [league.get(gpu) or Board(gpu, edition) for league in ranked] for gpu in gpus}


def runs_page(
    entries: Iterable[Entry], boards: Iterable[Board], edition: Edition
) -> dict[str, Any]:
    """Every run, newest first, with what became of it."""
    newest = sorted(entries, key=lambda entry: (entry.created, entry.id), reverse=True)
    shown = {
        row.entry.id: row.standing.value
        for board in boards
        for row in (*board.rows, *board.unranked)
    }
    runs = [(entry, shown.get(entry.id) or _result(entry, edition)) for entry in newest]
    return {"runs": runs, "common": provenance.shared(newest)}


def _result(entry: Entry, edition: Edition) -> str:
    """Of a run that has no row on a board."""
    by_itself = standing(entry, edition)
    if by_itself is Standing.NOT_ACCEPTED:
        return entry.verdict
    return by_itself.value if by_itself in (Standing.QUICK, Standing.UNSCORED) else "accepted"


def board_page(boards: Sequence[Board], leagues: Leagues) -> dict[str, Any]:
    """boards: of one GPU, one a league."""
    overall = boards[0]
    rows: dict[str, Row] = {}
    ranks: dict[str, list[str]] = {}
    for league, board in enumerate(boards):
        for row in board.rows:
            rows.setdefault(row.entry.id, row)
            ranks.setdefault(row.entry.id, [""] * len(boards))[league] = str(row.rank)
    ordered = sorted(rows.values(), key=lambda row: (-row.score, row.entry.created))
    return {
        "board": overall,
        "common": provenance.shared(row.entry for row in (*overall.rows, *overall.unranked)),
        "ranked": RANKED.shape,
        "claims": sum(not row.entry.own for row in ordered),
        "rows": [LeagueRow(row, ",".join(ranks[row.entry.id])) for row in ordered],
        "records": sorted(
            (entry for place in leagues.of_some_cores() for entry in boards[place].records),
            key=lambda entry: entry.created,
        ),
        "days": len({row.entry.created[:10] for row in ordered}),
        "core_labels": leagues.core_labels(),
        "launch_labels": leagues.launch_labels(),
    }


def entry_page(entry: Entry, report: Report) -> dict[str, Any]:
    outcome = report.outcome
    examined = from_report(report)
    explanation = explain(examined) if examined else None
    return {
        "entry": entry,
        "report": report,
        "why": explanation if explanation and (explanation.units or explanation.notes) else None,
        "heat": {line.line: line.l1_share for line in explanation.lines} if explanation else {},
        "roof": _roof(report, explanation),
        "counterexample": getattr(outcome, "counterexample", None),
        "findings": getattr(outcome, "findings", ()),
        "listing": annotated_source(report),
        "roofline": _roofline(report),
    }


def _roof(report: Report, explanation: Explanation | None) -> Roof | None:
    """The peak of the units that multiply: on tensor cores as many useful operations as their
    products allow, or all where it is not known how many products there are."""
    gpu = gpu_of(report.device)
    if gpu is None or not isinstance(report.kernel, DisassembledKernel):
        return None
    if Badge.TENSOR_CORES not in report.kernel.badges:
        return Roof(name="FP32 units", tflops=gpu.fp32_tflops)
    roofs = explanation.roofs if explanation else ()
    counted = next((roof for roof in roofs if roof.name.startswith("tensor cores")), None)
    one = gpu.tensor_macs("BF16")
    if counted is not None:
        return counted
    return Roof(name="tensor cores, one BF16 product", tflops=gpu.tflops(one)) if one else None


def _roofline(report: Report) -> list[tuple[str, float]]:
    """Between which intensities (FLOP a byte of device memory) the kernel lies."""
    if not (report.score and report.device and report.device.fp32_peak_tflops):
        return []
    shape = RANKED.shape
    floats = shape.M * shape.N + shape.N * shape.K + shape.M * shape.K
    points = [("every matrix moved once", shape.flop / (4 * floats))]
    if report.counters:
        points.insert(0, ("as the blocks ask for it", report.counters.flop_per_global_byte))
    return points


def file_names(gpus: Sequence[str]) -> dict[str, str]:
    """A file for each GPU's board; the first is the site's first page."""
    names = {}
    for place, gpu in enumerate(gpus):
        slug = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
        names[gpu] = f"{slug or 'gpu'}-{place}.html" if place else "index.html"
    return names


@lru_cache
def templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("harness.board"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (
        figures.ratio,
        figures.milliseconds,
        figures.tflops,
        figures.percent,
        figures.minute,
        figures.grouped,
        _lines,
    ):
        environment.filters[function.__name__.lstrip("_")] = function
    environment.globals["own_facts"] = provenance.own
    environment.globals["interval"] = figures.interval
    environment.globals["reasons"] = REASONS
    return environment


def _harmless(value: object) -> object:
    """The one door to a page: every text that a template prints goes through here, and is then
    escaped for HTML. Markup is made by us alone."""
    return escaping.one_line(value) if type(value) is str else value


def _lines(text: str) -> Markup:
    return Markup(escape(escaping.lines(text)))


@lru_cache
def _template_version() -> str:
    """Changes whenever a submission's page would: a hash of this package and the edition."""
    digest = hashlib.sha256(str(Edition.current()).encode())
    package = Path(str(files(__package__)))
    for file in sorted((*package.glob("*.py"), *package.glob("*/*.html"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()
