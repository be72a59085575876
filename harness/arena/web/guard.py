"""What stands before every request: sizes, slowness, addresses, and headers on every answer."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.arena.web.problems import Problem
from harness.arena.workers.api import PATH as WORKERS
from harness.judge.submission import MAX_BYTES

MAX_BODY = MAX_BYTES + (1 << 16)
"""A kernel file and what a form wraps around it."""

MAX_HEARD_OUT = 16 << 20
"""A larger body is dropped on the way. Who is cut off while they send does not read why; up to here
they do."""

BODY_SECONDS = 30.0
REMEMBERED_ADDRESSES = 10_000


def policy(styles: str = "'self'") -> str:
    """What a browser may do with a page: nothing inline, nothing from elsewhere.

    styles: where they may come from.
    """
    return (
        f"default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


HEADERS = (
    (b"content-security-policy", policy().encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Guard:
    """ASGI middleware: reads the body whole, within limits, before anything else sees it."""

    def __init__(
        self,
        app: ASGIApp,
        per_minute: Callable[[], int],
        answer: Callable[[Request, Problem], Response],
    ) -> None:
        """per_minute: requests that one address may make. answer: a problem, for whoever asked."""
        self._app = app
        self._addresses = Addresses(per_minute)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in HEADERS if header[0] not in there),
                ]
            await send(message)

        if scope["path"].removeprefix(scope.get("root_path", "")).startswith(WORKERS):
            await self._pass_worker(scope, receive, with_headers)
            return
        try:
            self._addresses.count(_address(scope))
            async with asyncio.timeout(BODY_SECONDS):
                body = await _whole_body(scope, receive)
        except Problem as problem:
            await self._answer(Request(scope), problem)(scope, receive, with_headers)
            return
        except TimeoutError:
            slow = Problem(408, f"The request did not arrive within {BODY_SECONDS:.0f} s.")
            await self._answer(Request(scope), slow)(scope, receive, with_headers)
            return
        if body is None:
            return  # the connection was lost on the way

        pending = [body]

        async def replay() -> Message:
            if pending:
                return {"type": "http.request", "body": pending.pop(), "more_body": False}
            return await receive()

        await self._app(scope, replay, with_headers)

    async def _pass_worker(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A worker with a key may ask as often as it likes; guessing keys is counted."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 401:
                with suppress(Problem):
                    self._addresses.count(_address(scope))
            await send(message)

        try:
            self._addresses.check(_address(scope))
        except Problem as problem:
            await self._answer(Request(scope), problem)(scope, receive, send)
            return
        await self._app(scope, receive, counted)


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope["client"] else ""


async def _whole_body(scope: Scope, receive: Receive) -> bytes | None:
    too_large = Problem(
        413, f"The file is larger than {MAX_BYTES >> 20} MiB; a kernel file is text."
    )
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if not declared.isdigit() or int(declared) > MAX_HEARD_OUT:
        raise too_large
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_HEARD_OUT:
            raise too_large
        if size <= MAX_BODY:
            parts.append(part)
        if not message.get("more_body", False):
            if size > MAX_BODY:
                raise too_large
            return b"".join(parts)


class Addresses:
    """A token bucket an address: so many requests at once, and so many a minute."""

    def __init__(self, per_minute: Callable[[], int]) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises Problem where the address has used up its requests."""
        left, when = self._buckets.get(address, (1.0, 0.0))
        if left + (time.monotonic() - when) * self._per_minute() / 60 < 1:
            raise self._too_many(0.0)

    def count(self, address: str) -> None:
        """Raises Problem where it is one too many."""
        most = self._per_minute()
        now = time.monotonic()
        left, when = self._buckets.pop(address, (float(most), now))
        left = min(left + (now - when) * most / 60, most)
        self._buckets[address] = (max(left - 1, 0.0) if left >= 1 else left, now)
        while len(self._buckets) > REMEMBERED_ADDRESSES:
            self._buckets.popitem(last=False)
        if left < 1:
            raise self._too_many(left)

    def _too_many(self, left: float) -> Problem:
        most = self._per_minute()
        return Problem(
            429,
            f"Your address has sent more than {most} requests within a minute.",
            retry_after=math.ceil((1 - left) * 60 / most),
        )
