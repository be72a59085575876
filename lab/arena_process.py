"""A real arena, started for a test of the lab."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 600.0


@contextmanager
def running_arena(data: Path, port: int, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run an arena on this folder, ready to answer. Raises SystemExit if it does not start."""
    command = [sys.executable, "-m", "harness", "arena", "--data", str(data), "--port", str(port)]
    with open(data / "arena.log", "w") as log:
        process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=log, stderr=log)
    try:
        _wait_until_ready(f"http://127.0.0.1:{port}/healthz")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            if httpx.get(address, timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise SystemExit("the arena does not start")
