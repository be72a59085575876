"""Submit kernel files to an arena, and wait for the verdicts.

    export MATMUL_ARENA_KEY=arena_...
    python3 submit.py my_kernel.cu --arena https://arena.example.org

This file needs Python 3.9 and nothing else: an arena serves it as /submit.py. Ctrl-C ends the
watching only. Exit codes: 0 accepted, 1 not accepted, 2 no verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

PATIENCE_SECONDS = 60.0
"""The time for which a request is repeated. An arena restarts in much less."""

AGAIN_SECONDS = 1.0
MAX_SILENCE_SECONDS = 60.0
"""The longest time without a message. The arena sends one every 15 seconds."""


ARENA = ""
"""The address of the arena that serves this file."""


class ClientError(Exception):
    """The arena refuses, or does not answer; the text is one sentence."""


class Watcher(Protocol):
    """Receives the progress of a grading."""

    def begin(self, stage: str, total: "int | None") -> None:
        """A stage begins; total: its number of steps where that is known."""

    def step(self, text: str) -> None:
        """One step is about to be done."""

    def found(self, sentences: "list[str]") -> None:
        """The stage has found something."""


class Client:
    """The requests of one person to one arena."""

    def __init__(self, address: str, key: str) -> None:
        """Raises ClientError where the address is not one of HTTP."""
        if urlsplit(address).scheme not in ("http", "https"):
            raise ClientError(f"--arena takes the arena's address, http://…, not {address!r}")
        self._address = address.rstrip("/")
        self._key = key

    def submit(self, name: str, content: bytes) -> str:
        """Submit a file and return the submission's id. A request that is repeated makes only one.

        Raises ClientError with the arena's own sentence where it does not take it.
        """
        headers = {"Idempotency-Key": secrets.token_hex(16), "Content-Type": "text/plain"}
        path = f"/api/v1/submissions?name={quote(name)}"
        return str(json.loads(self._ask(path, content, headers))["id"])

    def watch(self, id: str, progress: Watcher) -> dict[str, Any]:
        """Follow a submission until its state is final; return the last status."""
        shown = 0, 0
        waiting: str | None = None
        while True:
            for status in self._events(id):
                if status["state"] in ("done", "cancelled"):
                    return status
                place = status["place"] and f"place {status['place']} in the queue"
                if place and place != waiting:
                    waiting = place
                    progress.step(place)
                shown = self._show(status["stages"], shown, progress)
                if status["step"]:
                    progress.step(status["step"])
            time.sleep(AGAIN_SECONDS)  # the connection was lost; nothing else was

    def _show(
        self, stages: Sequence[dict[str, Any]], shown: tuple[int, int], progress: Watcher
    ) -> tuple[int, int]:
        """Show what is new. shown: the stages, and sentences of the last one, so far."""
        begun, sentences = shown
        if len(stages) < begun:  # another attempt
            begun, sentences = 0, 0
        for number, stage in enumerate(stages, start=1):
            if number > begun:
                progress.begin(stage["stage"], stage["total"])
                sentences = 0
            if number >= begun:
                progress.found(stage["found"][sentences:])
                sentences = len(stage["found"])
        return len(stages), sentences

    def report(self, id: str) -> bytes:
        """Return the report of a graded submission, as JSON."""
        return self._ask(f"/api/v1/submissions/{id}/report")

    def _events(self, id: str) -> Iterator[dict[str, Any]]:
        """Yield statuses as they come, until the connection ends."""
        try:
            with self._open(
                f"/api/v1/submissions/{id}/events", None, {}, MAX_SILENCE_SECONDS
            ) as lines:
                for line in lines:
                    if line.startswith(b"data: "):
                        yield json.loads(line.removeprefix(b"data: "))
        except HTTPError as error:
            if error.code < 500:
                raise ClientError(sentence(error)) from None
        except (OSError, HTTPException):
            # A plain request fails if the arena cannot be reached at all.
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
                    raise ClientError(sentence(error)) from None
            except (URLError, OSError, HTTPException) as error:
                if time.monotonic() > deadline:
                    reason = getattr(error, "reason", error)
                    raise ClientError(f"{self._address} does not answer: {reason}") from None
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
    """Return the arena's own sentence about an error."""
    try:
        detail = str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        detail = f"it answers {error.code} {error.reason}"
    again = error.headers.get("Retry-After")
    return f"the arena: {detail}" + (f" Try again in {again} s." if again else "")


class Lines:
    """Writes the progress to the terminal, a line for each stage."""

    def begin(self, stage: str, total: "int | None") -> None:
        print(stage, file=sys.stderr)

    def step(self, text: str) -> None:
        if text.startswith("place"):
            print(text, file=sys.stderr)

    def found(self, sentences: "list[str]") -> None:
        for sentence in sentences:
            print(f"  {_plain(sentence)}", file=sys.stderr)


def _plain(text: str) -> str:
    """Return the text without control characters, which a terminal would obey."""
    kinds = {True: " ", False: "?"}  # a space of another kind, as between groups of digits
    return "".join(each if each.isprintable() else kinds[each.isspace()] for each in text)


def main(arguments: "list[str]") -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--arena", default=ARENA, metavar="URL", required=not ARENA)
    options = parser.parse_args(arguments)
    try:
        return _submit(options.arena, options.files)
    except (ClientError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2


def _submit(arena: str, files: "list[Path]") -> int:
    key = os.environ.get("MATMUL_ARENA_KEY", "")
    if not key:
        raise ClientError(
            "Set MATMUL_ARENA_KEY to your key, which the arena's organiser gives you."
        )
    client = Client(arena, key)
    # All are submitted before any is waited for: they wait together.
    ids = [(file, client.submit(file.name, file.read_bytes())) for file in files]
    code = 0
    for file, id in ids:
        print(f"{file.name} is submission {id}: {arena.rstrip('/')}/submissions/{id}")
        status = client.watch(id, Lines())
        verdict = status["verdict"] or status["state"]
        score = f", score {status['score']:.3f}" if status["score"] else ""
        print(f"{file.name}: {verdict}{score}")
        if verdict != "accepted":
            code = max(code, 2 if verdict in ("judge-error", "cancelled") else 1)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
