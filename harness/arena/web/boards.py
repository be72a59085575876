"""The boards, rendered once for each change and not for each visitor.

A board changes with a result, a withdrawal or the rules. In between its pages, and its JSON for
programs, are kept as compressed bytes, and a visitor costs neither a query nor a thread.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from starlette.concurrency import run_in_threadpool

from harness.arena.problems import Problem
from harness.arena.processes import NICENESS
from harness.arena.store import board, people
from harness.arena.web.context import Site, Visitor, now
from harness.arena.web.rendering import File, page
from harness.board import keys
from harness.board.ranking import as_data, rank
from harness.board.site import BOARD, RUNS, board_page, pages_of, runs_page

FRESH_SECONDS = 0.5
"""The age up to which a board is shown without a check, so that a burst is ranked together."""

PATIENCE_SECONDS = 0.2
"""The time that a visitor waits for a new board before getting the previous one."""

CHECK_INTERVAL_FACTOR = 2
"""A board is shown without a check for this many times the time that rendering it took."""

MAX_ROWS = 200
"""The most rows on a page, unless all are asked for."""

DATA = "board.json"


class Form(StrEnum):
    PAGES = "pages"
    """Pages for people, with the first rows of each board."""
    WHOLE_PAGES = "whole pages"
    DATA = "data"
    """The board of each GPU model, for programs."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The facts that boards depend on in addition to the database.

    stamp: of the rules. frozen_at: only what was submitted before counts.
    everything: also what was not accepted. pseudonyms: authors have pseudonyms.
    readable: kernels lead to their pages, which the reader may see.
    """

    form: Form
    stamp: tuple[int, ...]
    frozen_at: datetime | None
    everything: bool = False
    pseudonyms: bool = False
    readable: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """The files of a board by their names, all from one transaction."""

    version: int
    files: Mapping[str, File]


Render = Callable[[Variant], Awaitable[Rendered]]


@dataclass(frozen=True, slots=True)
class _Kept:
    rendered: Rendered
    seconds: float
    """The time that it took to make."""
    checked: float
    """The time at which it was last found to be up to date."""

    @property
    def fresh(self) -> bool:
        age = time.monotonic() - self.checked
        return age < max(FRESH_SECONDS, CHECK_INTERVAL_FACTOR * self.seconds)


class Boards:
    """Keeps the latest boards of each kind of visitor."""

    def __init__(self, site: Site, elsewhere: Render | None = None) -> None:
        """elsewhere: renders in another process; None for this one."""
        self._site = site
        self._render = elsewhere or (lambda variant: run_in_threadpool(render, site, variant))
        self._kept: dict[Variant, _Kept] = {}
        self._making: dict[Variant, asyncio.Task[Rendered]] = {}

    async def rendered(self, visitor: Visitor, form: Form) -> Rendered:
        """Return the boards as this visitor may see them: frozen for all but organisers.

        Raises Problem.
        """
        rules = self._site.rules
        organises = visitor.organises
        frozen = rules.frozen_from if rules.frozen(now()) and not organises else None
        if rules.private_board and visitor.person is None:
            raise Problem(401, "Sign in first: only participants see the boards.")
        hidden = rules.pseudonyms and not organises
        everything = organises or rules.failures
        readable = visitor.reads_imported
        variant = Variant(form, self._site.rules_file.stamp, frozen, everything, hidden, readable)
        kept = self._kept.get(variant)
        if kept is not None and kept.fresh:
            return kept.rendered
        # It is rendered once for all visitors who wait. One who disconnects cancels nothing.
        task = self._making.get(variant)
        if task is None:
            task = self._making[variant] = asyncio.create_task(self._renewed(variant))
            task.add_done_callback(lambda task: self._over(variant, task))
        if kept is None:
            return await asyncio.shield(task)
        await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        return self._kept.get(variant, kept).rendered

    def _over(self, variant: Variant, task: asyncio.Task[Rendered]) -> None:
        del self._making[variant]
        if not task.cancelled():
            task.exception()  # retrieved, in case no visitor waits any more

    async def _renewed(self, variant: Variant) -> Rendered:
        began = time.monotonic()
        kept = self._kept.get(variant)
        if kept and kept.rendered.version == await run_in_threadpool(self._version):
            renewed = replace(kept, checked=began)
        else:
            rendered = await self._render(variant)
            done = time.monotonic()
            renewed = _Kept(rendered, done - began, done)
        # Boards of earlier rules are not asked for any more.
        current = {each: it for each, it in self._kept.items() if each.stamp == variant.stamp}
        self._kept = {**current, variant: renewed}
        return renewed.rendered

    def _version(self) -> int:
        with self._site.transaction() as connection:
            return board.version(connection)


def render(site: Site, variant: Variant) -> Rendered:
    """Render all files of a variant. Raises Problem where the database does not answer."""
    with site.transaction() as connection:
        version = board.version(connection)
        entries = board.counting(
            connection, variant.frozen_at, keys.trusted(site.data_dir.signing_key)
        )
        shown_as = people.pseudonyms(connection) if variant.pseudonyms else {}
        entries = [each._replace(author=shown_as.get(each.author, each.author)) for each in entries]
        boards = rank(entries)
    if variant.form is Form.DATA:
        data = [as_data(each) for each in boards]
        return Rendered(version, {DATA: File.of(json.dumps(data).encode())})
    pages = pages_of(boards)
    anybody = Visitor(site, None)
    frame: dict[str, Any] = {
        "shared": True,
        "boards": pages,
        "version": version,
        "frozen_at": variant.frozen_at,
        "open_sources": variant.readable,
    }
    files: dict[str, File] = {}
    most = MAX_ROWS if variant.form is Form.PAGES else None

    def add(file: str, template: str, rows: str, said: str, values: dict[str, Any]) -> None:
        """Add a page. rows: the name of the value that is cut. said: the sentence about that."""
        count = len(values.get(rows, ()))
        cut = most is not None and count > most
        shortened = said.format(most, count) if cut else ""
        values |= {name: values[name][:most] for name in (rows, "unverified") if name in values}
        shown = page(anybody, template, here=file, shortened=shortened, **frame, **values)
        files[file] = File.of(bytes(shown.body))

    best = "The best {} of {} kernels."
    for its, each in zip(pages, boards, strict=False):
        add(its.file, "board.html", "rows", best, board_page(each))
    if not boards:
        add(BOARD.file, "empty.html", "", "", {})
    runs = [each for each in entries if variant.everything or each.accepted]
    values = runs_page(runs, boards)
    add(RUNS.file, "runs.html", "runs", "The newest {} of {} runs.", values)
    return Rendered(version, files)


def render_as(settings: str, database: str, variant: Variant) -> Rendered:
    """Render in another process; see Site.opened for the settings and the database."""
    return render(_site(settings, database), variant)


@lru_cache(maxsize=1)
def _site(settings: str, database: str) -> Site:
    """Open the site when this process is first asked for a board."""
    os.nice(NICENESS)
    return Site.opened(settings, database, connections=1)
