"""Tests of the streams that tell people about their submissions."""

import asyncio

from harness.arena.states import State
from harness.arena.web.context import Site
from harness.arena.web.live import Watch
from tests.arena.submitting import FakeWorker
from tests.waiting import PATIENCE


def test_a_watcher_who_joins_late_misses_nothing(site: Site, worker: FakeWorker) -> None:
    """A status may change after a watcher's first one was read and before the watcher joins."""
    id = worker.submit()
    first = worker.status(id)

    async def scenario() -> list[str]:
        watch = Watch(site)
        running = asyncio.create_task(watch.run())
        early = watch.follow(first, lambda status: status.state)
        assert await anext(early) == State.QUEUED
        await asyncio.to_thread(worker.grade, 1.0)
        while await anext(early) != State.DONE:
            pass
        late = [each async for each in watch.follow(first, lambda status: status.state)]
        running.cancel()
        return late

    assert asyncio.run(asyncio.wait_for(scenario(), PATIENCE))[-1] == State.DONE
