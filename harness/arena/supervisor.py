"""Starts the processes of an arena, and restarts each that ends."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.arena.processes import ADDRESS_VARIABLE, SUPERVISOR_VARIABLE, End, ServerFailed
from harness.arena.workers.api import KEY_VARIABLE
from harness.devices.available import gpus, why_no_cuda

if TYPE_CHECKING:
    from harness.arena.postgres import Server  # which a machine with workers alone does not have

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
SLOWEST_RESTART = 10.0
STEADY_SECONDS = 30.0
"""A part that ran for this long is restarted at once."""

END_SECONDS = 10.0


@dataclass
class Part:
    name: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    wait: float = 0.0
    """The pause before the next start in seconds, which doubles while the part fails at once."""
    end: End | None = None
    """The reason why it is not started again."""

    def start(self) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module, *self.arguments],
            stdin=subprocess.PIPE,  # closed when we are gone, and then the part goes, too
            env={**os.environ, **self.environment},
            start_new_session=True,  # Ctrl-C is for us
        )

    def keep_running(self) -> None:
        """Start it, or restart it if it has ended, unless it is not to be restarted."""
        if self.end is not None:
            return
        if self.process is None:
            if time.monotonic() >= self.started + self.wait:
                self.start()
            return
        code = self.process.poll()
        if code is None:
            return
        log.warning("ended", extra={"which": self.name, "exit_code": code})
        self._forget()
        if code in tuple(End):
            self.end = End(code)
            return
        ran = time.monotonic() - self.started
        self.wait = 0.0 if ran > STEADY_SECONDS else min(2 * self.wait + 0.1, SLOWEST_RESTART)
        self.started = time.monotonic()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def reap(self) -> None:
        """Wait for its end, and kill it after a while."""
        if self.process is None:
            return
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._forget()

    def _forget(self) -> None:
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.close()
        self.process = None


def workers(
    address: str, key: str, device: Literal["auto", "cpu"], count: int | None
) -> list[Part]:
    """Return the processes that grade for the arena at this address.

    device: "auto" is every GPU, or the CPU device without one. count: by default one for
    each GPU, or one.
    """
    environment = {
        ADDRESS_VARIABLE: address,
        KEY_VARIABLE: key,
        SUPERVISOR_VARIABLE: str(uuid.uuid4()),
    }
    if device == "cpu" or why_no_cuda() is not None:
        return [_worker(f"cpu-{n}", ["--device", "cpu"], environment) for n in range(count or 1)]
    chosen = gpus()[:count]
    return [
        _worker(
            f"gpu-{n}",
            ["--device", "cuda", "--gpu", str(n), "--gpus", str(len(chosen))],
            environment | {"CUDA_VISIBLE_DEVICES": gpu},
        )
        for n, gpu in enumerate(chosen)
    ]


def _worker(name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Part:
    return Part(name, "harness.arena.workers.process", ["--name", name, *arguments], environment)


class Supervisor:
    """Keeps the database and the parts up until it is stopped."""

    def __init__(self, server: Server | None, parts: Sequence[Part]) -> None:
        """server: the arena's own database server; None for an external database."""
        self.server = server
        self.parts = parts
        self._stop = threading.Event()

    def stop(self) -> None:
        self._stop.set()

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Run until stopped, or until no part is to be restarted.

        started: called in another thread once everything was started.
        """
        threading.Thread(target=started, name="greeting", daemon=True).start()
        try:
            while not self._stop.is_set() and any(part.end is None for part in self.parts):
                try:
                    if self.server is not None:
                        self.server.keep_up()
                except ServerFailed as error:
                    log.error("the database does not start", extra={"error": str(error)})
                for part in self.parts:
                    part.keep_running()
                self._stop.wait(POLL_SECONDS)
        finally:
            # The first is the web service, to which the workers give back what they grade.
            for parts in (self.parts[1:], self.parts[:1]):
                for part in parts:
                    part.stop()
                for part in parts:
                    part.reap()
