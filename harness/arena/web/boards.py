"""The boards as they stand: made once for each change, not once for each visitor.

A board changes with a result, a withdrawal, an announcement or the rules. In between it is bytes
that lie ready, and a visitor costs neither a query nor a thread.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from harness.arena.store import board
from harness.arena.web.board_files import Form, Made, Wanted
from harness.arena.web.context import Site, Visitor, now
from harness.arena.web.problems import Problem
from harness.arena.web.renderer import Renderer

FRESH_SECONDS = 0.5
"""A board may be so old: a burst of results is ranked together."""

QUICK_SECONDS = 0.2
"""A visitor waits for a board that is made so quickly. While a larger one is made again, visitors
get the previous one."""

REST = 2
"""A large board is left as it is for so many times as long as making it took."""


@dataclass(frozen=True, slots=True)
class _Kept:
    wanted: Wanted
    made: Made
    seconds: float
    """The time that it took to make."""
    looked: float
    """The time at which it was found to be the newest."""

    @property
    def quick(self) -> bool:
        return self.seconds < QUICK_SECONDS

    @property
    def fresh(self) -> bool:
        rest = FRESH_SECONDS if self.quick else max(FRESH_SECONDS, REST * self.seconds)
        return time.monotonic() - self.looked < rest


class Boards:
    """Keeps what was made last, for contestants and for organisers."""

    def __init__(self, site: Site, renderer: Renderer) -> None:
        self._site = site
        self._renderer = renderer
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._making: dict[Wanted, asyncio.Task[Made]] = {}

    async def made(self, visitor: Visitor, form: Form) -> Made:
        """Return the boards as this visitor may see them: frozen for all but organisers.

        Raises Problem.
        """
        rules = self._site.rules
        organises = visitor.person is not None and visitor.person.organises
        frozen = rules.frozen_from if rules.frozen(now()) and not organises else None
        if rules.private_board and visitor.person is None:
            raise Problem(401, "Sign in first: only who takes part sees the boards.")
        hidden = rules.pseudonyms and not organises
        everything = organises or rules.failures
        readable = organises or rules.sources_open(now())
        wanted = Wanted(form, self._site.rules_file.stamp, frozen, everything, hidden, readable)
        kept = self._kept.get(_place(wanted))
        if kept is None or kept.wanted != wanted:
            return await self._renew(wanted)
        if kept.fresh:
            return kept.made
        renewed = self._renew(wanted)
        return await renewed if kept.quick else kept.made

    async def prepare(self) -> None:
        """Make the board before the first visitor comes."""
        with suppress(Problem):
            await self.made(Visitor(None), Form.PAGES)

    def _renew(self, wanted: Wanted) -> asyncio.Future[Made]:
        """Render once for all who wait. A visitor who goes away cancels nothing."""
        task = self._making.get(wanted)
        if task is None:
            task = self._making[wanted] = asyncio.create_task(self._renewed(wanted))
            task.add_done_callback(lambda task: self._over(wanted, task))
        return asyncio.shield(task)

    def _over(self, wanted: Wanted, task: asyncio.Task[Made]) -> None:
        del self._making[wanted]
        if not task.cancelled():
            task.exception()  # retrieved, in case no visitor waits any more

    async def _renewed(self, wanted: Wanted) -> Made:
        began = time.monotonic()
        kept = self._kept.get(_place(wanted))
        if kept is not None and kept.wanted == wanted:
            try:
                version = await run_in_threadpool(self._version)
            except Problem:
                return kept.made  # the database comes back, and the board does not go away for it
            if kept.made.version == version:
                self._kept[_place(wanted)] = _Kept(wanted, kept.made, kept.seconds, began)
                return kept.made
        made = await self._renderer.boards(wanted)
        done = time.monotonic()
        self._kept[_place(wanted)] = _Kept(wanted, made, done - began, done)
        return made

    def _version(self) -> int:
        with self._site.transaction() as connection:
            return board.version(connection)


def _place(wanted: Wanted) -> tuple[object, ...]:
    """Return the facts that differ between visitors; the others only change with time."""
    frozen = wanted.frozen_at is not None
    return wanted.form, frozen, wanted.everything, wanted.pseudonyms, wanted.readable
