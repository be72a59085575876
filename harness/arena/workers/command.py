"""The command `harness worker`: let this machine's GPUs grade for an arena."""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from harness.arena.build import Build, refusal
from harness.arena.client import Unreachable
from harness.arena.logs import Output, log_as
from harness.arena.processes import End
from harness.arena.supervisor import Supervisor, workers
from harness.arena.workers.api import KEY_VARIABLE, ArenaInfo
from harness.arena.workers.connection import Connection
from harness.devices.available import why_no_cuda
from harness.protocol.errors import UsageError

LOOK_SECONDS = 1.0
GREETING_SECONDS = 10.0


def run(arguments: argparse.Namespace, terminal: Output) -> None:
    """Raises UsageError where it cannot be done."""
    log_as("worker")
    key = _key(arguments.key)
    connection = Connection(arguments.arena, key, patience=GREETING_SECONDS)
    try:
        info = connection.info()
        if arguments.drain:
            _drain(connection, terminal)
            return
    except Unreachable as error:
        raise UsageError(str(error)) from None
    _serve(connection, key, info, arguments, terminal)


def _key(file: Path | None) -> str:
    """Read the key from the file, or take it from the environment. Raises UsageError."""
    if file is None:
        key = os.environ.pop(KEY_VARIABLE, "")
    else:
        try:
            key = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{file} cannot be read; --key names a worker key's file") from None
    if not key.isascii() or not key.isprintable() or " " in key or not key:
        raise UsageError(
            f"set {KEY_VARIABLE} to this machine's worker key, or name its file with --key; "
            "`nox -s arena -- worker-key --name MACHINE` makes one on the arena's machine"
        )
    return key


def _serve(
    connection: Connection,
    key: str,
    info: ArenaInfo,
    arguments: argparse.Namespace,
    terminal: Output,
) -> None:
    """Work until this is stopped or all workers have left."""
    build = Build.here(info.build.quick)
    if build != info.build:
        raise UsageError(refusal(info.build, build))
    missing = why_no_cuda()
    if arguments.device == "auto" and missing is not None:
        raise UsageError(
            f"this machine has no GPU: {missing}; --device cpu gives verdicts without scores"
        )
    parts = workers(connection.address, key, arguments.device, arguments.workers, build.quick)
    supervisor = Supervisor(None, parts)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
    signal.signal(signal.SIGINT, lambda *_: supervisor.stop())
    terminal.note(f"{len(parts)} workers join; Ctrl-C gives back their tasks and ends them")
    supervisor.run()
    if any(part.end is End.REFUSED for part in parts):
        raise UsageError("the arena refused workers of this machine; the lines above say why")
    terminal.note("The workers of this machine have left the arena.")


def _drain(connection: Connection, terminal: Output) -> None:
    """Wait until the workers of this machine have ended their tasks."""
    left = connection.drain()
    if not left:
        terminal.note("The arena has no worker of this machine.")
        return
    terminal.note(f"{left} workers end after their current tasks.")
    while connection.drain():
        time.sleep(LOOK_SECONDS)
    terminal.note("They have left.")
