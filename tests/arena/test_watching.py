"""Tests of the streams that tell people about their submissions."""

import asyncio

import pytest

from harness.arena.states import State
from harness.arena.store import gradings
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


def test_a_watcher_hears_that_the_queue_moves_and_that_nothing_happens(
    site: Site, worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.arena.web.live.ALIVE_SECONDS", 0.1)
    before, after = worker.submit("before", "bob"), worker.submit()
    worker.leave()  # otherwise the estimate changes once it has been silent for a while
    waiting = worker.status(after)

    async def scenario() -> None:
        watch = Watch(site)
        running = asyncio.create_task(watch.run())
        events = watch.follow(waiting, lambda status: f"place {status.place}")
        read: list[str] = []
        while read.count("place 2") < 2 or not read[-1].startswith(":"):
            read.append(await anext(events))
        await asyncio.to_thread(worker.do, lambda link: gradings.cancel(link, before))
        while await anext(events) != "place 1":
            pass
        running.cancel()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))
