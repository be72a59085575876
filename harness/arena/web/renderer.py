"""Renders what takes long in a process of its own, so that the web process answers meanwhile.

The web process starts it as `python -m harness.arena.web.renderer`, writes requests to its standard
input, and reads what was rendered from its standard output.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool

from harness.arena.logs import log_as
from harness.arena.processes import NICENESS
from harness.arena.web.board_files import Made, Wanted, make
from harness.arena.web.context import Site
from harness.arena.web.problems import Problem
from harness.arena.web.start import open_site, read_arguments

BOARD_SECONDS = 120.0
COMPARISON_SECONDS = 20.0
MAX_WAITING = 20
"""Comparisons that wait for their turn."""

_LENGTH = struct.Struct("!Q")


Result = TypeVar("Result")


class Renderer(Protocol):
    """Renders boards and compares submissions, here or in another process."""

    async def boards(self, wanted: Wanted) -> Made:
        """Raises Problem."""

    async def call(self, compare: Callable[[], Result]) -> Result:
        """Call a function that can be pickled, with its arguments. Raises Problem."""


class RendererHere:
    """Renders in this process."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def boards(self, wanted: Wanted) -> Made:
        return await run_in_threadpool(make, self._site, wanted)

    async def call(self, compare: Callable[[], Result]) -> Result:
        return await run_in_threadpool(compare)


class RendererProcess:
    """The process, as the web process has it: started when first needed, and again if it ended."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        """Both as the web process was started with."""
        self._arguments = arguments
        self._environment = environment
        self.process: Process | None = None
        self._busy = asyncio.Lock()
        self._waiting = 0

    async def boards(self, wanted: Wanted) -> Made:
        made: Made = await self._render(wanted, BOARD_SECONDS)
        return made

    async def call(self, compare: Callable[[], Result]) -> Result:
        if self._waiting >= MAX_WAITING:
            raise Problem(503, "Many comparisons are waiting; try again.", retry_after=10)
        found: Result = await self._render(compare, COMPARISON_SECONDS)
        return found

    async def _render(self, request: object, seconds: float) -> Any:
        self._waiting += 1
        try:
            async with self._busy:
                return await self._render_alone(request, seconds)
        finally:
            self._waiting -= 1

    async def _render_alone(self, request: object, seconds: float) -> Any:
        for _ in range(2):
            try:
                async with asyncio.timeout(seconds):
                    found = await self._ask(request)
            except (OSError, EOFError):
                await self.end()  # somebody killed it
                continue
            except TimeoutError:
                await self.end()
                raise Problem(
                    503, f"This took longer than {seconds:.0f} s, and was ended."
                ) from None
            except asyncio.CancelledError:
                await self.end()  # its answer would be taken for the next one's
                raise
            if isinstance(found, Problem):
                raise found
            return found
        raise Problem(503, "This cannot be shown just now; try again.", retry_after=2)

    async def start(self) -> None:
        if self.process is None:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", __name__, *self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=self._environment,
            )

    async def _ask(self, request: object) -> Any:
        await self.start()
        assert self.process is not None
        to, back = self.process.stdin, self.process.stdout
        assert to is not None and back is not None
        to.write(_framed(request))
        await to.drain()
        (length,) = _LENGTH.unpack(await back.readexactly(_LENGTH.size))
        return pickle.loads(await back.readexactly(length))

    async def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()


def _framed(value: object) -> bytes:
    content = pickle.dumps(value)
    return _LENGTH.pack(len(content)) + content


def _next(source: BinaryIO) -> Any:
    """None when the web process has gone."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(source.read(_LENGTH.unpack(head)[0]))


def _answer(site: Site, request: Wanted | Callable[[], object]) -> object:
    try:
        return make(site, request) if isinstance(request, Wanted) else request()
    except Problem as problem:
        return problem


def main(arguments: Sequence[str]) -> int:
    log_as("renderer")
    os.nice(NICENESS)
    site = open_site(read_arguments(arguments), connections=1)
    with os.fdopen(os.dup(0), "rb") as source, os.fdopen(os.dup(1), "wb") as sink:
        os.dup2(2, 1)  # what a library prints is no answer
        while (request := _next(source)) is not None:
            sink.write(_framed(_answer(site, request)))
            sink.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
