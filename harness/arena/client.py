"""Submit kernel files to an arena, and wait for the verdicts.

    export MATMUL_ARENA_KEY=arena_...
    python3 submit.py my_kernel.cu --arena https://arena.example.org

This file needs Python 3.9 and nothing else: an arena serves it as /submit.py. Ctrl-C ends the
watching only. Exit codes: 0 accepted, 1 not accepted, 2 no verdict.
"""

import argparse
import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 60.0
"""The time for which a request is repeated. An arena restarts in much less."""

AGAIN_SECONDS = 0.3
SLOWEST_AGAIN = 2.0
"""The longest pause. It is far below a lease, so that the heartbeat of a worker, which uses this
module, too, comes in time after a restart."""

MAX_READ = 2 << 20
"""How much of a file is read: more than the arena takes, so that it says what is wrong."""

MAX_SILENCE_SECONDS = 60.0
"""The longest time without a message. The arena sends one every 15 seconds."""


ARENA = ""
"""The address of the arena that serves this file."""


class ClientError(Exception):
    """The arena refuses; the text is one sentence."""


class Unreachable(ClientError):
    """The arena does not answer; the text says why."""


def ask(request: Request, timeout: float, patience: float, refusals: Container[int]) -> bytes:
    """Send a request until the arena answers it; return the answer.

    Raises HTTPError with one of the statuses `refusals`, and Unreachable after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    pause = AGAIN_SECONDS
    while True:
        try:
            with urlopen(request, timeout=timeout) as answer:
                body: bytes = answer.read()
                return body
        except HTTPError as error:
            if error.code in refusals:
                raise
            why = sentence(error)
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            why = getattr(reason, "strerror", None) or str(reason)
        if time.monotonic() + pause > deadline:
            raise Unreachable(f"{request.host} does not answer: {why}")
        log.warning("the arena does not answer: %s", why)
        time.sleep(pause)
        pause = min(2 * pause, SLOWEST_AGAIN)


def sentence(error: HTTPError) -> str:
    """Return the arena's own sentence about an error."""
    try:
        detail = str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        detail = f"it answers {error.code} {error.reason}"
    again = error.headers.get("Retry-After")
    return f"the arena: {detail}" + (f" Try again in {again} s." if again else "")


class Client:
    """The requests of one person to one arena."""

    def __init__(self, address: str, key: str) -> None:
        """Raises ClientError where the address is not one of HTTP."""
        if urlsplit(address).scheme not in ("http", "https"):
            raise ClientError(f"--arena takes the arena's address, http://…, not {address!r}")
        self.address = address.rstrip("/")
        self._key = key

    def submit(self, name: str, content: bytes) -> str:
        """Submit a file and return the submission's id. A request that is repeated makes only one.

        Raises ClientError with the arena's own sentence where it does not take it.
        """
        headers = {"Idempotency-Key": secrets.token_hex(16), "Content-Type": "text/plain"}
        path = f"/api/v1/submissions?name={quote(name, errors='replace')}"
        return str(json.loads(self._ask(self._request(path, content, headers)))["id"])

    def reason(self, id: str) -> str:
        """Return the sentence of a report that explains the verdict."""
        report = json.loads(self._ask(self._request(f"/api/v1/submissions/{id}/report")))
        return str(report["outcome"].get("message", ""))

    def statuses(self, id: str) -> Iterator[dict[str, Any]]:
        """Yield a submission's statuses as they change, until its state is final."""
        while True:
            for status in self._events(id):
                yield status
                if status["state"] in ("done", "cancelled"):
                    return
            time.sleep(AGAIN_SECONDS)  # the connection was lost; nothing else was

    def _events(self, id: str) -> Iterator[dict[str, Any]]:
        """Yield statuses as they come, until the connection ends."""
        request = self._request(f"/api/v1/submissions/{id}/events")
        try:
            with urlopen(request, timeout=MAX_SILENCE_SECONDS) as lines:
                for line in lines:
                    if line.startswith(b"data: "):
                        yield json.loads(line[len(b"data: ") :])
        except HTTPError as error:
            if error.code < 500:
                raise ClientError(sentence(error)) from None
        except (OSError, HTTPException):
            # A plain request fails if the arena cannot be reached at all.
            yield json.loads(self._ask(self._request(f"/api/v1/submissions/{id}")))

    def _ask(self, request: Request) -> bytes:
        try:
            return ask(request, 30.0, PATIENCE_SECONDS, range(400, 500))
        except HTTPError as error:
            raise ClientError(sentence(error)) from None

    def _request(
        self, path: str, content: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Request:
        own = {"Authorization": f"Bearer {self._key}", "Accept": "*/*"}
        return Request(self.address + path, content, {**own, **headers})


def main(arguments: list[str]) -> int:
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
        print("interrupted; the arena grades what was submitted", file=sys.stderr)
        return 2


def _submit(arena: str, files: list[Path]) -> int:
    key = os.environ.get("MATMUL_ARENA_KEY", "").strip()
    if not (key.isascii() and key.isprintable() and key):
        raise ClientError(
            "Set MATMUL_ARENA_KEY to your key, which the arena's organiser gives you."
        )
    client = Client(arena, key)
    # All are submitted before any is waited for: they wait together.
    contents = [(file, _content(file)) for file in files]
    ids = [(file, client.submit(file.name, content)) for file, content in contents]
    code = 0
    for file, id in ids:
        name = _plain(file.name)
        print(f"{name} is submission {id}: {client.address}/submissions/{id}")
        status = _watch(client, id)
        verdict = status["verdict"] or status["state"]
        score = f", score {status['score']:.3f}" if status["score"] else ""
        print(f"{name}: {verdict}{score}")
        if verdict != "accepted":
            with suppress(ClientError):  # the verdict is known, and some have no report
                print(f"  {_plain(client.reason(id))}")
            code = max(code, 2 if verdict in ("judge-error", "cancelled") else 1)
    return code


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_READ)
    except OSError as error:
        raise ClientError(f"{file} cannot be read: {error.strerror}.") from None


def _watch(client: Client, id: str) -> dict[str, Any]:
    """Write the progress of a submission to the terminal; return its last status."""
    place: int | None = None
    shown: list[str] = []
    for status in client.statuses(id):
        if status["place"] not in (None, place):
            place = status["place"]
            print(f"place {place} in the queue", file=sys.stderr)
        lines = []
        for stage in status["stages"]:
            lines += [stage["stage"], *(f"  {_plain(each)}" for each in stage["found"])]
        if lines[: len(shown)] != shown:  # another attempt
            shown = []
        for line in lines[len(shown) :]:
            print(line, file=sys.stderr)
        shown = lines
    return status


def _plain(text: str) -> str:
    """Return the text without control characters, which a terminal would obey."""
    kinds = {True: " ", False: "?"}  # a space of another kind, as between groups of digits
    return "".join(each if each.isprintable() else kinds[each.isspace()] for each in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
