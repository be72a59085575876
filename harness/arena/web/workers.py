"""The routes for workers, whose messages are in harness/arena/workers/api.py, and their queue."""

import asyncio
import logging
import time
from contextlib import suppress
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.concurrency import run_in_threadpool

from harness.arena.build import Build
from harness.arena.problems import Problem
from harness.arena.store import workers
from harness.arena.store.gradings import sweep
from harness.arena.store.workers import SessionEnded
from harness.arena.web.context import Site, ThisSite, bearer_key
from harness.arena.web.live import listen
from harness.arena.workers.api import (
    LEASE_SECONDS,
    MAX_MESSAGE,
    PATH,
    POLL_SECONDS,
    Decision,
    Heartbeat,
    HeartbeatAnswer,
    Join,
    Task,
)
from harness.protocol.errors import StoreError, first_mistake
from harness.protocol.report import Report

log = logging.getLogger(__name__)

router = APIRouter(prefix=PATH, include_in_schema=False)

JOB_POLL_SECONDS = 2.0
"""The longest time between two queries for a job, in case a notification was lost."""

CHANNEL = "procrastinate_any_queue_v1"
"""The channel on which PostgreSQL says that there is a new job."""

SWEEP_SECONDS = LEASE_SECONDS / 5

LATE_SECONDS = 2.0
"""A sweep that is this late was delayed, and workers' heartbeats may have been, too."""

NO_LEASE = 1e9
"""A lease that never ends, with which a sweep only checks that the database answers."""

Message = TypeVar("Message", bound=BaseModel)


class Jobs:
    """Wakes the workers that wait for a task, and finds gradings whose worker has died."""

    def __init__(self, site: Site) -> None:
        self._site = site
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
            due = time.monotonic() + SWEEP_SECONDS
            await asyncio.sleep(SWEEP_SECONDS)
            if time.monotonic() > due + LATE_SECONDS:
                reachable_since = time.monotonic()
            held_up = time.monotonic() < reachable_since + LEASE_SECONDS
            lease = NO_LEASE if held_up else LEASE_SECONDS
            try:
                await asyncio.to_thread(sweep_once, self._site, lease)
            except (DBAPIError, PoolTimeoutError) as error:
                log.warning("the database does not answer: %s", error)
                reachable_since = time.monotonic()


def sweep_once(site: Site, lease_seconds: float) -> dict[str, bool]:
    """Put gradings whose worker has died back into the queue, or give them up; return, for each
    submission, whether it was queued again."""
    with site.engine.begin() as connection:
        swept = sweep(connection, lease_seconds)
    for submission, again in swept.items():
        if again:
            log.warning("queued again", extra={"submission": submission})
        else:
            log.error("given up", extra={"submission": submission})
    return swept


# ---------------------------------------------------------------------------------------- routes


def machine(request: Request, site: ThisSite) -> int:
    """Return the machine of the request's worker key. Raises Problem."""
    key = bearer_key(request)
    with site.transaction() as connection:
        found = workers.machine_of(connection, key)
    if found is None:
        raise Problem(
            401, "The arena does not know this worker key, or has revoked it; ask for another."
        )
    return found


ThisMachine = Annotated[int, Depends(machine)]


async def body(request: Request, _: ThisMachine) -> bytes:
    """Return the request's body, which is read only once the key is known. Raises Problem."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MAX_MESSAGE:
            raise Problem(413, f"A message has at most {MAX_MESSAGE >> 20} MiB.")
    return bytes(content)


Body = Annotated[bytes, Depends(body)]


@router.get("")
def build(_: ThisMachine) -> Build:
    """Return how this arena judges."""
    return Build.here()


@router.post("")
def join(site: ThisSite, machine: ThisMachine, body: Body) -> UUID:
    """Let a worker in, and return its session."""
    asked = _read(Join, body)
    with site.transaction() as connection:
        return workers.join(connection, machine, asked, Build.here())


@router.post("/drain")
def drain(site: ThisSite, machine: ThisMachine) -> int:
    """Let this machine's workers end after their current tasks; return how many are still there."""
    with site.transaction() as connection:
        return workers.drain_machine(connection, machine)


@router.post("/{session}/heartbeat")
def heartbeat(site: ThisSite, machine: ThisMachine, session: UUID, body: Body) -> HeartbeatAnswer:
    beat = _read(Heartbeat, body)
    with site.transaction() as connection:
        return workers.heartbeat(connection, machine, session, beat, Build.here())


@router.post("/{session}/fetch", response_model=None)
async def fetch(
    request: Request, site: ThisSite, machine: ThisMachine, session: UUID
) -> Task | Response:
    """Return the next task as soon as there is one; 204 if no task comes for a while."""
    jobs: Jobs = request.app.state.jobs
    deadline = time.monotonic() + POLL_SECONDS
    while True:
        new = jobs.next
        try:
            task = await run_in_threadpool(_take, site, machine, session)
        except SessionEnded:
            break  # the heartbeat says what the worker is to do
        connected = not await request.is_disconnected()
        if task is not None and connected:
            return task
        if task is not None:
            await run_in_threadpool(release, site, machine, task.attempt)
        left = deadline - time.monotonic()
        if left <= 0 or not connected:
            break
        with suppress(TimeoutError):
            await asyncio.wait_for(new.wait(), min(left, JOB_POLL_SECONDS))
    return Response(status_code=204)


def _take(site: Site, machine: int, session: UUID) -> Task | None:
    with site.transaction() as connection:
        return workers.take(connection, machine, session, site.rules.quick)


@router.post("/{session}/leave", status_code=204)
def leave(site: ThisSite, machine: ThisMachine, session: UUID) -> None:
    with site.transaction() as connection:
        workers.leave(connection, machine, session)


@router.put("/attempts/{attempt}/result")
def finish(site: ThisSite, machine: ThisMachine, attempt: UUID, body: Body) -> Decision:
    """Keep a report, if its attempt still holds the grading."""
    report = _read(Report, body)
    try:
        with site.transaction() as connection:
            return workers.finish(connection, machine, attempt, report)
    except StoreError as error:
        raise Problem(422, str(error)) from None


@router.post("/attempts/{attempt}/release", status_code=204)
def release(site: ThisSite, machine: ThisMachine, attempt: UUID) -> None:
    """Let another worker grade what this one holds."""
    with site.transaction() as connection:
        workers.release(connection, machine, attempt)


def _read(message: type[Message], body: bytes) -> Message:
    try:
        return message.model_validate_json(body)
    except ValidationError as error:
        raise Problem(422, f"In the message, {first_mistake(error)}.") from None
