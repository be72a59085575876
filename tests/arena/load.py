"""Load on a real arena while it grades: the board with 10 000 entries, and watchers of live status.

    python3 -m tests.arena.load --out reports/arena-load.json

locust asks for the board 50 times a second while 300 connections watch a submission and the CPU
device grades. Not part of the suite; it needs the locust of the group `test`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gevent
import locust
import locust.env
import requests

ROOT = Path(__file__).resolve().parent.parent.parent


class Reader(locust.HttpUser):
    """Asks for the board once a second."""

    wait_time = locust.constant_throughput(1)

    @locust.task
    def board(self) -> None:
        self.client.get("/", headers={"Accept-Encoding": "gzip"}, name="board")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=50, help="boards a second")
    parser.add_argument("--watchers", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--port", type=int, default=8933)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        # What fills the database imports much that gevent should not patch.
        filling = subprocess.run(
            [sys.executable, "-m", "tests.arena.filled", folder, str(options.entries)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        key, *submissions = filling.stdout.split()
        data = Path(folder, "data")
        with open(data / "arena.log", "w") as log:
            arena = subprocess.Popen(
                [
                    *(sys.executable, "-m", "harness", "arena", "--data", str(data)),
                    *("--port", str(options.port)),
                ],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )
        try:
            result = load(options, key, submissions)
        finally:
            arena.send_signal(signal.SIGTERM)
            arena.wait(60)
    text = json.dumps(result, indent=1) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)
    return 0


def load(options: argparse.Namespace, key: str, submissions: list[str]) -> dict[str, Any]:
    address = f"http://127.0.0.1:{options.port}"
    until_well(address)
    headers = {"Authorization": f"Bearer {key}"}
    requests.get(f"{address}/", timeout=120)
    watching = [0]
    told = [0]

    def watch(id: str) -> None:
        with requests.get(
            f"{address}/api/v1/submissions/{id}/events", headers=headers, stream=True, timeout=120
        ) as answer:
            watching[0] += 1
            for line in answer.iter_lines():
                told[0] += line.startswith(b"data:")

    watchers = [
        gevent.spawn(watch, submissions[number % len(submissions)])
        for number in range(options.watchers)
    ]
    gevent.sleep(10)
    open_then = watching[0]
    before = graded(address)
    Reader.host = address
    environment = locust.env.Environment(user_classes=[Reader])
    runner = environment.create_local_runner()
    runner.start(options.rate, spawn_rate=options.rate)
    gevent.sleep(options.seconds)
    stats = environment.stats.total
    result = {
        "entries": options.entries,
        "seconds": options.seconds,
        "cpus": os.cpu_count(),
        "machine_load": round(os.getloadavg()[0], 1),
        "boards": stats.num_requests,
        "boards_a_second": round(stats.total_rps, 1),
        "failures": stats.num_failures,
        "bytes_of_a_board": round(stats.avg_content_length),
        "milliseconds": {
            f"p{share}": stats.get_response_time_percentile(share / 100)
            for share in (50, 90, 95, 99)
        },
        "watchers": open_then,
        "told": told[0],
        "graded_meanwhile": graded(address) - before,
    }
    runner.quit()
    gevent.killall(watchers)
    return result


def graded(address: str) -> int:
    for line in requests.get(f"{address}/metrics", timeout=30).text.splitlines():
        if line.startswith('arena_gradings{state="done"}'):
            return int(float(line.split()[-1]))
    return 0


def until_well(address: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if requests.get(f"{address}/healthz", timeout=5).status_code == 200:
                return
        except requests.RequestException:
            pass
        time.sleep(0.2)
    raise SystemExit("the arena does not start")


if __name__ == "__main__":
    sys.exit(main())
