"""Real workers, each a process: they grade, are killed, and lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import URL, Connection, Engine

from harness.arena.processes import DATABASE_VARIABLE
from harness.arena.queue import conninfo
from harness.arena.rules import Limits
from harness.arena.states import State
from harness.arena.store import gradings
from harness.arena.store.gradings import HandedIn, Status
from harness.arena.store.people import Person
from harness.arena.sweeper import sweep_once
from harness.report import Verdict
from tests.arena.handing_in import submission

Add = Callable[..., Person]
PATIENCE = 120.0
"""For a machine that does other things, too."""

SIGNATURE = "(const float* A, const float* B, float* C, int M, int N, int K)"
BROKEN = f"__global__ void matrix_multiplication_kernel{SIGNATURE} {{ int x = ; }}\n"


@contextmanager
def worker(url: URL) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.arena.worker", "--device", "cpu", "--quick"],
        stdin=subprocess.PIPE,
        env={**os.environ, DATABASE_VARIABLE: conninfo(url)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def hand_in(connection: Connection, person: Person, source: str) -> str:
    taken = gradings.hand_in(
        connection, person.id, submission("k", person.name, source), Limits(), None
    )
    assert isinstance(taken, HandedIn)
    return taken.id


def until(connection: Connection, id: str, wanted: Callable[[Status], bool], what: str) -> Status:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        status = gradings.status(connection, [id])[id]
        if wanted(status):
            return status
        time.sleep(0.05)
    raise AssertionError(f"not {what} within {PATIENCE} s: {status}")


def test_killed_in_the_middle_and_graded_by_the_next(
    connection: Connection, engine: Engine, worker_url: URL, person: Add
) -> None:
    id = hand_in(connection, person("ada"), BROKEN)
    with worker(worker_url) as first:
        until(connection, id, lambda status: status.state is State.GRADING, "begun")
        first.kill()
        first.wait()
    assert gradings.status(connection, [id])[id].state is State.GRADING
    assert sweep_once(engine, lease_seconds=-1).again == (id,)
    with worker(worker_url) as second:
        done = until(connection, id, lambda status: status.state.final, "done")
        assert (done.verdict, done.attempts) == (Verdict.COMPILE_ERROR, 2)
        # Told to stop in the middle of the next, it gives that back at once.
        other = hand_in(connection, person("bob"), BROKEN)
        until(connection, other, lambda status: status.state is State.GRADING, "begun")
        second.send_signal(signal.SIGTERM)
        assert second.wait(10) == 0
    back = gradings.status(connection, [other])[other]
    assert back.state in (State.QUEUED, State.DONE)


def test_a_worker_ends_with_whoever_started_it(worker_url: URL) -> None:
    with worker(worker_url) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE)
        assert process.returncode != 0


@pytest.mark.parametrize("arguments", [("--device", "tpu"), ("--nonsense",)])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness.arena.worker", *arguments], capture_output=True, check=False
    )
    assert done.returncode == 2 and b"Traceback" not in done.stderr
