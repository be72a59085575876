"""Pages as HTML, from the board's templates and the arena's own; files that are compressed once."""

import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from fastapi import Request, Response
from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.responses import HTMLResponse

from harness.arena.web.context import PRIVATE, Visitor
from harness.board import site as static
from harness.board.entry import Version
from harness.board.site import BOARD, RUNS, Page
from harness.judge import figures

PAGES = (
    Page("submit", "Submit"),
    Page("mine", "My submissions"),
    RUNS,
    Page("problem", "Problem and rules"),
)
"""The entries of every page's navigation in addition to the boards."""

PER_PAGE = 50
"""Rows of a long list."""

ORGANISERS = Page("organiser", "Organiser")


def page(
    visitor: Visitor,
    template: str,
    *,
    status: int = 200,
    boards: Sequence[Page] = (BOARD,),
    shared: bool = False,
    **values: object,
) -> HTMLResponse:
    """Return a page. here: its entry in the navigation. boards: their entries there. shared: it is
    the same for everybody, and so for a visitor of whom nothing is known."""
    organisers = (ORGANISERS,) if visitor.organises else ()
    frame = {
        "served": True,
        "root": f"{visitor.site.root}/",
        "title": visitor.rules.title,
        "version_of_judge": Version.current(),
        "shortened": "",
        "here": "",
        "shared": shared,
        "person": visitor.person,
        "pages": (*boards, *PAGES, *organisers),
    }
    html = templates().get_template(template).render(frame | values)
    return HTMLResponse(html, status, None if shared else PRIVATE)


def fragment(template: str, **values: object) -> str:
    """Return a part of a page."""
    return templates().get_template(template).render(values).strip()


@lru_cache
def templates() -> Environment:
    environment = static.templates().overlay(
        loader=ChoiceLoader([PackageLoader("harness.arena"), PackageLoader("harness.board")])
    )
    environment.filters["quantity"] = figures.quantity
    environment.filters["duration"] = _duration
    environment.globals["per_page"] = PER_PAGE
    return environment


def _duration(seconds: float) -> str:
    """Write a duration in the largest unit of which it has at least two."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class File:
    """Compressed content, with a tag that is different for other content."""

    compressed: bytes
    tag: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        compressed = gzip.compress(content, compresslevel=4, mtime=0)
        return cls(compressed, hashlib.sha256(compressed).hexdigest()[:16])

    def answer(self, request: Request, media_type: str, cache: str = "no-cache") -> Response:
        """Return the file, or 304 where the visitor has it already."""
        tag = f'W/"{self.tag}"'
        headers = {"ETag": tag, "Vary": "Accept-Encoding, Cookie", "Cache-Control": cache}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(self.compressed), 200, headers, media_type)
        headers["Content-Encoding"] = "gzip"
        return Response(self.compressed, 200, headers, media_type)


@lru_cache
def assets() -> dict[str, File]:
    """Return every file below /assets/, compressed."""
    found = static.assets("harness.board", "harness.arena")
    return {name: File.of(content) for name, content in found.items()}
