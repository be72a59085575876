"""Server-sent events about submissions and the board. Closing a stream cancels nothing.

One connection listens to the database for all who watch a submission. A notification says only that
something has changed. A lost one costs two seconds, after which the watched submissions are read
again anyway.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache

import psycopg
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.concurrency import run_in_threadpool

from harness.arena.problems import Problem
from harness.arena.store.database import conninfo
from harness.arena.store.watching import Status, status
from harness.arena.web import api
from harness.arena.web.api import SubmissionId
from harness.arena.web.boards import Boards, Form
from harness.arena.web.connections import STREAMS
from harness.arena.web.context import Site, ThisVisitor, Visitor
from harness.arena.web.rendering import fragment

router = APIRouter(prefix="/live", include_in_schema=False)

POLL_SECONDS = 2.0
"""The longest time between two reads of the watched submissions."""

DEBOUNCE_SECONDS = 0.1
"""Notifications within this time are answered together."""

ALIVE_SECONDS = 15.0
"""The longest time between two messages to a watcher, so that no proxy ends the connection."""

Writer = Callable[[Status], str]
"""A function that writes a status as server-sent events."""

BOARD_SECONDS = 2.0
"""The time between two looks at the board."""


async def listen(site: Site, channel: str, notify: Callable[[], None]) -> None:
    """Call back at each notification of the database and each new connection, until cancelled."""
    while True:
        with suppress(psycopg.OperationalError):
            connection = await psycopg.AsyncConnection.connect(
                conninfo(site.engine.url), autocommit=True
            )
            async with connection:
                await connection.execute(f'LISTEN "{channel}"'.encode())
                notify()
                async for _ in connection.notifies():
                    notify()
        await asyncio.sleep(0.5)


class Watch:
    """The watchers of all submissions."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._watchers: defaultdict[str, set[asyncio.Queue[Status]]] = defaultdict(set)
        self._last: dict[str, tuple[object, ...]] = {}
        self._changed = asyncio.Event()

    @property
    def watchers(self) -> int:
        return sum(map(len, self._watchers.values()))

    async def run(self) -> None:
        """Listen to the database, and read what is watched, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(listen(self._site, "arena", self._changed.set))
            group.create_task(self._look())

    async def follow(self, first: Status, write: Writer) -> AsyncIterator[str]:
        """Yield a submission's status whenever it changes, until it is final."""
        queue: asyncio.Queue[Status] = asyncio.Queue()
        self._watchers[first.id].add(queue)
        if self._last.get(first.id) != _shown(first):
            # It may have changed since it was read, so everybody gets the next reading.
            self._last.pop(first.id, None)
        try:
            yield write(first)
            latest = first
            while not latest.state.final:
                try:
                    async with asyncio.timeout(ALIVE_SECONDS):
                        latest = await queue.get()
                except TimeoutError:
                    yield ": nothing new\n\n"
                    continue
                yield write(latest)
        finally:
            self._watchers[first.id].discard(queue)
            if not self._watchers[first.id]:
                del self._watchers[first.id]
                self._last.pop(first.id, None)

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._changed.wait()
            await asyncio.sleep(DEBOUNCE_SECONDS)
            self._changed.clear()
            watched = list(self._watchers)
            if not watched:
                continue
            try:
                found = await asyncio.to_thread(self._fetch, watched)
            except (DBAPIError, PoolTimeoutError):
                continue  # the database is restarting
            for id, each in found.items():
                if self._last.get(id) == (shown := _shown(each)):
                    continue
                self._last[id] = shown
                for queue in self._watchers.get(id, ()):
                    queue.put_nowait(each)
                await asyncio.sleep(0)  # serve other requests before the next submission

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
