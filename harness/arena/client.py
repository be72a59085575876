"""Handing in from a terminal, and watching until there is a report; patient with a lost connection.

Only the standard library: whoever submits needs nothing of the arena's own.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from harness.judge.progress import Progress
from harness.protocol.errors import UsageError
from harness.protocol.report import Report, Stage

PATIENCE_SECONDS = 60.0
"""An arena that is started again is back long before."""

AGAIN_SECONDS = 1.0
MAX_SILENCE_SECONDS = 60.0
"""The arena says something every quarter of a minute."""


class Client:
    """One person at one arena."""

    def __init__(self, address: str, key: str) -> None:
        """Raises UsageError where the address is none."""
        if urlsplit(address).scheme not in ("http", "https"):
            raise UsageError(f"--arena takes the arena's address, http://…, not {address!r}")
        self._address = address.rstrip("/")
        self._key = key

    def submit(self, name: str, content: bytes) -> str:
        """The submission's id. Sent again and again, it is still one submission.

        Raises UsageError with the arena's own sentence where it does not take it.
        """
        headers = {"Idempotency-Key": secrets.token_hex(16), "Content-Type": "text/plain"}
        path = f"/api/v1/submissions?name={quote(name)}"
        return str(json.loads(self._ask(path, content, headers))["id"])

    def watch(self, id: str, progress: Progress) -> dict[str, Any]:
        """Until its state is final: the last status."""
        told = 0, 0
        waiting: str | None = None
        while True:
            for status in self._events(id):
                if status["state"] in ("done", "cancelled"):
                    return status
                place = status["place"] and f"place {status['place']} in the queue"
                if place and place != waiting:
                    waiting = place
                    progress.step(place)
                told = self._tell(status["stages"], told, progress)
                if status["step"]:
                    progress.step(status["step"])
            time.sleep(AGAIN_SECONDS)  # the connection was lost; nothing else was

    def _tell(
        self, stages: Sequence[dict[str, Any]], told: tuple[int, int], progress: Progress
    ) -> tuple[int, int]:
        """What is new since so many stages, and so many sentences of the last of them."""
        begun, sentences = told
        if len(stages) < begun:  # another attempt
            begun, sentences = 0, 0
        for number, stage in enumerate(stages, start=1):
            if number > begun:
                progress.begin(Stage(stage["stage"]), stage["total"])
                sentences = 0
            if number >= begun:
                progress.found(stage["found"][sentences:])
                sentences = len(stage["found"])
        return len(stages), sentences

    def report(self, id: str) -> Report:
        return Report.model_validate_json(self._ask(f"/api/v1/submissions/{id}/report"))

    def _events(self, id: str) -> Iterator[dict[str, Any]]:
        """Statuses as they come, until the connection ends."""
        try:
            with self._open(
                f"/api/v1/submissions/{id}/events", None, {}, MAX_SILENCE_SECONDS
            ) as lines:
                for line in lines:
                    if line.startswith(b"data: "):
                        yield json.loads(line.removeprefix(b"data: "))
        except HTTPError as error:
            if error.code < 500:
                raise UsageError(sentence(error)) from None
        except (OSError, HTTPException):
            # Whether it is gone for long, a plain request finds out.
            yield json.loads(self._ask(f"/api/v1/submissions/{id}"))

    def _ask(
        self, path: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with self._open(path, content, headers or {}, 30) as answer:
                    body: bytes = answer.read()
                    return body
            except HTTPError as error:
                if error.code < 500 or time.monotonic() > deadline:
                    raise UsageError(sentence(error)) from None
            except (URLError, OSError, HTTPException) as error:
                if time.monotonic() > deadline:
                    reason = getattr(error, "reason", error)
                    raise UsageError(f"{self._address} does not answer: {reason}") from None
            time.sleep(AGAIN_SECONDS)

    def _open(
        self, path: str, content: bytes | None, headers: Mapping[str, str], seconds: float
    ) -> Any:
        request = Request(
            self._address + path,
            content,
            {"Authorization": f"Bearer {self._key}", "Accept": "*/*", **headers},
        )
        return urlopen(request, timeout=seconds)


def sentence(error: HTTPError) -> str:
    """What the arena says is wrong."""
    try:
        detail = str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        detail = f"it answers {error.code} {error.reason}"
    again = error.headers.get("Retry-After")
    return f"the arena: {detail}" + (f" Come back in {again} s." if again else "")
