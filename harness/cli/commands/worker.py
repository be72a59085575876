"""Let this machine's GPUs grade for an arena on another machine.

Each GPU grades until the command is ended. Ctrl-C returns unfinished
submissions to the queue. The machine speaks HTTPS with the arena and has no
access to its database.

examples:
  Grade on every GPU of this machine:
    python3 -m harness worker --arena https://a.example.org --key a.key
  End this machine's workers after their current submissions:
    python3 -m harness worker --arena https://a.example.org --key a.key --drain
  Check without a GPU:
    python3 -m harness worker --arena https://a.example.org --device cpu

Make the key on the organiser's page, or on the arena's machine:
  python3 -m harness arena worker-key --name lab-3 --file lab-3.key
It may also be in the environment variable MATMUL_WORKER_KEY.

The machine needs the same version of the judge as the arena.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from harness.arena.build import Build, refusal
from harness.arena.client import Unreachable
from harness.arena.logs import log_as
from harness.arena.processes import End
from harness.arena.supervisor import Supervisor, workers
from harness.arena.workers.api import KEY_VARIABLE
from harness.arena.workers.connection import Connection
from harness.cli.commands._arguments import count
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.devices.available import why_no_cuda
from harness.protocol.errors import UsageError

POLL_SECONDS = 1.0
GREETING_SECONDS = 10.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arena", required=True, metavar="URL", help="the arena's address")
    parser.add_argument("--key", type=Path, metavar="FILE", help="this machine's worker key")
    parser.add_argument(
        "--device", choices=("auto", "cpu"), default="auto", help="auto: every GPU (default)"
    )
    parser.add_argument(
        "--workers", type=count, metavar="N", help="default: one for each GPU; without a GPU, one"
    )
    parser.add_argument(
        "--drain", action="store_true", help="let this machine's workers end after this grading"
    )
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    log_as("worker")
    key = _key(arguments.key)
    connection = Connection(arguments.arena, key, patience=GREETING_SECONDS)
    try:
        build = connection.build()
        if arguments.drain:
            _drain(connection, terminal)
            return Exit.YES
    except Unreachable as error:
        raise UsageError(str(error)) from None
    _serve(arguments, key, build, terminal)
    return Exit.YES


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
        wrong = (
            f"set {KEY_VARIABLE} to this machine's worker key, or name its file with --key"
            if file is None
            else f"{file} is not the file of a worker key"
        )
        raise UsageError(
            f"{wrong}; `nox -s arena -- worker-key --name MACHINE` makes one on the arena's machine"
        )
    return key


def _serve(arguments: argparse.Namespace, key: str, build: Build, terminal: Terminal) -> None:
    """Work until this is stopped or all workers have left. build: that of the arena."""
    own = Build.here()
    if own != build:
        raise UsageError(refusal(build, own))
    missing = why_no_cuda()
    if arguments.device == "auto" and missing is not None:
        raise UsageError(
            f"this machine has no GPU: {missing}; --device cpu gives verdicts without scores"
        )
    parts = workers(arguments.arena, key, arguments.device, arguments.workers)
    supervisor = Supervisor(None, parts)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
    signal.signal(signal.SIGINT, lambda *_: supervisor.stop())
    terminal.note(f"Workers that join: {len(parts)}. Ctrl-C gives back their tasks and ends them.")
    supervisor.run()
    if any(part.end is End.REFUSED for part in parts):
        raise UsageError("the arena refused workers of this machine; the lines above say why")
    terminal.note("The workers of this machine have left the arena.")


def _drain(connection: Connection, terminal: Terminal) -> None:
    """Wait until the workers of this machine have ended their tasks."""
    left = connection.drain()
    if not left:
        terminal.note("The arena has no worker of this machine.")
        return
    terminal.note(f"Workers that end after their current tasks: {left}.")
    while connection.drain():
        time.sleep(POLL_SECONDS)
    terminal.note("They have left.")
