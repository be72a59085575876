"""Real workers, each a process: they grade, are killed, and lose nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from sqlalchemy import Connection, select, update

from harness.arena.data_dir import Secrets
from harness.arena.processes import ADDRESS_VARIABLE, NICENESS, SUPERVISOR_VARIABLE
from harness.arena.rules import Limits
from harness.arena.states import State
from harness.arena.store import gradings
from harness.arena.store.people import Person
from harness.arena.store.tables import submissions
from harness.arena.web.context import Site
from harness.arena.web.workers import sweep_once
from harness.arena.workers.api import KEY_VARIABLE
from harness.board.tables import reports
from harness.protocol.report import Report, Verdict
from tests.arena.submitting import Add, status, submission
from tests.sources import BROKEN
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parent.parent.parent

ENDLESS = (ROOT / "tests/submissions/time-limit/endless_loop.cu").read_text()


SUPERVISOR = uuid4()
"""Starts all workers here: its next one replaces at once one that was killed."""


@contextmanager
def worker(address: str, secrets: Secrets) -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen(
        [sys.executable, "-m", "harness.arena.workers.process", "--device", "cpu"],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            ADDRESS_VARIABLE: address,
            KEY_VARIABLE: secrets.worker,
            SUPERVISOR_VARIABLE: str(SUPERVISOR),
        },
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        started.stdin.close()


def submit(connection: Connection, person: Person, source: str, name: str = "k") -> str:
    made = submission(name, person.name, source)
    return gradings.submit(connection, person.id, made, Limits(), None)


def is_under_way(connection: Connection, id: str, attempt: int = 1) -> bool:
    """Return whether the worker's first heartbeat has named the attempt."""
    now = status(connection, id)
    return now.state is State.GRADING and now.stages != () and now.attempts == attempt


def assert_gives_way(worker: int) -> None:
    """Each session of a worker is nicer than the web service's, where Linux has such groups."""
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
    for child in psutil.Process(worker).children(recursive=True):
        group = Path(f"/proc/{child.pid}/autogroup")
        if group.exists() and os.getsid(child.pid) != os.getsid(worker):
            assert group.read_text().endswith(f"nice {niceness}\n")


def test_a_killed_worker_costs_an_attempt_and_nothing_else(
    connection: Connection,
    site: Site,
    address: str,
    secrets: Secrets,
    person: Add,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    site.data_dir.rules.write_text("quick = true\n")
    id = submit(connection, person("ada"), ENDLESS)
    with worker(address, secrets) as first:
        eventually(lambda: is_under_way(connection, id), "begun")
        assert_gives_way(first.pid)
        first.stdin.close()  # as when the supervisor has died
        assert first.wait(PATIENCE) != 0
    assert status(connection, id).state is State.GRADING
    swept = eventually(lambda: sweep_once(site, lease_seconds=-1), "it counts as dead")
    assert swept == {id: True}
    left_by_first = set(tmp_path.iterdir())
    # Otherwise the next grading would not come to an end.
    connection.execute(update(submissions).values(source=BROKEN))
    with worker(address, secrets) as second:
        eventually(lambda: status(connection, id).state.final, "done")
        done = status(connection, id)
        assert (done.verdict, done.attempts) == (Verdict.COMPILE_ERROR, 2)
        kept = connection.scalar(select(reports.c.report).where(reports.c.id == done.report))
        assert Report.model_validate_json(kept).quick, "as the rules say"
        # Told to stop in the middle of the next, it gives that back at once.
        other = submit(connection, person("bob"), ENDLESS)
        eventually(lambda: is_under_way(connection, other), "begun")
        assert set(tmp_path.iterdir()) - left_by_first
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0
        assert set(tmp_path.iterdir()) <= left_by_first
    assert status(connection, other).state is State.QUEUED
