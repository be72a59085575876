"""Limits of each request's size, duration and rate, and the headers of each answer."""

import asyncio
import hashlib
import logging
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.arena.problems import Problem
from harness.arena.rules import Limits
from harness.arena.workers.api import PATH as WORKERS
from harness.judge.submission import MAX_BYTES

log = logging.getLogger(__name__)

MAX_BODY = MAX_BYTES + (1 << 16)
"""The size of a kernel file and of what a form adds to it."""

MAX_READ = 16 << 20
"""A body up to this size is read to its end before it is refused. A client that is cut off while it
sends does not read why."""

BODY_SECONDS = 30.0
REMEMBERED = 10_000
"""The most addresses, and people, whose requests are counted."""

STREAMS_PER_PERSON = 12
STREAMS_PER_ADDRESS = 1500
"""A class of 200 behind one address has a few tabs each."""

COOKIE = "arena_session"
UNCOUNTED = re.compile(r"/(assets/.*|healthz|metrics)")
"""Paths that do not count as requests."""

LOCAL_HOST = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])?(:\d+)?")
"""The hosts of requests to an arena that only its own machine reaches. Pages show the address by
which they were asked for, so another site's name must not get there."""

STREAM = re.compile(r"/(live/.*|api/v1/submissions/[^/]*/events)")


def policy(styles: str = "'self'") -> str:
    """Return the policy of a page: nothing inline, nothing from other sites.

    styles: where they may come from.
    """
    return (
        f"default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


HEADERS = {
    "Content-Security-Policy": policy(),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}


class Guard:
    """ASGI middleware that reads each body completely, within limits, before the application."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Callable[[], Limits],
        answer: Callable[[Request, Problem], Response],
        secure: bool = False,
        local: bool = False,
    ) -> None:
        """answer: renders a problem for a request. secure: whether people come by https alone.
        local: whether they come from this machine alone."""
        self._app = app
        self._addresses = Buckets(lambda: limits().per_address_per_minute, "Your address has")
        self._people = Buckets(lambda: limits().per_person_per_minute, "You have")
        self._streams: Counter[tuple[str, str]] = Counter()
        self._answer = answer
        self._local = local
        self._headers = HEADERS | (HTTPS_ONLY if secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 0

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._guarded(scope, receive, with_headers)
        except Problem as problem:
            await self._answer(Request(scope), problem)(scope, receive, with_headers)
        except Exception:
            log.exception("a request failed", extra={"path": _logged_path(scope)})
            if not status:
                failed = Problem(500, "The arena failed at this; the organiser's log says why.")
                await self._answer(Request(scope), failed)(scope, receive, with_headers)
        finally:
            _log_access(scope, status, time.monotonic() - began)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Problem where the request is refused."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            raise Problem(400, "An address has no NUL character.")
        if self._local and not LOCAL_HOST.fullmatch(dict(scope["headers"]).get(b"host", b"")):
            raise Problem(421, "The arena serves its own machine only; a proxy needs --proxy.")
        if _is_from_another_site(scope):
            raise Problem(403, "This form came from another site.")
        if scope["method"] == "POST" and not path.startswith("/api/") and not _is_form(scope):
            raise Problem(415, "Send the fields as a form.")
        if path.startswith(WORKERS):
            await self._worker(scope, receive, send)
        elif STREAM.fullmatch(path):
            await self._stream(scope, receive, send)
        else:
            if not UNCOUNTED.fullmatch(path):
                self._addresses.count(_address(scope))
                if person := _person(scope):
                    self._people.count(person)
            await self._with_body(scope, receive, send)

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _whole_body(scope, receive)
        except TimeoutError:
            said = f"The request did not arrive within {BODY_SECONDS:.0f} s."
            raise Problem(408, said) from None
        if body is None:
            return  # the connection was lost on the way

        pending = [body]

        async def replay() -> Message:
            if pending:
                return {"type": "http.request", "body": pending.pop(), "more_body": False}
            return await receive()

        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # the server omits the body of its answer
        await self._app(scope, replay, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page that watches: it counts while it is open, and not as a request."""
        most = {("address", _address(scope)): STREAMS_PER_ADDRESS}
        if person := _person(scope):
            most["person", person] = STREAMS_PER_PERSON
        for source, allowed in most.items():
            if self._streams[source] >= allowed:
                raise Problem(429, f"{allowed} live pages are open; close one.", retry_after=10)
        self._streams.update(most.keys())
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams -= Counter(most.keys())  # sources without a stream are forgotten

    async def _worker(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a worker. Only requests with a wrong key are limited in number."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 401:
                with suppress(Problem):
                    self._addresses.count(_address(scope))
            await send(message)

        self._addresses.check(_address(scope))
        await self._app(scope, receive, counted)


def _is_from_another_site(scope: Scope) -> bool:
    """Return whether a browser says that a page of another site sent this form."""
    if scope["method"] in ("GET", "HEAD"):
        return False
    headers = dict(scope["headers"])
    site = headers.get(b"sec-fetch-site")  # browsers do not send it without TLS to other machines
    if site is not None:
        return site not in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != headers.get(b"host")


def _is_form(scope: Scope) -> bool:
    """Return whether a request has fields as HTML's forms send them, or none."""
    kind = dict(scope["headers"]).get(b"content-type", b"").partition(b";")[0].strip().lower()
    return kind in (b"", b"application/x-www-form-urlencoded", b"multipart/form-data")


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope["client"] else ""


def _person(scope: Scope) -> str:
    """Return a hash of the request's key or cookie; empty for a stranger."""
    request = Request(scope)
    shown = request.headers.get("authorization") or request.cookies.get(COOKIE)
    return hashlib.sha256(shown.encode()).hexdigest() if shown else ""


def _logged_path(scope: Scope) -> str:
    """Return the path for the log. The links of invitations are secret, so it has none."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return "/join/…" if path.startswith("/join/") else scope["path"]


def _log_access(scope: Scope, status: int, seconds: float) -> None:
    """Log a request; frequent ones of workers and monitoring only for debugging."""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    level = logging.DEBUG if path.startswith(WORKERS) or UNCOUNTED.fullmatch(path) else logging.INFO
    log.log(
        level,
        "request",
        extra={
            "method": scope["method"],
            "path": _logged_path(scope),
            "status": status,
            "from": _address(scope),
            "seconds": round(seconds, 3),
        },
    )


async def _whole_body(scope: Scope, receive: Receive) -> bytes | None:
    too_large = Problem(
        413, f"The file is larger than {MAX_BYTES >> 20} MiB; a kernel file is text."
    )
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if not declared.isdigit() or int(declared) > MAX_READ:
        raise too_large
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_READ:
            raise too_large
        if size <= MAX_BODY:
            parts.append(part)
        if not message.get("more_body", False):
            if size > MAX_BODY:
                raise too_large
            return b"".join(parts)


class Buckets:
    """Leaky buckets: each source may send the requests of a minute at once, and then as many as a
    minute allows."""

    def __init__(self, per_minute: Callable[[], int], who: str) -> None:
        """who: begins the sentence of a refusal."""
        self._per_minute = per_minute
        self._who = who
        self._empty_at: OrderedDict[str, float] = OrderedDict()
        """When the bucket of each source is empty again."""

    def check(self, source: str) -> float:
        """Return when the bucket would be empty after one more request. Raises Problem where it has
        no room for that."""
        most, now = self._per_minute(), time.monotonic()
        empty_at = max(self._empty_at.get(source, now), now) + 60 / most
        wait = empty_at - now - 60
        if wait > 1e-6:  # more than an error of rounding
            said = f"{self._who} sent more than {most} requests within a minute."
            raise Problem(429, said, retry_after=wait)
        return empty_at

    def count(self, source: str) -> None:
        """Count a request. Raises Problem where it is one too many."""
        self._empty_at[source] = self.check(source)
        self._empty_at.move_to_end(source)
        if len(self._empty_at) > REMEMBERED:
            self._empty_at.popitem(last=False)
