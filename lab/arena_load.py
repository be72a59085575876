"""Measure how fast a real arena responds under load."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gevent
import locust
import locust.env
import locust.stats
import psutil
import requests
from locust.contrib.fasthttp import FastHttpUser

from harness.protocol.files import write_whole
from lab.arena_process import ROOT, running_arena

KERNEL = ROOT / "solutions" / "02_shared_tile.cu"
WEB = "harness.arena.web.server"


class Reader(FastHttpUser):  # type: ignore[misc]
    """A signed-in user that requests a page once a second on average, at random times. Readers that
    all sent requests at once would measure the length of their own queue."""

    wait_time = locust.between(0, 2)
    keys: Sequence[str] = ()
    ids: Sequence[str] = ()

    @locust.task(4)
    def board(self) -> None:
        self._read("/", "board")

    @locust.task(1)
    def runs(self) -> None:
        self._read("/runs.html", "all runs")

    @locust.task(2)
    def mine(self) -> None:
        self._read("/mine", "my submissions")

    @locust.task(2)
    def submission(self) -> None:
        number = random.randrange(len(self.ids))
        self._read(f"/submissions/{self.ids[number]}", "submission", number)

    @locust.task(1)
    def problem(self) -> None:
        self._read("/problem", "problem")

    def _read(self, path: str, name: str, person: int | None = None) -> None:
        key = random.choice(self.keys) if person is None else self.keys[person % len(self.keys)]
        headers = {"Accept-Encoding": "gzip", "Authorization": f"Bearer {key}"}
        self.client.get(path, headers=headers, name=name)


@dataclass
class Watchers:
    """Pages that watch a submission or the board, and reload it when it has changed."""

    address: str
    refused: int = 0
    open: int = 0
    events_received: int = 0
    reloads: list[float] = field(default_factory=list)

    def watch(self, path: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        with requests.get(self.address + path, headers=headers, stream=True, timeout=120) as events:
            if events.status_code != 200:
                self.refused += 1
                return
            self.open += 1
            version = b""
            for line in events.iter_lines(chunk_size=None):
                if not line.startswith(b"data: "):
                    continue
                self.events_received += 1
                if path == "/live/board" and version not in (b"", line):
                    gevent.spawn_later(2 * random.random(), self._reload)
                version = line

    def _reload(self) -> None:
        began = time.monotonic()
        requests.get(f"{self.address}/", timeout=120).raise_for_status()
        self.reloads.append(time.monotonic() - began)


def main(options: argparse.Namespace) -> int:
    """Run the load test of the command `load`."""
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        # The code that fills the database imports modules that gevent should not patch.
        filling = subprocess.run(
            [sys.executable, "-m", "lab.arena_filled", folder, str(options.entries)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        keys = filling.stdout.split()
        with running_arena(Path(folder, "data"), options.port) as process:
            address = f"http://127.0.0.1:{options.port}"
            requests.get(f"{address}/", timeout=120).raise_for_status()
            result = {
                "entries": options.entries,
                "cpus": os.cpu_count(),
                "load": load(options, address, keys, web_process(process.pid)),
            }
    text = json.dumps(result, indent=1) + "\n"
    print(text)
    if options.out:
        write_whole(options.out, text)
    return 0


def web_process(arena: int) -> psutil.Process:
    return next(each for each in psutil.Process(arena).children() if WEB in each.cmdline())


def submit(address: str, key: str, name: str) -> str:
    answer = requests.post(
        f"{address}/api/v1/submissions",
        params={"name": name},
        data=KERNEL.read_bytes(),
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def load(
    options: argparse.Namespace, address: str, keys: Sequence[str], web: psutil.Process
) -> dict[str, Any]:
    Reader.host, Reader.keys = address, keys
    Reader.ids = [
        submit(address, keys[number % len(keys)], f"watched {number}")
        for number in range(options.submissions)
    ]
    watchers = Watchers(address)
    watching = []
    for number in range(options.watchers):
        which = len(Reader.ids) - 1 - (number // 2) % len(Reader.ids)
        path = f"/live/submissions/{Reader.ids[which]}" if number % 2 else "/live/board"
        watching.append(gevent.spawn(watchers.watch, path, keys[which % len(keys)]))
    gevent.sleep(5)
    events, before = watchers.events_received, graded(address)
    spent = sum(web.cpu_times()[:2])
    environment = locust.env.Environment(user_classes=[Reader])
    runner = environment.create_local_runner()
    runner.start(options.rate, spawn_rate=options.rate)
    gevent.sleep(options.seconds)
    stats = environment.stats
    result = {
        "seconds": options.seconds,
        "reads": stats.total.num_requests,
        "reads_a_second": round(stats.total.total_rps, 1),
        "failures": stats.total.num_failures,
        "milliseconds": _milliseconds(stats.total),
        "milliseconds_by_page": {
            name: _milliseconds(page) for (name, _), page in stats.entries.items()
        },
        "bytes_of_a_board": len(requests.get(f"{address}/", stream=True, timeout=60).raw.read()),
        "watchers": watchers.open,
        "watchers_refused": watchers.refused,
        "events": watchers.events_received - events,
        "boards_read_again": len(watchers.reloads),
        "milliseconds_of_reading_again": _of(watchers.reloads),
        "graded_meanwhile": graded(address) - before,
        "of_a_processor_for_the_web": round(
            (sum(web.cpu_times()[:2]) - spent) / options.seconds, 3
        ),
        "machine_load": round(os.getloadavg()[0], 1),
    }
    runner.quit()
    gevent.killall(watching)
    return result


def _milliseconds(page: locust.stats.StatsEntry) -> dict[str, int]:
    return {f"p{share}": page.get_response_time_percentile(share / 100) for share in (50, 90, 99)}


def _of(seconds: Sequence[float]) -> dict[str, int]:
    found = sorted(seconds)
    return {
        f"p{share}": round(1000 * found[min(share * len(found) // 100, len(found) - 1)])
        for share in (50, 90, 99)
        if found
    }


def graded(address: str) -> int:
    for line in requests.get(f"{address}/metrics", timeout=30).text.splitlines():
        if line.startswith('arena_gradings{state="done"}'):
            return int(float(line.split()[-1]))
    return 0
