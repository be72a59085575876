"""Real workers, each a process: they grade, are killed, and lose nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from sqlalchemy import Connection, update

from harness.arena.build import Build
from harness.arena.data_dir import Secrets
from harness.arena.processes import ADDRESS_VARIABLE, NICENESS, SUPERVISOR_VARIABLE
from harness.arena.rules import Limits
from harness.arena.states import State
from harness.arena.store import gradings
from harness.arena.store.people import Person
from harness.arena.store.tables import submissions
from harness.arena.web.context import Site
from harness.arena.web.jobs import sweep_once
from harness.arena.workers.api import KEY_VARIABLE
from harness.protocol.report import Verdict
from tests.arena.submitting import BROKEN, Add, status, submission
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parent.parent.parent

ENDLESS = (ROOT / "tests/submissions/time-limit/endless_loop.cu").read_text()


@contextmanager
def worker(address: str, secrets: Secrets) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.arena.workers.process", "--device", "cpu", "--quick"],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            ADDRESS_VARIABLE: address,
            KEY_VARIABLE: secrets.worker,
            SUPERVISOR_VARIABLE: str(uuid4()),
        },
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


@pytest.fixture
def site(site: Site) -> Site:
    """An arena that judges by a sample of the cases."""
    return replace(site, build=Build.here(quick=True))


def submit(connection: Connection, person: Person, source: str, name: str = "k") -> str:
    made = submission(name, person.name, source)
    return gradings.submit(connection, person.id, made, Limits(), None)


def in_the_middle(connection: Connection, id: str, attempt: int = 1) -> bool:
    """The worker has said how far it is: it knows what it holds, as the database does."""
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
    connection: Connection, site: Site, address: str, secrets: Secrets, person: Add
) -> None:
    id = submit(connection, person("ada"), ENDLESS)
    with worker(address, secrets) as first:
        eventually(lambda: in_the_middle(connection, id), "begun")
        first.kill()
        first.wait()
    assert status(connection, id).state is State.GRADING
    swept = eventually(lambda: sweep_once(site, lease_seconds=-1), "it counts as dead")
    assert swept == {id: True}
    # Otherwise the next grading would not come to an end.
    connection.execute(update(submissions).values(source=BROKEN))
    with worker(address, secrets) as second:
        eventually(lambda: status(connection, id).state.final, "done")
        done = status(connection, id)
        assert (done.verdict, done.attempts) == (Verdict.COMPILE_ERROR, 2)
        # What no page would have let in is refused, not tried for ever.
        elsewhere = submit(connection, person("eve"), BROKEN, "../kernel")
        eventually(lambda: status(connection, elsewhere).state.final, "refused")
        refused = status(connection, elsewhere)
        assert (refused.verdict, refused.attempts) == (Verdict.COMPILE_ERROR, 1)
        # Told to stop in the middle of the next, it gives that back at once.
        other = submit(connection, person("bob"), ENDLESS)
        eventually(lambda: in_the_middle(connection, other), "begun")
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0
    assert status(connection, other).state is State.QUEUED


def test_a_killed_grading_child_is_retried_until_it_is_cancelled(
    connection: Connection, address: str, secrets: Secrets, person: Add
) -> None:
    id = submit(connection, person("ada"), ENDLESS)
    with worker(address, secrets) as process:
        eventually(lambda: len(status(connection, id).stages) > 1, "it runs the kernel")
        assert_gives_way(process.pid)
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        eventually(lambda: in_the_middle(connection, id, attempt=2), "again")
        assert status(connection, id).verdict is None and process.poll() is None
        assert gradings.cancel(connection, id)
        later = submit(connection, person("bob"), BROKEN)
        eventually(lambda: status(connection, later).state.final, "next")
        process.stdin.close()  # as when the supervisor has died
        assert process.wait(PATIENCE) != 0
    assert status(connection, id).state is State.CANCELLED
