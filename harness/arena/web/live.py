"""Server-sent events about submissions and the board. Closing a stream cancels nothing.

The submissions that anybody watches are read together, twice a second.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.concurrency import run_in_threadpool

from harness.arena.problems import Problem
from harness.arena.store.watching import Status, status
from harness.arena.web import api
from harness.arena.web.api import SubmissionId
from harness.arena.web.boards import Boards, Form
from harness.arena.web.connections import STREAMS
from harness.arena.web.context import Site, ThisVisitor, Visitor
from harness.arena.web.rendering import fragment

router = APIRouter(prefix="/live", include_in_schema=False)

POLL_SECONDS = 0.5
"""The time between two reads of the watched submissions."""

ALIVE_SECONDS = 15.0
"""The longest time between two messages to a watcher, so that no proxy ends the connection."""

Writer = Callable[[Status], str]
"""A function that writes a status as server-sent events."""

BOARD_SECONDS = 2.0
"""The time between two looks at the board."""


class Watch:
    """The watchers of all submissions."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._watched: Counter[str] = Counter()
        self._latest: dict[str, Status] = {}
        self._next = asyncio.Event()
        """Set when the watched submissions have been read once more; another event follows."""

    @property
    def watchers(self) -> int:
        return self._watched.total()

    async def run(self) -> None:
        """Read what is watched until cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            if not self._watched:
                continue
            with suppress(DBAPIError, PoolTimeoutError):  # the database is restarting
                self._latest = await asyncio.to_thread(self._fetch, list(self._watched))
            self._next.set()
            self._next = asyncio.Event()

    async def follow(self, first: Status, write: Writer) -> AsyncIterator[str]:
        """Yield a submission's status whenever it changes, until it is final."""
        self._watched[first.id] += 1
        try:
            yield write(first)
            latest, told = first, time.monotonic()
            while not latest.state.final:
                await self._next.wait()
                newest = self._latest.get(first.id, latest)
                if _shown(newest) != _shown(latest):
                    yield write(newest)
                elif time.monotonic() > told + ALIVE_SECONDS:
                    yield ": nothing new\n\n"
                else:
                    continue
                latest, told = newest, time.monotonic()
        finally:
            self._watched -= Counter([first.id])  # which drops counts of zero

    def _fetch(self, ids: list[str]) -> dict[str, Status]:
        with self._site.engine.connect() as connection:
            return status(connection, ids)


def _shown(status: Status) -> tuple[object, ...]:
    """Return what differs where more than the clock has changed."""
    estimated = status.seconds_left is None
    return status.state, status.place, status.stages, status.step, status.attempts, estimated


# ---------------------------------------------------------------------------------------- routes


@api.router.get("/submissions/{id}/events", response_class=StreamingResponse)
async def events(request: Request, visitor: ThisVisitor, id: SubmissionId) -> StreamingResponse:
    """Send the status as server-sent events whenever it changes, until it is final.

    This only watches: closing it ends nothing.
    """

    return await _follow(request, visitor, id, lambda status: _as_json(visitor.shown(status)))


@router.get("/submissions/{id}")
async def submission(request: Request, visitor: ThisVisitor, id: SubmissionId) -> StreamingResponse:
    """Send the state in words and the status as HTML, until there is a result."""
    return await _follow(request, visitor, id, _as_html)


@router.get("/board")
async def board(request: Request, visitor: ThisVisitor) -> StreamingResponse:
    """Send the version of the board, now and whenever it changes."""
    boards: Boards = request.app.state.boards

    async def stream() -> AsyncIterator[str]:
        sent = None
        silent = 0.0
        while True:
            with suppress(Problem):
                version = (await boards.rendered(visitor, Form.PAGES)).version
                if version != sent or silent >= ALIVE_SECONDS:
                    sent, silent = version, 0.0
                    yield _event("board", str(version))
            await asyncio.sleep(BOARD_SECONDS)
            silent += BOARD_SECONDS

    return _stream(request, stream())


async def _follow(request: Request, visitor: Visitor, id: str, write: Writer) -> StreamingResponse:
    first = await run_in_threadpool(api.readable, visitor, id)
    watch: Watch = request.app.state.watch
    return _stream(request, watch.follow(first, write))


# A status is written once for all who watch it.
@lru_cache(maxsize=64)
def _as_json(status: Status) -> str:
    return _event("status", status.model_dump_json(by_alias=True))


@lru_cache(maxsize=64)
def _as_html(status: Status) -> str:
    events = {
        "state": fragment("state.html", submission=status),
        "status": fragment("status.html", submission=status),
    }
    if status.state.final:
        events["over"] = status.state.value
    return "".join(_event(name, text) for name, text in events.items())


def _event(name: str, text: str) -> str:
    data = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{data}\n"


def _stream(request: Request, events: AsyncIterator[str]) -> StreamingResponse:
    setattr(request.state, STREAMS, True)
    return StreamingResponse(
        events,
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
