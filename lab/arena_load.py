"""The visitors of an arena under load, as Locust runs them for the command `load`.

The environment holds their keys.
"""

import os
import random
from itertools import cycle
from pathlib import Path

import locust
from locust.contrib.fasthttp import FastHttpUser

KEYS_VARIABLE = "MATMUL_ARENA_LOAD_KEYS"
KEYS = cycle(os.environ.get(KEYS_VARIABLE, "none").split())
KERNEL = Path(__file__).resolve().parents[1] / "solutions" / "02_shared_tile.cu"


def header() -> dict[str, str]:
    """Return the next person's key as a header."""
    return {"Authorization": f"Bearer {next(KEYS)}"}


class Reader(FastHttpUser):  # type: ignore[misc]
    """A person who opens a page once a second on average, at random times. Readers that all sent
    requests at once would measure the length of their own queue."""

    weight = 1
    wait_time = locust.between(0, 2)

    @locust.task
    def read(self) -> None:
        path = random.choice(("/", "/", "/", "/runs.html", "/mine", "/problem"))
        self.client.get(path, headers={"Accept-Encoding": "gzip", **header()})


class Watcher(locust.HttpUser):  # type: ignore[misc]
    """A page that watches a submission of its reader's, or the board, which it reads again at each
    change."""

    weight = 10

    @locust.task
    def watch_submission(self) -> None:
        mine = header()
        sent = self.client.post("/api/v1/submissions", data=KERNEL.read_bytes(), headers=mine)
        page = f"/submissions/{sent.json()['id']}"
        self.client.get(page, name="submission", headers=mine)
        self._watch(f"/live{page}", "watch a submission", mine, "")

    @locust.task
    def watch_board(self) -> None:
        self._watch("/live/board", "watch the board", header(), "/")

    def _watch(self, path: str, name: str, headers: dict[str, str], page: str) -> None:
        version = b""
        events = self.client.get(path, name=name, headers=headers, stream=True)
        for line in events.iter_lines(chunk_size=None):
            if page and line.startswith(b"data: ") and line != version:
                version = line
                self.client.get(page, name="read the board again")
