"""The boards, rendered once for each change and not for each visitor.

A board changes with a result, a withdrawal or the rules. In between it is kept as
bytes, and a visitor costs neither a query nor a thread.
"""

import asyncio
import time
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool

from harness.arena.problems import Problem
from harness.arena.store import board
from harness.arena.web.board_files import Form, Rendered, Variant
from harness.arena.web.context import Site, Visitor, now
from harness.arena.web.renderer import Renderer

FRESH_SECONDS = 0.5
"""The age up to which a board is shown without a check, so that a burst is ranked together."""

PATIENCE_SECONDS = 0.2
"""The time that a visitor waits for a new board before getting the previous one."""

REST = 2
"""A board is shown without a check for this many times the time that rendering it took."""


@dataclass(frozen=True, slots=True)
class _Kept:
    rendered: Rendered
    seconds: float
    """The time that it took to make."""
    checked: float
    """The time at which it was last found to be up to date."""

    @property
    def fresh(self) -> bool:
        return time.monotonic() - self.checked < max(FRESH_SECONDS, REST * self.seconds)


class Boards:
    """Keeps the latest boards of each kind of visitor."""

    def __init__(self, site: Site, renderer: Renderer) -> None:
        self._site = site
        self._renderer = renderer
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
        if kept is None:
            return await self._renew(variant)
        if not kept.fresh:
            await asyncio.wait([self._renew(variant)], timeout=PATIENCE_SECONDS)
        return self._kept.get(variant, kept).rendered

    def _renew(self, variant: Variant) -> asyncio.Future[Rendered]:
        """Render once for all visitors who wait. A visitor who disconnects cancels nothing."""
        task = self._making.get(variant)
        if task is None:
            task = self._making[variant] = asyncio.create_task(self._renewed(variant))
            task.add_done_callback(lambda task: self._over(variant, task))
        return asyncio.shield(task)

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
            rendered = await self._renderer.boards(variant)
            done = time.monotonic()
            renewed = _Kept(rendered, done - began, done)
        # Boards of earlier rules are not asked for any more.
        current = {each: it for each, it in self._kept.items() if each.stamp == variant.stamp}
        self._kept = {**current, variant: renewed}
        return renewed.rendered

    def _version(self) -> int:
        with self._site.transaction() as connection:
            return board.version(connection)
