"""The queue in the web process: wakes waiting workers, and queues lost gradings again."""

import asyncio
import logging
import time

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from harness.arena.store.gradings import sweep
from harness.arena.web.context import Site
from harness.arena.web.live import listen

log = logging.getLogger(__name__)

CHANNEL = "procrastinate_any_queue_v1"
"""The channel on which PostgreSQL says that there is a new job."""

LATE_SECONDS = 2.0
"""A sweep that is this late was delayed, and workers' heartbeats may have been, too."""


NO_LEASE = 1e9
"""A lease that never ends, with which a sweep only checks that the database answers."""


class Jobs:
    """Wakes the workers that wait for a job, and finds gradings whose worker has died."""

    def __init__(self, site: Site, lease_seconds: float) -> None:
        self._site = site
        self._lease = lease_seconds
        self._new: asyncio.Future[None] | None = None

    def next(self) -> asyncio.Future[None]:
        """Return a future that is done when there is another job."""
        if self._new is None or self._new.done():
            self._new = asyncio.get_running_loop().create_future()
        return self._new

    async def run(self) -> None:
        """Listen and sweep until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(listen(self._site, CHANNEL, self._wake))
            group.create_task(self._sweep())

    def _wake(self) -> None:
        if self._new is not None and not self._new.done():
            self._new.set_result(None)

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
