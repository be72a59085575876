"""The queue in the web process: wakes waiting workers, and queues lost gradings again."""

from __future__ import annotations

import asyncio
import logging
import time

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from harness.arena.store.gradings import CHANNEL, sweep
from harness.arena.web.context import Site
from harness.arena.web.live import listen

log = logging.getLogger(__name__)

LATE_SECONDS = 2.0
"""A sweep that is this late was delayed, and workers' heartbeats may have been, too."""


NO_LEASE = 1e9
"""A lease that never ends, with which a sweep only checks that the database answers."""


class Jobs:
    """Wakes the workers that wait for a task, and finds gradings whose worker has died."""

    def __init__(self, site: Site, lease_seconds: float) -> None:
        self._site = site
        self._lease = lease_seconds
        self.next = asyncio.Event()
        """Set when another grading waits; an event for the one after it takes its place."""

    async def run(self) -> None:
        """Listen and sweep until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(listen(self._site, CHANNEL, self._wake))
            group.create_task(self._sweep())

    def _wake(self) -> None:
        self.next.set()
        self.next = asyncio.Event()

    async def _sweep(self) -> None:
        """Sweep. A lease runs only while workers reach this process, and it the database."""
        reachable_since = time.monotonic()
        while True:
            due = time.monotonic() + self._lease / 5
            await asyncio.sleep(self._lease / 5)
            if time.monotonic() > due + LATE_SECONDS:
                reachable_since = time.monotonic()
            held_up = time.monotonic() < reachable_since + self._lease
            lease = NO_LEASE if held_up else self._lease
            try:
                await asyncio.to_thread(sweep_once, self._site, lease)
            except (DBAPIError, PoolTimeoutError) as error:
                log.warning("the database does not answer: %s", error)
                reachable_since = time.monotonic()


def sweep_once(site: Site, lease_seconds: float) -> dict[str, bool]:
    """Put gradings whose worker has died back into the queue, or give them up; return, for each
    submission, whether it was queued again."""
    with site.engine.begin() as connection:
        swept = sweep(connection, lease_seconds, site.build.quick)
    for submission, again in swept.items():
        if again:
            log.warning("queued again", extra={"submission": submission})
        else:
            log.error("given up", extra={"submission": submission})
    return swept
