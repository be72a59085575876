"""Real workers, each a process: they grade, are killed, and lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, Engine, update

from harness.arena.build import Build
from harness.arena.handed_in import NAMELESS
from harness.arena.processes import CREW_VARIABLE, DATABASE_VARIABLE
from harness.arena.rules import Limits
from harness.arena.states import State
from harness.arena.store import board, gradings
from harness.arena.store.gradings import HandedIn, Status
from harness.arena.store.people import Person
from harness.arena.store.preparing import set_build
from harness.arena.store.tables import submissions
from harness.arena.sweeper import sweep_once
from harness.protocol.report import Report, Verdict
from tests.arena.handing_in import CREW, submission
from tests.waiting import PATIENCE, eventually

Add = Callable[..., Person]
ROOT = Path(__file__).resolve().parent.parent.parent

SIGNATURE = "(const float* A, const float* B, float* C, int M, int N, int K)"
ENDLESS = (ROOT / "tests/submissions/time-limit/endless_loop.cu").read_text()
BROKEN = f"__global__ void matrix_multiplication_kernel{SIGNATURE} {{ int x = ; }}\n"


@contextmanager
def worker(url: URL) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.arena.worker", "--device", "cpu", "--quick"],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            DATABASE_VARIABLE: url.render_as_string(hide_password=False),
            CREW_VARIABLE: str(CREW),
        },
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(autouse=True)
def quick_arena(owner: Engine) -> Iterator[None]:
    with owner.begin() as link:
        set_build(link, Build.here(quick=True))
    yield
    with owner.begin() as link:
        set_build(link, Build.here())


def hand_in(connection: Connection, person: Person, source: str, name: str = "k") -> str:
    taken = gradings.hand_in(
        connection, person.id, submission(name, person.name, source), Limits(), None
    )
    assert isinstance(taken, HandedIn)
    return taken.id


def in_the_middle(status: Status) -> bool:
    """The worker has said how far it is: it knows what it holds, as the database does."""
    return status.state is State.GRADING and status.progress.stages != ()


def test_killed_in_the_middle_and_graded_by_the_next(
    connection: Connection, owner: Engine, engine: Engine, worker_url: URL, person: Add
) -> None:
    def status(id: str) -> Status:
        return gradings.status(connection, [id])[id]

    id = hand_in(connection, person("ada"), ENDLESS)
    with worker(worker_url) as first:
        eventually(lambda: in_the_middle(status(id)), "begun")
        first.kill()
        first.wait()
    assert status(id).state is State.GRADING
    # The database may still be busy with the last that the dead one said.
    swept = eventually(lambda: sweep_once(engine, lease_seconds=-1).again, "taken for dead")
    assert swept == (id,)
    with owner.begin() as link:  # or the next would not come to an end
        link.execute(update(submissions).values(source=BROKEN))
    with worker(worker_url) as second:
        eventually(lambda: status(id).state.final, "done")
        done = status(id)
        assert (done.verdict, done.attempts) == (Verdict.COMPILE_ERROR, 2)
        # What no page would have let in is refused, not tried for ever.
        elsewhere = hand_in(connection, person("eve"), BROKEN, "../kernel")
        eventually(lambda: status(elsewhere).state.final, "refused")
        refused = status(elsewhere)
        assert (refused.verdict, refused.attempts) == (Verdict.COMPILE_ERROR, 1)
        report = Report.model_validate_json(
            board.report_text(connection, refused.report or "") or ""
        )
        assert report.submission.name == NAMELESS and not report.submission.source
        assert "cannot be the name of a kernel file" in getattr(report.outcome, "message", "")
        # Told to stop in the middle of the next, it gives that back at once.
        other = hand_in(connection, person("bob"), ENDLESS)
        eventually(lambda: in_the_middle(status(other)), "begun")
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0
    assert status(other).state is State.QUEUED


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
