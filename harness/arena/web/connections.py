"""Limits of a connection: the size of headers, idle time, and the end of streams.

uvicorn has no such limits itself.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADERS = 64 << 10
"""The most bytes of a request's headers."""

HEADER_SECONDS = 15.0
"""The longest time from the connection, or the last answer, to the next complete headers."""


STREAMS = "streams"
"""The name in a request's state that says whether its answer is a stream of events."""


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header_bytes = 0
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waiting is not None:
            if self._header_bytes > MAX_HEADERS:
                self.transport.abort()
                return
            self._header_bytes += len(data)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait()

    def shutdown(self) -> None:
        """End a stream at once: the server would wait for its end, cancel it, and log an error."""
        super().shutdown()
        if self.cycle is not None and self.cycle.scope.get("state", {}).get(STREAMS):
            self.transport.close()

    def _wait(self) -> None:
        self._stop_waiting()
        self._header_bytes = 0
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
