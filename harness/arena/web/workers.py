"""The routes for workers; harness/arena/workers/api.py has the messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from harness.arena.build import refusal
from harness.arena.store import workers
from harness.arena.store.workers import GpuHeld, OtherBuild, SessionEnded
from harness.arena.web.context import Site, ThisSite
from harness.arena.web.jobs import Jobs
from harness.arena.web.problems import Problem
from harness.arena.workers.api import (
    MAX_MESSAGE,
    MAX_RESULT,
    PATH,
    POLL_SECONDS,
    ArenaInfo,
    Drained,
    Heartbeat,
    HeartbeatAnswer,
    Join,
    Joined,
    ResultAnswer,
    Task,
)
from harness.board.document import Document
from harness.protocol.errors import StoreError
from harness.protocol.report import Report

router = APIRouter(prefix=PATH, include_in_schema=False)

LOOK_SECONDS = 2.0
"""A job is looked for so often, in case a notification was lost."""

Message = TypeVar("Message", bound=BaseModel)
Answer = TypeVar("Answer")


async def machine(request: Request, site: ThisSite) -> int:
    """Return the machine of the request's worker key. Raises Problem."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found = await _do(site, lambda connection: workers.machine_of(connection, key.strip()))
        if found is not None:
            return found
    raise Problem(
        401, "The arena does not know this worker key, or has revoked it; ask for another."
    )


ThisMachine = Annotated[int, Depends(machine)]


@router.get("")
async def info(site: ThisSite, _: ThisMachine) -> ArenaInfo:
    """Return how this arena judges, and its time."""
    return ArenaInfo(build=site.build, clock=datetime.now(UTC))


@router.post("")
async def join(request: Request, site: ThisSite, machine: ThisMachine) -> Joined:
    asked = await _read(request, Join)
    try:
        return await _do(
            site, lambda connection: workers.join(connection, machine, asked, site.build)
        )
    except OtherBuild:
        said = refusal(site.build, asked.build)
        raise Problem(403, f"{said[0].upper()}{said[1:]}.") from None
    except GpuHeld as error:
        raise Problem(409, f"{error}.") from None


@router.post("/drain")
async def drain(site: ThisSite, machine: ThisMachine) -> Drained:
    """Let this machine's workers end after their current tasks."""
    left = await _do(site, lambda connection: workers.drain_machine(connection, machine))
    return Drained(left=left)


@router.post("/{session}/heartbeat")
async def heartbeat(
    request: Request, site: ThisSite, machine: ThisMachine, session: UUID
) -> HeartbeatAnswer:
    beat = await _read(request, Heartbeat)
    try:
        return await _do(
            site,
            lambda connection: workers.heartbeat(connection, machine, session, beat, site.build),
        )
    except SessionEnded:
        raise _gone() from None


@router.post("/{session}/fetch", response_model=None)
async def fetch(
    request: Request, site: ThisSite, machine: ThisMachine, session: UUID
) -> Task | Response:
    """Return the next task as soon as there is one; 204 if no task comes for a while."""
    jobs: Jobs = request.app.state.jobs
    deadline = time.monotonic() + POLL_SECONDS
    while True:
        new = jobs.next()
        try:
            task = await _do(site, lambda connection: workers.take(connection, machine, session))
        except SessionEnded:
            return Response(status_code=204)  # the heartbeat says what the worker is to do
        if task is not None:
            return await _handed(request, site, machine, task)
        left = deadline - time.monotonic()
        if left <= 0 or await request.is_disconnected():
            return Response(status_code=204)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(new), min(left, LOOK_SECONDS))


async def _handed(request: Request, site: Site, machine: int, task: Task) -> Task | Response:
    """The task, unless its worker has hung up meanwhile."""
    if not await request.is_disconnected():
        return task
    await _do(site, lambda connection: workers.release(connection, machine, task.attempt))
    return Response(status_code=204)


@router.post("/{session}/leave", status_code=204)
async def leave(site: ThisSite, machine: ThisMachine, session: UUID) -> None:
    await _do(site, lambda connection: workers.leave(connection, machine, session))


@router.put("/attempts/{attempt}/result")
async def finish(
    request: Request, site: ThisSite, machine: ThisMachine, attempt: UUID
) -> ResultAnswer:
    text = await _body(request, MAX_RESULT)
    try:
        document = await run_in_threadpool(_document, text)
    except StoreError as error:
        raise Problem(422, str(error)) from None
    outcome = await _do(
        site, lambda connection: workers.finish(connection, machine, attempt, document)
    )
    return ResultAnswer(outcome=outcome)


@router.post("/attempts/{attempt}/release", status_code=204)
async def release(site: ThisSite, machine: ThisMachine, attempt: UUID) -> None:
    """The worker ends, and gives back what it holds."""
    await _do(site, lambda connection: workers.release(connection, machine, attempt))


def _document(text: bytes) -> Document:
    try:
        return Document.of(Report.model_validate_json(text))
    except ValidationError as error:
        raise StoreError(
            f"this is no report of this version: {error.errors()[0]['msg']}."
        ) from None


def _gone() -> Problem:
    return Problem(410, "This session is over; join again.")


async def _do(site: Site, what: Callable[[Connection], Answer]) -> Answer:
    """Do this in one transaction."""

    def run() -> Answer:
        with site.transaction() as connection:
            return what(connection)

    return await run_in_threadpool(run)


async def _read(request: Request, message: type[Message]) -> Message:
    try:
        return message.model_validate_json(await _body(request, MAX_MESSAGE))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise Problem(422, f"In the message, {place}: {first['msg']}.") from None


async def _body(request: Request, most: int) -> bytes:
    """The body, which is read only once the key is known."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Problem(413, f"A message has at most {most >> 20} MiB.")
        parts.append(part)
    return b"".join(parts)
