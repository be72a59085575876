"""Runs long computations in another process, so that the web process answers meanwhile."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TypeVar

from anyio import BrokenWorkerProcess, fail_after
from anyio.to_process import run_sync
from starlette.concurrency import run_in_threadpool

from harness.arena.problems import Problem
from harness.arena.processes import NICENESS, Settings
from harness.arena.web.board_files import Rendered, Variant, render
from harness.arena.web.context import Site

BOARD_SECONDS = 120.0
COMPARISON_SECONDS = 20.0
MAX_WAITING = 20
"""The most comparisons that wait or run."""

Result = TypeVar("Result")


class Renderer:
    """Renders boards and compares submissions in this process."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def boards(self, variant: Variant) -> Rendered:
        """Render boards. Raises Problem."""
        return await run_in_threadpool(render, self._site, variant)

    async def call(self, compare: Callable[[], Result]) -> Result:
        """Call a function that can be pickled, with its arguments. Raises Problem."""
        return await run_in_threadpool(compare)


class RendererProcess(Renderer):
    """Does so in another process, one task at a time. AnyIO starts the process when it is first
    needed, and again if it has ended."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        """environment: the secrets of the web process, by their variables."""
        self._render = partial(_render, settings.model_dump_json(), tuple(environment.items()))
        self._busy = asyncio.Lock()
        self._waiting = 0

    async def boards(self, variant: Variant) -> Rendered:
        return await self._run(BOARD_SECONDS, partial(self._render, variant))

    async def call(self, compare: Callable[[], Result]) -> Result:
        if self._waiting >= MAX_WAITING:
            raise Problem(503, "Many comparisons are waiting; try again.", retry_after=10)
        return await self._run(COMPARISON_SECONDS, compare)

    async def _run(self, seconds: float, function: Callable[[], Result]) -> Result:
        self._waiting += 1
        try:
            async with self._busy:
                for _ in range(2):
                    try:
                        with fail_after(seconds):
                            return await run_sync(function, cancellable=True)
                    except TimeoutError:
                        said = f"This took longer than {seconds:.0f} s, and was ended."
                        raise Problem(503, said) from None
                    except BrokenWorkerProcess:
                        pass  # somebody killed it
        finally:
            self._waiting -= 1
        raise Problem(503, "This cannot be shown just now; try again.", retry_after=2)


def _render(settings: str, environment: tuple[tuple[str, str], ...], variant: Variant) -> Rendered:
    return render(_site(settings, environment), variant)


@lru_cache(maxsize=1)
def _site(settings: str, environment: tuple[tuple[str, str], ...]) -> Site:
    """Open the site in the other process when it is first asked for a board."""
    os.nice(NICENESS)
    return Site.opened(Settings.model_validate_json(settings), dict(environment), connections=1)
