"""Tests of the workers' protocol: joining, tasks and results, and workers that die or are late."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import URL, Connection, Engine, text

from harness.arena.build import Build
from harness.arena.progress import GradingProgress
from harness.arena.states import MAX_ATTEMPTS, State
from harness.arena.store import gradings, workers
from harness.arena.store.workers import GpuHeld, OtherBuild, SessionEnded
from harness.arena.workers.api import PATH, Duty, Outcome
from harness.arena.workers.connection import Connection as WorkerConnection
from harness.arena.workers.process import clock_warning
from harness.board.document import Document
from harness.protocol.errors import UsageError
from harness.protocol.report import Stage, Verdict
from tests.arena.submitting import Add, FakeWorker, graded, joined, submit, take
from tests.board import factory


def status(connection: Connection, id: str) -> gradings.Status:
    return gradings.status(connection, [id])[id]


# -------------------------------------------------------------------------------- who may grade


@pytest.mark.parametrize("change", [{"judge": "0.0.9"}, {"cases": 1}, {"source": "0" * 64}])
def test_a_worker_with_another_judge_is_refused(change: dict[str, object], worker_url: URL) -> None:
    worker = FakeWorker(worker_url)
    other = worker._join.model_copy(update={"build": replace(Build.here(), **change)})
    with pytest.raises(OtherBuild):
        worker.do(lambda link: workers.join(link, worker.machine, other, Build.here()))


def test_a_gpu_has_one_worker(worker_url: URL) -> None:
    first = FakeWorker(worker_url, "GPU-1").join()
    second = FakeWorker(worker_url, "GPU-1", supervisor=uuid4())
    with pytest.raises(GpuHeld, match="GPU-1 is held by GPU-1 on a machine"):
        second.join()
    FakeWorker(worker_url, "GPU-2", supervisor=uuid4()).join()
    first.leave()
    second.join()
    with pytest.raises(SessionEnded):
        first.beat()
    assert second.beat() is Duty.SERVE


def test_a_silent_worker_loses_its_gpu(worker_url: URL, owner: Engine) -> None:
    first = FakeWorker(worker_url, "GPU-1").join()
    with owner.begin() as link:
        link.execute(text("UPDATE workers SET seen = now() - interval '20 seconds'"))
    second = FakeWorker(worker_url, "GPU-1", supervisor=uuid4()).join()
    assert second.beat() is Duty.SERVE
    with pytest.raises(SessionEnded):
        first.beat()


def test_a_supervisor_replaces_its_worker_at_once(worker_url: URL) -> None:
    first = joined(worker_url)
    again = joined(worker_url)
    assert again.beat() is Duty.SERVE
    with pytest.raises(SessionEnded):
        first.beat()


def test_an_upgraded_arena_ends_sessions_of_another_judge(worker_url: URL) -> None:
    worker = joined(worker_url)
    worker._join = worker._join.model_copy(update={"build": replace(Build.here(), cases=1)})
    with pytest.raises(SessionEnded):
        worker.beat()


def test_workers_that_start_while_their_machine_is_drained_leave(worker_url: URL) -> None:
    worker = joined(worker_url)
    assert worker.do(lambda link: workers.drain_machine(link, worker.machine)) == 1
    late = FakeWorker(worker_url, "late").join()
    assert (worker.beat(), late.beat()) == (Duty.LEAVE, Duty.LEAVE)
    late.leave()
    assert FakeWorker(worker_url, "late", supervisor=uuid4()).join().beat() is Duty.SERVE


@pytest.mark.parametrize(
    ("ahead", "said"), [(1.0, None), (-10800.0, "3.0 h behind the arena's"), (60.0, "60 s ahead")]
)
def test_a_worker_is_warned_of_a_wrong_clock(ahead: float, said: str | None) -> None:
    warning = clock_warning(ahead)
    assert warning is None if said is None else said in (warning or "")


@pytest.mark.parametrize(
    ("address", "said"),
    [("http://arena.example.org", "not encrypted"), ("arena.example.org", "the arena's address")],
)
def test_a_worker_sends_its_key_to_no_plain_address(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        WorkerConnection(address, "worker_x")


# ---------------------------------------------------------------------------- fenced by attempts


def test_a_worker_that_lost_its_session_fetches_nothing(
    worker_url: URL, connection: Connection, person: Add
) -> None:
    submit(connection, person("ada"), "old")
    lost = joined(worker_url)
    old = take(lost)
    joined(worker_url)
    submit(connection, person("bob"), "new")
    with pytest.raises(SessionEnded):
        lost.take()
    assert lost.finish(old.attempt, graded(old)), "it still holds what it took"


def test_a_report_sent_twice_counts_once(
    worker_url: URL, connection: Connection, person: Add
) -> None:
    submit(connection, person("ada"))
    worker = joined(worker_url)
    task = take(worker)
    document = graded(task, 1.5)
    assert worker.outcome(task.attempt, document) is Outcome.COUNTED
    assert worker.outcome(task.attempt, document) is Outcome.COUNTED, "the answer was lost"
    other = graded(task, 9.0)
    assert worker.outcome(task.attempt, other) is Outcome.LOST
    assert connection.scalar(text("SELECT count(*) FROM reports")) == 1


def test_another_machine_cannot_touch_an_attempt(
    worker_url: URL, connection: Connection, person: Add
) -> None:
    id = submit(connection, person("ada"))
    worker = joined(worker_url)
    task = take(worker)
    stranger = FakeWorker(worker_url, "other", supervisor=uuid4())
    key = workers.new_machine(connection, "other")
    stranger.machine = workers.machine_of(connection, key) or 0
    stranger.join()
    assert not stranger.go_on(task.attempt, GradingProgress())
    assert not stranger.give_back(task.attempt)
    assert stranger.outcome(task.attempt, graded(task)) is Outcome.LOST
    assert status(connection, id).state is State.GRADING


def test_an_undelivered_task_is_queued_again_without_an_attempt(
    worker_url: URL, connection: Connection, owner: Engine, person: Add
) -> None:
    id = submit(connection, person("ada"))
    worker = joined(worker_url)
    for _ in range(MAX_ATTEMPTS + 1):
        take(worker)
        with owner.begin() as link:
            old = "now() - interval '11 seconds'"
            link.execute(text(f"UPDATE attempts SET started = {old} WHERE ended IS NULL"))
            link.execute(text(f"UPDATE gradings SET seen = {old} WHERE state = 'grading'"))
        worker.beat()
        assert status(connection, id).state is State.QUEUED
    assert gradings.counts_by_fate(connection) == {"given back": MAX_ATTEMPTS + 1}


def test_a_restarted_worker_ends_what_it_graded_before(
    worker_url: URL, connection: Connection, owner: Engine, person: Add
) -> None:
    id = submit(connection, person("ada"))
    worker = joined(worker_url)
    task = take(worker)
    assert worker.go_on(task.attempt, GradingProgress())
    again = joined(worker_url)
    again.beat()
    assert status(connection, id).state is State.GRADING, "it may only just have fetched it"
    with owner.begin() as link:
        link.execute(text("UPDATE attempts SET started = now() - interval '11 seconds'"))
    again.beat()
    assert status(connection, id).state is State.QUEUED
    assert gradings.counts_by_fate(connection) == {"died": 1}


# -------------------------------------------------------------------------- a judge that failed


def test_a_judge_error_is_final_only_at_the_third_attempt(
    worker_url: URL, connection: Connection, person: Add
) -> None:
    ada = person("ada")
    id = submit(connection, ada)
    worker = joined(worker_url)
    for number in range(1, MAX_ATTEMPTS + 1):
        task = take(worker)
        failed = Document.of(factory.our_fault(day=number))
        outcome = worker.outcome(task.attempt, failed)
        assert outcome is (Outcome.RETRY if number < MAX_ATTEMPTS else Outcome.COUNTED)
        assert (status(connection, id).verdict is None) == (number < MAX_ATTEMPTS)
    assert status(connection, id).verdict == Verdict.JUDGE_ERROR


# ------------------------------------------------------------------------------------- over HTTP


@pytest.fixture
def arena(client: TestClient, secrets: object) -> TestClient:
    """A client of the arena that sends the key of the arena's own workers."""
    client.headers["Authorization"] = f"Bearer {secrets.worker}"  # type: ignore[attr-defined]
    return client


def asked(worker_url: URL, **more: object) -> dict[str, object]:
    join = FakeWorker(worker_url)._join.model_copy(update={"clock": datetime.now(UTC)})
    return json.loads(join.model_dump_json()) | more  # type: ignore[no-any-return]


def test_a_submission_is_graded_over_http(
    arena: TestClient, worker_url: URL, connection: Connection, person: Add
) -> None:
    id = submit(connection, person("ada"), "fast")
    session = arena.post(PATH, json=asked(worker_url)).json()["session"]
    task = arena.post(f"{PATH}/{session}/fetch").json()
    assert (task["submission"], task["name"], task["author"]) == (id, "fast", "ada")
    so_far = GradingProgress().began(Stage.VERIFY, 10).model_dump(mode="json")
    beat = {"attempts": {task["attempt"]: so_far}}
    answer = arena.post(f"{PATH}/{session}/heartbeat", json=beat).json()
    assert answer == {"duty": "serve", "lost": []}
    assert status(connection, id).stages[0].total == 10
    report = factory.report("fast", "ada", 1.5, source=task["source"])
    address = f"{PATH}/attempts/{task['attempt']}/result"
    sent = arena.put(address, content=report.model_dump_json())
    assert sent.json() == {"outcome": "counted"}
    assert status(connection, id).score == 1.5
    assert arena.post(f"{PATH}/{session}/leave").status_code == 204
    assert arena.post(f"{PATH}/{session}/heartbeat", json={"attempts": {}}).status_code == 410


def test_a_worker_learns_of_a_cancelled_attempt(
    arena: TestClient, worker_url: URL, connection: Connection, person: Add
) -> None:
    id = submit(connection, person("ada"))
    session = arena.post(PATH, json=asked(worker_url)).json()["session"]
    attempt = arena.post(f"{PATH}/{session}/fetch").json()["attempt"]
    gradings.cancel(connection, id)
    beat = {"attempts": {attempt: GradingProgress().model_dump(mode="json")}}
    answer = arena.post(f"{PATH}/{session}/heartbeat", json=beat).json()
    assert answer["lost"] == [attempt]


NOBODY = UUID(int=0)


def test_invalid_worker_requests_get_a_sentence(arena: TestClient, worker_url: URL) -> None:
    for answer, code in (
        (arena.post(PATH, content=b"\0"), 422),
        (arena.post(PATH, json=asked(worker_url, worker="")), 422),
        (arena.post(PATH, content=b"x" * (17 << 20)), 413),
        (arena.put(f"{PATH}/attempts/{NOBODY}/result", content=b"{}"), 422),
        (arena.post(f"{PATH}/nobody/fetch"), 404),
    ):
        assert answer.status_code == code, answer.text
        assert answer.json()["detail"].endswith(".")
