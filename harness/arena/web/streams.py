"""Server-sent events about a submission or the board. Closing a stream cancels nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import lru_cache

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from harness.arena.problems import Problem
from harness.arena.store.watching import Status
from harness.arena.web import api
from harness.arena.web.api import SubmissionId
from harness.arena.web.board_files import Form
from harness.arena.web.boards import Boards
from harness.arena.web.connections import STREAMS
from harness.arena.web.context import ThisVisitor, Visitor
from harness.arena.web.live import ALIVE_SECONDS, Watch, Writer
from harness.arena.web.rendering import fragment

router = APIRouter(prefix="/live", include_in_schema=False)

BOARD_SECONDS = 2.0
"""The time between two looks at the board."""


@api.router.get("/submissions/{id}/events", responses=api.ERRORS, response_class=StreamingResponse)
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
