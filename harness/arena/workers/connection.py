"""A worker's requests to its arena, which are repeated while the arena does not answer."""

from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from harness.arena.build import Build
from harness.arena.client import ask, sentence
from harness.arena.workers.api import (
    PATH,
    POLL_SECONDS,
    Decision,
    Heartbeat,
    HeartbeatAnswer,
    Join,
    Task,
)
from harness.protocol.errors import UsageError
from harness.protocol.report import Report

TIMEOUT_SECONDS = 30.0
LOCAL = ("localhost", "127.0.0.1", "::1")

Answer = TypeVar("Answer")


class Refused(UsageError):
    """The arena refuses this request, and would again. The text says why."""


class GpuTaken(Exception):
    """Another worker has this GPU. The text says which."""


class SessionLost(Exception):
    """The worker counted as dead, or another one has its GPU. It may join again."""


REFUSALS = {409: GpuTaken, 410: SessionLost} | dict.fromkeys(
    (400, 401, 403, 404, 413, 422), Refused
)
"""The statuses after which the same request would be refused again. Others are repeated."""


class Connection:
    """One machine's requests, from any thread."""

    def __init__(self, address: str, key: str, patience: float = float("inf")) -> None:
        """patience: seconds for which a request is repeated while the arena does not answer.

        Raises UsageError where the address is not one of HTTP, or would send the key unencrypted.
        """
        split = urlsplit(address)
        if split.scheme not in ("http", "https") or not split.hostname:
            raise UsageError(f"--arena takes the arena's address, https://…, not {address!r}")
        if split.scheme == "http" and split.hostname not in LOCAL:
            raise UsageError(
                f"{address} is not encrypted, so others could read the worker's key: use "
                "https://, or reach the arena through `ssh -L 8040:127.0.0.1:8040` as "
                "http://127.0.0.1:8040"
            )
        self.address = address.rstrip("/")
        self._key = key
        self._patience = patience

    def build(self) -> Build:
        """Return how the arena judges."""
        return self._ask("GET", "", None, Build)

    def join(self, join: Join) -> UUID:
        """Return the session. Raises Refused or GpuTaken."""
        return self._ask("POST", "", join, UUID)

    def heartbeat(self, session: UUID, heartbeat: Heartbeat) -> HeartbeatAnswer:
        """Raises Refused or SessionLost."""
        return self._ask("POST", f"/{session}/heartbeat", heartbeat, HeartbeatAnswer)

    def fetch(self, session: UUID) -> Task | None:
        """Return the next task, or None where there was none for a while.

        Raises Refused or SessionLost.
        """
        content = self._send("POST", f"/{session}/fetch", None)
        return _read(Task, content) if content else None

    def finish(self, attempt: UUID, report: Report) -> Decision:
        """Send a report until the arena has it. Sent twice, it counts once."""
        return self._ask("PUT", f"/attempts/{attempt}/result", report, Decision)

    def release(self, attempt: UUID) -> None:
        """Let another worker grade it."""
        self._send("POST", f"/attempts/{attempt}/release", None)

    def leave(self, session: UUID) -> None:
        self._send("POST", f"/{session}/leave", None)

    def drain(self) -> int:
        """Tell this machine's workers to leave; return how many are still there."""
        return self._ask("POST", "/drain", None, int)

    def _ask(
        self, method: str, path: str, message: BaseModel | None, answer: type[Answer]
    ) -> Answer:
        content = None if message is None else message.model_dump_json().encode()
        return _read(answer, self._send(method, path, content))

    def _send(self, method: str, path: str, content: bytes | None) -> bytes:
        request = Request(
            self.address + PATH + path,
            content,
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            return ask(request, POLL_SECONDS + TIMEOUT_SECONDS, self._patience, REFUSALS)
        except HTTPError as error:
            raise REFUSALS[error.code](sentence(error)) from None


def _read(answer: type[Answer], content: bytes) -> Answer:
    """Raises Refused where the answer is not that of an arena of this version."""
    try:
        return TypeAdapter(answer).validate_json(content)
    except ValidationError:
        raise Refused("the server at this address is not an arena of this version") from None
