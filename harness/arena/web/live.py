"""Watching submissions: one connection listens to the database for all who watch.

A notification says only that something has changed. A lost one costs two seconds, after which the
watched submissions are read again anyway.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from harness.arena.store.database import conninfo
from harness.arena.store.watching import Status, status
from harness.arena.web.context import Site

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""The longest time between two reads of the watched submissions."""

GATHER_SECONDS = 0.1
"""Notifications within this time are answered together."""

ALIVE_SECONDS = 15.0
"""The longest time between two messages to a watcher, so that no proxy ends the connection."""

Writer = Callable[[Status], str]
"""A function that writes a status as server-sent events."""


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
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._changed.wait()
            await asyncio.sleep(GATHER_SECONDS)
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
