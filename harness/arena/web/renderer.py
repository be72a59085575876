"""Renders what takes long in a process of its own, so that the web process answers meanwhile."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from harness.arena.logs import log_as
from harness.arena.processes import NICENESS, Settings
from harness.arena.web.board_files import Made, Wanted, make
from harness.arena.web.context import Site
from harness.arena.web.problems import Problem

BOARD_SECONDS = 120.0
COMPARISON_SECONDS = 20.0
MAX_WAITING = 20
"""Comparisons that wait for their turn."""

Result = TypeVar("Result")


class Renderer:
    """Renders boards and compares submissions in this process."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def boards(self, wanted: Wanted) -> Made:
        """Render boards. Raises Problem."""
        return await run_in_threadpool(make, self._site, wanted)

    async def call(self, compare: Callable[[], Result]) -> Result:
        """Call a function that can be pickled, with its arguments. Raises Problem."""
        return await run_in_threadpool(compare)


class RendererProcess(Renderer):
    """Does so in another process, which is started when first needed, and again if it ended."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        """Take the settings and the environment with which the web process was started."""
        self._start = (settings, environment)
        self._pool: ProcessPoolExecutor | None = None
        self._busy = asyncio.Lock()
        self._waiting = 0

    async def boards(self, wanted: Wanted) -> Made:
        made: Made = await self._run(BOARD_SECONDS, _boards, wanted)
        return made

    async def call(self, compare: Callable[[], Result]) -> Result:
        if self._waiting >= MAX_WAITING:
            raise Problem(503, "Many comparisons are waiting; try again.", retry_after=10)
        found: Result = await self._run(COMPARISON_SECONDS, compare)
        return found

    async def _run(self, seconds: float, function: Callable[..., object], *values: object) -> Any:
        self._waiting += 1
        try:
            async with self._busy:
                for _ in range(2):
                    began = time.monotonic()
                    try:
                        done = self._started().submit(_within, seconds, function, *values)
                        return await asyncio.wrap_future(done)
                    except BrokenProcessPool:  # it took too long, or somebody killed it
                        self._pool = None
                    if time.monotonic() - began >= seconds:
                        said = f"This took longer than {seconds:.0f} s, and was ended."
                        raise Problem(503, said)
        finally:
            self._waiting -= 1
        raise Problem(503, "This cannot be shown just now; try again.", retry_after=2)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            spawning = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, spawning, _open, self._start)
        return self._pool


def end_renderers() -> None:
    """End the processes of all renderers, even busy ones."""
    for process in multiprocessing.active_children():
        process.kill()


# -------------------------------------------------------------------------- in the other process

_opened: list[Site] = []


def _open(settings: Settings, environment: Mapping[str, str]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    log_as("renderer")
    os.nice(NICENESS)
    os.environ.update(environment)
    _opened.append(Site.opened(settings, connections=1))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _boards(wanted: Wanted) -> Made:
    return make(_opened[0], wanted)


def _within(seconds: float, function: Callable[..., Result], *values: object) -> Result:
    """Call it, and end the process if that takes longer."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return function(*values)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
