"""Measure how quick a real arena is under load."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import gevent
import locust
import locust.env
import psutil
import requests
from gevent import socket
from locust.contrib.fasthttp import FastHttpUser

from harness.protocol.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "solutions" / "02_shared_tile.cu"
WEB = "harness.arena.web.server"
PROBES, WAITING = 15, 40


class Reader(FastHttpUser):  # type: ignore[misc]
    """Asks for the board once a second."""

    wait_time = locust.constant_throughput(1)

    @locust.task
    def board(self) -> None:
        self.client.get("/", headers={"Accept-Encoding": "gzip"}, name="board")


@dataclass
class Watchers:
    """Connections that watch submissions, and the number of events that they got."""

    open: int = 0
    told: int = 0

    def watch(self, port: int, key: str, id: str) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(_get(id, key))
            self.open += 1
            while part := connection.recv(1 << 16):
                self.told += part.count(b"\ndata: ")


def _get(id: str, key: str) -> bytes:
    head = f"GET /api/v1/submissions/{id}/events HTTP/1.1", "Host: arena"
    return "\r\n".join([*head, f"Authorization: Bearer {key}", "", ""]).encode()


def main(options: argparse.Namespace) -> int:
    """Do what the command load asks for."""
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        # What fills the database imports much that gevent should not patch.
        filling = subprocess.run(
            [sys.executable, "-m", "lab.arena_filled", folder, str(options.entries)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        key = filling.stdout.strip()
        before = round(os.getloadavg()[0], 1)
        began = time.monotonic()
        with arena(Path(folder, "data"), options.port) as process:
            address = f"http://127.0.0.1:{options.port}"
            until_well(address)
            well = time.monotonic() - began
            requests.get(f"{address}/", timeout=120).raise_for_status()
            result = {
                "entries": options.entries,
                "cpus": os.cpu_count(),
                "machine_load_before": before,
                "seconds_to_start": {
                    "all is well": round(well, 2),
                    "the board": round(time.monotonic() - began, 2),
                },
                "seconds_to_the_first_stage": first_stages(address, key),
                "load": load(options, address, key, web_process(process.pid)),
                "machine_load_after": round(os.getloadavg()[0], 1),
            }
    text = json.dumps(result, indent=1) + "\n"
    print(text)
    if options.out:
        write_whole(options.out, text)
    return 0


@contextmanager
def arena(data: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "harness", "arena", "--data", str(data), "--port", str(port)]
    with open(data / "arena.log", "w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def until_well(address: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if requests.get(f"{address}/healthz", timeout=5).status_code == 200:
                return
        except requests.RequestException:
            pass
        time.sleep(0.05)
    raise SystemExit("the arena does not start")


def web_process(arena: int) -> psutil.Process:
    return next(each for each in psutil.Process(arena).children() if WEB in each.cmdline())


def first_stages(address: str, key: str) -> dict[str, float]:
    """Return the seconds from the answer 202, with an empty queue, to the first stage."""
    headers = {"Authorization": f"Bearer {key}"}
    taken = []
    for number in range(PROBES):
        id = hand_in(address, key, f"alone {number}")
        answered = time.monotonic()
        with requests.get(
            f"{address}/api/v1/submissions/{id}/events", headers=headers, stream=True, timeout=120
        ) as events:
            for line in events.iter_lines(chunk_size=1):
                if line.startswith(b"data:") and json.loads(line[5:])["stages"]:
                    taken.append(time.monotonic() - answered)
                    break
        until_done(address, headers, id)
    return {
        "median": round(median(taken), 3),
        "longest": round(max(taken), 3),
        "submissions": len(taken),
    }


def hand_in(address: str, key: str, name: str) -> str:
    answer = requests.post(
        f"{address}/api/v1/submissions",
        params={"name": name},
        data=KERNEL.read_bytes(),
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def until_done(address: str, headers: dict[str, str], id: str) -> None:
    while True:
        answer = requests.get(f"{address}/api/v1/submissions/{id}", headers=headers, timeout=60)
        if answer.json()["state"] == "done":
            return
        time.sleep(0.1)


def load(
    options: argparse.Namespace, address: str, key: str, web: psutil.Process
) -> dict[str, Any]:
    submissions = [hand_in(address, key, f"watched {number}") for number in range(WAITING)]
    watchers = Watchers()
    watching = [
        gevent.spawn(watchers.watch, options.port, key, submissions[-1 - number % WAITING])
        for number in range(options.watchers)
    ]
    gevent.sleep(5)
    open_then, before, spent = watchers.open, graded(address), sum(web.cpu_times()[:2])
    Reader.host = address
    environment = locust.env.Environment(user_classes=[Reader])
    runner = environment.create_local_runner()
    runner.start(options.rate, spawn_rate=options.rate)
    gevent.sleep(options.seconds)
    stats = environment.stats.total
    result = {
        "seconds": options.seconds,
        "boards": stats.num_requests,
        "boards_a_second": round(stats.total_rps, 1),
        "failures": stats.num_failures,
        "bytes_of_a_board": len(requests.get(f"{address}/", stream=True, timeout=60).raw.read()),
        "milliseconds": {
            f"p{share}": stats.get_response_time_percentile(share / 100)
            for share in (50, 90, 95, 99)
        },
        "watchers": open_then,
        "told": watchers.told,
        "graded_meanwhile": graded(address) - before,
        "of_a_processor_for_the_web": round(
            (sum(web.cpu_times()[:2]) - spent) / options.seconds, 3
        ),
        "machine_load": round(os.getloadavg()[0], 1),
    }
    runner.quit()
    gevent.killall(watching)
    return result


def graded(address: str) -> int:
    for line in requests.get(f"{address}/metrics", timeout=30).text.splitlines():
        if line.startswith('arena_gradings{state="done"}'):
            return int(float(line.split()[-1]))
    return 0
