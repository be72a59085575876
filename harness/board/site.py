"""The leaderboard as a static site: opens from disk, needs no network, runs no inline script.

A submission's page depends on its report alone and is named after it, so it is written once and
then left as it is. The boards and the list of all runs are written again each time.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.board import escaping
from harness.board.annotated_source import annotated_source, style_sheet
from harness.board.document import Document
from harness.board.entry import Entry, Version, own_facts, usual_facts
from harness.board.ranking import EVERYTHING, Board, Filter, Status, rank, status
from harness.judge import figures
from harness.judge.explain.examination import from_report
from harness.judge.explain.explain import explain
from harness.protocol.errors import StoreError
from harness.protocol.files import write_whole
from harness.protocol.report import Report
from problem.cases import RANKED

MARKER = ".matmul-arena-site"
"""A folder with this file is a site of ours, which may be overwritten."""


@dataclass(frozen=True, slots=True)
class Page:
    file: str
    title: str


BOARD, RUNS = Page("index.html", "Leaderboard"), Page("runs.html", "All runs")
_ON_DISK: dict[str, object] = {"served": False, "shortened": ""}
"""The values of the frame by which a page on disk differs from one that an arena serves."""

_ALWAYS = (BOARD, RUNS)
"""The pages that every site has, regardless of its GPUs."""


class Site:
    """Writes the pages of some entries into a folder."""

    def __init__(self, folder: Path, entries: Iterable[Entry], chosen: Filter = EVERYTHING) -> None:
        """Raises StoreError where the folder holds something else."""
        self.folder, self._marker = folder, folder / MARKER
        everything = list(entries)
        self.entries = [entry for entry in everything if chosen.admits(entry)]
        self.boards = rank(everything, chosen)
        self.pages = [*pages_of(self.boards), RUNS]
        self._take_folder()

    def write_boards(self) -> None:
        """Write the boards, the list of all runs, and what they share."""
        self._write_assets()
        for page, board in zip(self.pages, self.boards, strict=False):
            self._write(page.file, "board.html", **board_page(board))
        if not self.boards:
            self._write(BOARD.file, "empty.html")
        self._write(RUNS.file, "runs.html", **runs_page(self.entries, self.boards))

    def write_entries(self, document: Callable[[str], Document]) -> Iterator[str | None]:
        """Write the pages of submissions that are missing; yield, for each, None or the reason for
        which its page says only that it could not be written.

        document: returns a report by its entry's id.
        """
        folder = self.folder / "entries"
        folder.mkdir(exist_ok=True)
        wanted = {entry.short_id for entry in self.entries}
        fresh = self._marker.read_text() == _template_version()
        there = {page.stem for page in folder.glob("*.html")}
        for gone in there - wanted:
            for suffix in (".html", ".json", ".cu"):
                (folder / gone).with_suffix(suffix).unlink(missing_ok=True)
        for entry in self.entries:
            if not (fresh and entry.short_id in there):
                yield self._write_entry(entry, document)
        self._marker.write_text(_template_version())

    def _write_entry(self, entry: Entry, document: Callable[[str], Document]) -> str | None:
        """Write one page; a failure costs that page and not the site."""
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

    def _take_folder(self) -> None:
        if self.folder.exists() and not self._marker.exists() and any(self.folder.iterdir()):
            raise StoreError(
                f"{self.folder} holds something other than a leaderboard's site; nothing was "
                "written. Name an empty folder with --site."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._marker.touch()

    def _write_assets(self) -> None:
        folder = self.folder / "assets"
        folder.mkdir(exist_ok=True)
        for name, content in assets(__package__).items():
            (folder / name).write_bytes(content)

    def _write(self, file: str, template: str, **values: object) -> None:
        version = Version.current()
        frame = {"root": "", "here": file, "pages": self.pages, "version_of_judge": version}
        html = templates().get_template(template).render(frame | _ON_DISK | values)
        write_whole(self.folder / file, html)


REASONS = {
    Status.OTHER_VERSION: "graded by another version of the judge: regrade it",
    Status.UNSTEADY: "its interval is too wide",
    Status.UNVERIFIED: "",
}
"""The reasons for which a score is not ranked, where the heading does not say so."""


def board_page(board: Board) -> dict[str, Any]:
    """Return the values of the template of a board."""
    rows = (*board.rows, *board.unranked)
    return {
        "board": board,
        "rows": board.rows,
        "unverified": board.unverified,
        "common": usual_facts(row.entry for row in rows),
        "ranked": RANKED.shape,
        "graded": any(row.entry.accuracy for row in rows),
    }


def runs_page(entries: Iterable[Entry], boards: Iterable[Board]) -> dict[str, Any]:
    """Return the values of the template of all runs: newest first, each with its status."""
    newest = sorted(entries, key=lambda entry: (entry.created, entry.id), reverse=True)
    versions = {board.gpu: board.version for board in boards}
    runs = [(entry, _result(entry, versions.get(entry.device or ""))) for entry in newest]
    return {"runs": runs, "common": usual_facts(newest)}


def _result(entry: Entry, version: Version | None) -> str:
    found = status(entry, version or Version.current())
    if found is Status.NOT_ACCEPTED:
        return entry.verdict if entry.verified else f"{entry.verdict}, unverified"
    return "accepted" if found is Status.RANKED else f"accepted, {found.value}"


def entry_page(entry: Entry, report: Report) -> dict[str, Any]:
    """Return the values of the template of a submission's page."""
    outcome = report.outcome
    examined = from_report(report)
    explanation = explain(examined) if examined else None
    return {
        "entry": entry,
        "report": report,
        "why": explanation if explanation and (explanation.units or explanation.notes) else None,
        "heat": {line.line: line.cost for line in explanation.lines} if explanation else {},
        "machine_code": {line.line: line for line in getattr(report.kernel, "lines", ())},
        "counterexample": getattr(outcome, "counterexample", None),
        "findings": getattr(outcome, "findings", ()),
        "listing": annotated_source(report),
    }


def assets(*packages: str) -> dict[str, bytes]:
    """Return the scripts and style sheets of these packages, which include this one."""
    found = {
        source.name: source.read_bytes()
        for package in packages
        for source in (files(package) / "assets").iterdir()
    }
    found["site.css"] += style_sheet().encode()
    library = Path(str(distribution("plotly").locate_file("plotly/package_data/plotly.min.js")))
    return {**found, library.name: library.read_bytes()}


def pages_of(boards: Sequence[Board]) -> list[Page]:
    """Return the page of each board; the first is the site's first page, which there always is."""
    pages = []
    for place, board in enumerate(boards):
        slug = re.sub(r"[^a-z0-9]+", "-", board.gpu.lower()).strip("-")
        pages.append(Page(f"{slug or 'gpu'}-{place}.html" if place else BOARD.file, board.gpu))
    return pages or [BOARD]


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
        _when,
    ):
        environment.filters[function.__name__.lstrip("_")] = function
    environment.globals["own_facts"] = own_facts
    environment.globals["interval"] = figures.interval
    environment.globals["reasons"] = REASONS
    return environment


def _harmless(value: object) -> object:
    """Return a value that a template prints, without control characters but line breaks and tabs;
    HTML is escaped later."""
    return escaping.laid_out(value) if type(value) is str else value


def _lines(text: str) -> Markup:
    return Markup(escape(escaping.lines(text)))


def _when(at: datetime | None) -> Markup:
    """Return a time as an element, which an arena's script shows in the reader's time zone."""
    if at is None:
        return Markup("–")
    written = at.isoformat(), figures.minute(at)
    return Markup('<time data-moment datetime="{}">{}</time>').format(*written)


@lru_cache
def _template_version() -> str:
    """Return a hash of this package and its version: it changes when a submission's page would."""
    digest = hashlib.sha256(str(Version.current()).encode())
    package = Path(str(files(__package__)))
    for file in sorted((*package.glob("*.py"), *package.glob("*/*.html"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()
