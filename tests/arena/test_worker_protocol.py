"""Tests of the workers' protocol: joining, tasks and results, and workers that die or are late."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine, text

from harness.arena.build import Build
from harness.arena.data_dir import Secrets
from harness.arena.problems import Problem
from harness.arena.progress import GradingProgress
from harness.arena.states import MAX_ATTEMPTS, State
from harness.arena.store import board, watching, workers
from harness.arena.store.workers import SessionEnded
from harness.arena.workers.api import PATH, Decision, Join
from harness.arena.workers.connection import Connection as WorkerConnection
from harness.arena.workers.connection import Refused
from harness.protocol.errors import UsageError
from tests.arena.submitting import FakeWorker, asking, graded, kept_report
from tests.board import factory


@pytest.mark.parametrize("change", [{"judge": "0.0.9"}, {"cases": 1}, {"source": "0" * 64}])
def test_a_worker_with_another_judge_is_refused(
    change: dict[str, Any], address: str, secrets: Secrets
) -> None:
    arena, other = WorkerConnection(address, secrets.worker, patience=0), Build.here()
    with pytest.raises(Refused, match="The arena grades with"):
        arena.join(asking(build=replace(other, **change)))


def test_a_gpu_has_one_worker(engine: Engine, connection: Connection) -> None:
    first, other = FakeWorker(engine, asking("GPU-1")), asking("GPU-1", supervisor=uuid4())
    silent(connection)
    first.beat()  # renews its lease
    with pytest.raises(Problem, match="device GPU-1 has a worker already: GPU-1 on a machine"):
        FakeWorker(engine, other)
    FakeWorker(engine, asking("GPU-2", supervisor=uuid4()))
    first.leave()
    assert not FakeWorker(engine, other).leaves
    with pytest.raises(SessionEnded):
        first.beat()


def silent(connection: Connection) -> Join:
    """Return the message of another machine when the worker has been silent for a lease."""
    connection.execute(text("UPDATE workers SET seen = now() - interval '20 seconds'"))
    return asking(supervisor=uuid4())


@pytest.mark.parametrize("successor", [silent, lambda _: asking()], ids=["other", "restarted"])
def test_a_silent_or_restarted_worker_is_replaced_at_once(
    successor: Callable[[Connection], Join],
    connection: Connection,
    engine: Engine,
    worker: FakeWorker,
) -> None:
    worker.submit("old")
    old = worker.take()
    assert not FakeWorker(engine, successor(connection)).leaves
    worker.submit("new", "bob")
    for refused in (worker.beat, worker.fetch):
        with pytest.raises(SessionEnded):
            refused()
    assert worker.finish(old.attempt, graded(old)), "it still holds what it took"


def on_another_machine(worker: FakeWorker, engine: Engine) -> FakeWorker:
    """Return a worker with a key of its own."""
    machine = worker.do(lambda c: workers.machine_of(c, workers.new_machine(c, "other")))
    return FakeWorker(engine, asking("other", supervisor=uuid4()), machine)


def test_an_upgraded_arena_ends_sessions_of_another_judge(worker: FakeWorker) -> None:
    worker.build = replace(Build.here(), cases=1)
    with pytest.raises(SessionEnded):
        worker.beat()


def test_workers_that_start_while_their_machine_is_drained_leave(
    engine: Engine, worker: FakeWorker
) -> None:
    elsewhere = on_another_machine(worker, engine)
    assert worker.do(lambda link: workers.drain_machine(link, worker.machine)) == 1
    late = FakeWorker(engine, asking("late"))
    assert worker.leaves and late.leaves and not elsewhere.leaves
    late.leave()
    assert not FakeWorker(engine, asking("late", supervisor=uuid4())).leaves


@pytest.mark.parametrize(
    ("address", "said"),
    [("http://arena.example.org", "not encrypted"), ("arena.example.org", "the arena's address")],
)
def test_a_worker_sends_its_key_to_no_plain_address(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        WorkerConnection(address, "worker_x")


def test_a_report_sent_twice_counts_once(worker: FakeWorker, connection: Connection) -> None:
    worker.submit()
    task = worker.take()
    report = graded(task, 1.5)
    assert worker.outcome(task.attempt, report) is Decision.COUNTED
    assert worker.outcome(task.attempt, report) is Decision.COUNTED, "the answer was lost"
    other = graded(task, 9.0)
    assert worker.outcome(task.attempt, other) is Decision.LOST
    assert connection.scalar(text("SELECT count(*) FROM reports")) == 1


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("submission__sha256", "0" * 64),
        ("quick", True),
        ("environment__cases", 99),
        ("environment__judge", "99.0.0"),
        ("device__name", "NVIDIA B200"),
    ],
)
def test_a_report_counts_only_for_its_task(
    place: str, value: object, arena: TestClient, worker: FakeWorker
) -> None:
    worker.submit()
    worker.do(lambda c: c.execute(text(f"UPDATE gradings SET model = '{factory.H100}'")))
    task = worker.take()
    honest = json.loads(graded(task, 1.5).model_dump_json())
    false = copy.deepcopy(honest)
    factory.replace_at(false, place, value)
    address = f"{PATH}/attempts/{task.attempt}/result"
    answer = arena.put(address, json=false)
    assert answer.status_code == 422 and "is not its task's" in answer.json()["detail"]
    assert worker.do(watching.recent)[0].state is State.GRADING
    # What the arena knows better than the machine is not taken from its report.
    honest["submission"] |= {"author": "eve", "name": "other", "source": "other"}
    assert arena.put(address, json=honest | {"created": "2099-01-01T00:00:00Z"}).is_success
    (kept,) = worker.do(board.counting)
    assert (kept.name, kept.author, kept.score) == ("tile", "ada", 1.5)
    assert kept.created < "2099"
    report = worker.do(lambda c: kept_report(c, kept.id))
    assert report.submission.source == task.source


def test_another_machine_cannot_touch_an_attempt(worker: FakeWorker, engine: Engine) -> None:
    id = worker.submit()
    task = worker.take()
    stranger = on_another_machine(worker, engine)
    assert not stranger.go_on(task.attempt, GradingProgress())
    assert not stranger.give_back(task.attempt)
    assert stranger.outcome(task.attempt, graded(task)) is Decision.LOST
    assert worker.status(id).state is State.GRADING


def test_an_undelivered_task_is_queued_again_without_an_attempt(worker: FakeWorker) -> None:
    id = worker.submit()
    long_ago = text(
        "UPDATE attempts SET started = now() - interval '11 seconds' WHERE ended IS NULL;"
        "UPDATE gradings SET seen = now() - interval '11 seconds' WHERE state = 'grading'"
    )
    for _ in range(MAX_ATTEMPTS + 1):
        worker.take()
        worker.do(lambda c: c.execute(long_ago))
        worker.beat()
        assert worker.status(id).state is State.QUEUED
    assert worker.do(watching.counts_by_fate) == {"given back": MAX_ATTEMPTS + 1}
    worker.do(lambda c: c.execute(text("UPDATE gradings SET attempts = 10")))
    worker.take()
    worker.do(lambda c: c.execute(long_ago))
    worker.beat()
    assert worker.do(watching.counts_by_fate)["died"] == 1, "this has happened too often"


def test_a_restarted_worker_ends_what_it_graded_before(worker: FakeWorker, engine: Engine) -> None:
    id = worker.submit()
    task = worker.take()
    assert worker.go_on(task.attempt, GradingProgress())
    again = FakeWorker(engine)
    again.beat()
    assert worker.status(id).state is State.GRADING, "it may only just have fetched it"
    long_ago = text("UPDATE attempts SET started = now() - interval '11 seconds'")
    worker.do(lambda c: c.execute(long_ago))
    again.beat()
    assert worker.status(id).state is State.QUEUED
    assert worker.do(watching.counts_by_fate) == {"died": 1}
    again.grade()
    (seconds,) = worker.do(watching.past_seconds)
    assert seconds > 10, "the attempt that died counts, too"


@pytest.fixture
def arena(client: TestClient, secrets: object) -> TestClient:
    """A client of the arena that sends the key of the arena's own workers."""
    client.headers["Authorization"] = f"Bearer {secrets.worker}"  # type: ignore[attr-defined]
    return client


def asked(**more: object) -> dict[str, object]:
    return json.loads(asking().model_dump_json()) | more  # type: ignore[no-any-return]


NOBODY = UUID(int=0)


def test_invalid_worker_requests_get_a_sentence(arena: TestClient) -> None:
    beat = {"attempts": {str(NOBODY): {"step": "x" * 301}}}
    for answer, code in (
        (arena.post(PATH, content=b"\0"), 422),
        (arena.post(PATH, json=asked(worker="")), 422),
        (arena.post(PATH, content=b"x" * (17 << 20)), 413),
        (arena.put(f"{PATH}/attempts/{NOBODY}/result", content=b"{}"), 422),
        (arena.post(f"{PATH}/nobody/fetch"), 404),
        (arena.post(f"{PATH}/{NOBODY}/heartbeat", json={"attempts": {}}), 410),
        (arena.post(f"{PATH}/{NOBODY}/heartbeat", json=beat), 422),
    ):
        assert answer.status_code == code, answer.text
        assert answer.json()["detail"].endswith(".")
