"""The routes for workers, whose messages are in harness/arena/workers/api.py, and the sweeper."""

import asyncio
import logging
import time
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from harness.arena.build import Build
from harness.arena.problems import Problem
from harness.arena.store import workers
from harness.arena.store.gradings import sweep
from harness.arena.web.context import Site, ThisSite
from harness.arena.workers.api import (
    LEASE_SECONDS,
    MAX_MESSAGE,
    PATH,
    Heartbeat,
    HeartbeatAnswer,
    Join,
    Outcome,
    Task,
)
from harness.protocol.errors import StoreError, first_mistake
from harness.protocol.report import Report

log = logging.getLogger(__name__)

router = APIRouter(prefix=PATH, include_in_schema=False)

SWEEP_SECONDS = LEASE_SECONDS / 5

LATE_SECONDS = 2.0
"""A sweep that is this late was delayed, and workers' heartbeats may have been, too."""

NO_LEASE = 1e9
"""A lease that never ends, with which a sweep only checks that the database answers."""

Message = TypeVar("Message", bound=BaseModel)


async def keep_sweeping(site: Site) -> None:
    """Sweep until cancelled. A lease runs only while workers reach this process, and it the
    database."""
    reachable_since = time.monotonic()
    while True:
        due = time.monotonic() + SWEEP_SECONDS
        await asyncio.sleep(SWEEP_SECONDS)
        if time.monotonic() > due + LATE_SECONDS:
            reachable_since = time.monotonic()
        held_up = time.monotonic() < reachable_since + LEASE_SECONDS
        lease = NO_LEASE if held_up else LEASE_SECONDS
        try:
            await asyncio.to_thread(sweep_once, site, lease)
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
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        with site.transaction() as connection:
            found = workers.machine_of(connection, key.strip())
        if found is not None:
            return found
    raise Problem(
        401, "The arena does not know this worker key, or has revoked it; ask for another."
    )


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
def fetch(site: ThisSite, machine: ThisMachine, session: UUID) -> Task | Response:
    """Return the next task, or the status 204 if nothing waits."""
    with site.transaction() as connection:
        task = workers.take(connection, machine, session, site.rules.quick)
    return task or Response(status_code=204)


@router.post("/{session}/leave", status_code=204)
def leave(site: ThisSite, machine: ThisMachine, session: UUID) -> None:
    with site.transaction() as connection:
        workers.leave(connection, machine, session)


@router.put("/attempts/{attempt}/result")
def finish(site: ThisSite, machine: ThisMachine, attempt: UUID, body: Body) -> Outcome:
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
