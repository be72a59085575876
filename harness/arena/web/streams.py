"""Changes of pages as server-sent events. A stream only watches: closing it cancels nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from harness.arena.store.gradings import Status
from harness.arena.web.api import SubmissionId, readable
from harness.arena.web.board_files import Form
from harness.arena.web.boards import Boards
from harness.arena.web.context import ThisSite, ThisVisitor
from harness.arena.web.live import ALIVE_SECONDS, Watch
from harness.arena.web.problems import Problem
from harness.arena.web.rendering import fragment

router = APIRouter(prefix="/live", include_in_schema=False)

BOARD_SECONDS = 2.0


@router.get("/submissions/{id}")
async def submission(
    request: Request, site: ThisSite, visitor: ThisVisitor, id: SubmissionId
) -> StreamingResponse:
    """Its state in words and its status as HTML, until there is a result."""
    first = await run_in_threadpool(readable, site, visitor, id)
    watch: Watch = request.app.state.watch
    return _events(watch.follow(first, _status))


def _status(status: Status) -> str:
    events = {
        "state": fragment("state.html", submission=status),
        "status": fragment("status.html", submission=status),
    }
    if status.state.final:
        events["over"] = status.state.value
    return "".join(_event(name, text) for name, text in events.items())


@router.get("/board")
async def board(request: Request, visitor: ThisVisitor) -> StreamingResponse:
    """The version of the board, now and whenever it changes."""
    boards: Boards = request.app.state.boards

    async def stream() -> AsyncIterator[str]:
        told = None
        quiet = 0.0
        while True:
            with suppress(Problem):
                version = (await boards.made(visitor, Form.PAGES)).version
                if version != told or quiet >= ALIVE_SECONDS:
                    told, quiet = version, 0.0
                    yield _event("board", str(version))
            await asyncio.sleep(BOARD_SECONDS)
            quiet += BOARD_SECONDS

    return _events(stream())


def _event(name: str, text: str) -> str:
    data = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{data}\n"


def _events(stream: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(
        stream,
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
