"""What `harness worker` does: bring this machine's GPUs to an arena elsewhere."""

from __future__ import annotations

import argparse
import signal
import time
from datetime import timedelta

import psycopg

from harness.arena.build import Build
from harness.arena.crew import crew
from harness.arena.logs import log_as
from harness.arena.processes import End
from harness.arena.store.line import Line
from harness.arena.store.membership import (
    REVOKED,
    Arena,
    Refused,
    check_build,
    clock_warning,
    drain,
)
from harness.arena.supervisor import Supervisor
from harness.arena.worker_key import WorkerKey
from harness.cli.views.console import Terminal
from harness.devices.available import why_no_cuda
from harness.protocol.errors import UsageError

LOOK_SECONDS = 1.0


def run(arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Raises UsageError where it cannot be done."""
    log_as("worker")
    key = WorkerKey.read(arguments.arena)
    with key.conninfo() as address:
        where = f"{key.address.host}:{key.address.port or 5432}"
        arena = _greeted(address, where)
        if arguments.drain:
            _drain(Line(address), terminal)
            return
        _serve(address, arena, arguments, terminal)


def _serve(address: str, arena: Arena, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Until it is stopped, or all workers have left."""
    try:
        check_build(arena.build, Build.here(arena.build.quick))
    except Refused as error:
        raise UsageError(str(error)) from None
    missing = why_no_cuda()
    if arguments.device == "auto" and missing is not None:
        raise UsageError(
            f"this machine brings no GPU: {missing}; --device cpu gives every verdict, and no score"
        )
    _warn(arena.clock_ahead, terminal)
    quick = ["--quick"] if arena.build.quick else []
    parts = crew(address, arguments.device, arguments.workers, quick)
    supervisor = Supervisor(None, parts)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
    signal.signal(signal.SIGINT, lambda *_: supervisor.stop())
    terminal.note(f"{len(parts)} workers join; Ctrl-C gives back what is in hand and ends them")
    supervisor.run()
    if any(part.end is End.REFUSED for part in parts):
        raise UsageError("the arena refused workers of this machine; the lines above say why")
    terminal.note("The workers of this machine have left the arena.")


def _greeted(address: str, where: str) -> Arena:
    """Asked once: whoever starts this wants to know now. Raises UsageError."""
    try:
        psycopg.connect(address, connect_timeout=10).close()
    except psycopg.OperationalError as error:
        raise UsageError(_why_not(str(error), where)) from None
    line = Line(address)
    try:
        return Arena.asked(line)
    except REVOKED:
        raise UsageError(UNKNOWN_KEY) from None
    finally:
        line.close()


UNKNOWN_KEY = "the arena does not know this key, or has revoked it; ask its organiser for another"


def _why_not(said: str, where: str) -> str:
    """In a sentence, of what libpq says in several lines."""
    if "password authentication failed" in said or "not permitted to log in" in said:
        return UNKNOWN_KEY
    if "certificate" in said:
        return f"whoever answers at {where} is not the arena that this key is of"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"no arena answers at {where}: {lines[-1] if lines else 'it hangs up'}"


def _drain(line: Line, terminal: Terminal) -> None:
    """Wait until the workers of this machine have ended what they had in hand."""
    left = drain(line)
    if not left:
        terminal.note("No worker of this machine is at the arena.")
        return
    terminal.note(f"{left} workers end after what they have in hand.")
    while drain(line):
        time.sleep(LOOK_SECONDS)
    terminal.note("They have left.")


def _warn(ahead: timedelta, terminal: Terminal) -> None:
    warning = clock_warning(ahead)
    if warning is not None:
        terminal.note(f"worker: {warning}")
