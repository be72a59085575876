"""Tests of the queue: submissions, their order, attempts and the sweeper."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from harness.arena.problems import Problem
from harness.arena.progress import MAX_FOUND, MAX_SENTENCE, GradingProgress
from harness.arena.rules import Limits
from harness.arena.states import MAX_ATTEMPTS, State
from harness.arena.store import board, gradings, watching
from harness.arena.store.people import Person
from harness.arena.web.app import application
from harness.arena.web.context import Site
from harness.arena.web.workers import sweep_once
from harness.arena.workers.api import Task
from harness.protocol.report import Stage, Verdict
from tests.arena.submitting import (
    Add,
    FakeWorker,
    graded,
    kept_report,
    submission,
    submit,
    waiting_jobs,
)

CHANGES = {
    State.QUEUED: {State.GRADING, State.CANCELLED},
    State.GRADING: {State.QUEUED, State.DONE, State.CANCELLED},
    State.DONE: set(),
    State.CANCELLED: set(),
}


def test_the_database_allows_only_the_listed_state_changes(
    connection: Connection, engine: Engine, person: Add
) -> None:
    submit(connection, person("ada"))
    with engine.connect() as link:
        for name in ("held_by_an_attempt", "done_with_a_report"):
            link.execute(text(f"ALTER TABLE gradings DROP CONSTRAINT ck_gradings_{name}"))
        for before, after in itertools.product(State, State):
            link.execute(text("SET session_replication_role = replica"))
            link.execute(text("UPDATE gradings SET state = :state"), {"state": before})
            link.execute(text("SET session_replication_role = origin"))
            change = text("UPDATE gradings SET state = :state"), {"state": after}
            if after is before or after in CHANGES[before]:
                link.execute(*change)
                continue
            refused = pytest.raises(DBAPIError, match=f"that is {before} cannot become {after}")
            with refused, link.begin_nested():
                link.execute(*change)
        link.rollback()


def test_a_submission_and_its_job_are_one_transaction(
    engine: Engine, connection: Connection, ada: Person
) -> None:
    with pytest.raises(ZeroDivisionError), engine.begin() as transaction:
        submit(transaction, ada)
        raise ZeroDivisionError
    assert not waiting_jobs(connection)
    assert watching.recent(connection) == []
    with engine.begin() as transaction:
        submit(transaction, ada)
        assert not waiting_jobs(connection), "nobody may have it before it is kept"
    assert waiting_jobs(connection)


def test_a_graded_submission_has_a_report_and_a_row(worker: FakeWorker) -> None:
    id = worker.submit("fast")
    before = worker.do(board.version)
    attempt = worker.take()
    assert worker.status(id).state is State.GRADING
    so_far = GradingProgress().began(Stage.VERIFY, 96).stepped("a case").having_found(["a fact"])
    assert worker.go_on(attempt.attempt, so_far)
    now = worker.status(id)
    assert (now.stages, now.step) == (so_far.stages, so_far.step)
    report = graded(attempt, 1.25)
    assert worker.finish(attempt.attempt, report)
    done = worker.status(id)
    assert (done.state, done.verdict, done.score) == (State.DONE, Verdict.ACCEPTED, 1.25)
    assert worker.do(board.version) > before
    spent = sum(stage.seconds for stage in report.stages)
    # The time that it waited for the device does not count.
    assert worker.do(watching.past_seconds) == [pytest.approx(spent)]
    assert [entry.id for entry in worker.do(board.counting)] == [done.report]
    kept = worker.do(lambda c: kept_report(c, done.report))
    assert kept.created > report.created, "the arena's clock counts"
    assert kept.model_copy(update={"created": report.created}) == report


def test_progress_that_a_worker_reports_is_bounded(worker: FakeWorker) -> None:
    id = worker.submit()
    attempt = worker.take()
    much = GradingProgress().began(Stage.SANITIZE, None).having_found(["x" * 10_000] * 100)
    assert worker.go_on(attempt.attempt, much)
    (stage,) = worker.status(id).stages
    assert stage.found == ("x" * MAX_SENTENCE,) * MAX_FOUND
    # Progress that another version of the arena wrote is ignored without an error.
    other = text("""UPDATE gradings SET progress = '{"stages": [{"phase": 1}]}'""")
    worker.do(lambda c: c.execute(other))
    assert worker.status(id).stages == ()


def test_the_time_left_comes_from_gradings_of_that_length(
    connection: Connection, worker: FakeWorker
) -> None:
    for seconds in (10, 20, 300):
        worker.submit(f"took {seconds}")
        worker.grade()
        of_this = text("UPDATE gradings SET seconds = :s WHERE seconds < 5")
        connection.execute(of_this, {"s": seconds})
    id = worker.submit("now")
    assert worker.status(id).seconds_left == pytest.approx(1.5 * 20)
    worker.take()
    began = text(
        "UPDATE gradings SET started = now() - make_interval(secs => :spent) WHERE submission = :id"
    )
    for spent, left in ((0, 20), (15, 145), (100, 200), (400, 0)):
        connection.execute(began, {"spent": spent, "id": id})
        assert worker.status(id).seconds_left == pytest.approx(left, abs=5)


def dead(worker: FakeWorker) -> Task:
    """Take a task and report its progress once, as a worker does that dies afterwards."""
    task = worker.take()
    assert worker.go_on(task.attempt, GradingProgress())
    return task


def test_a_result_counts_only_for_the_current_attempt(worker: FakeWorker, site: Site) -> None:
    id = worker.submit()
    slow = worker.take()
    worker.do(lambda c: c.execute(text("UPDATE gradings SET started = now() - interval '1 hour'")))
    assert sweep_once(site, lease_seconds=5) == {}, "who lives is left alone"
    assert sweep_once(site, lease_seconds=-1) == {id: True}
    quick = worker.take()
    assert not worker.go_on(slow.attempt, GradingProgress())
    assert not worker.finish(slow.attempt, graded(slow, 9.0)), "it counted as dead"
    assert worker.finish(quick.attempt, graded(quick, 1.0))
    assert not worker.finish(quick.attempt, graded(quick, 2.0)), "it has a result already"
    assert worker.status(id).score == 1.0
    assert [entry.score for entry in worker.do(board.counting)] == [1.0]


@pytest.mark.parametrize(("lease", "state"), [(15.0, State.GRADING), (0.0, State.QUEUED)])
def test_a_lease_begins_when_workers_can_reach_the_arena(
    lease: float, state: State, worker: FakeWorker, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = worker.submit()
    dead(worker)
    worker.do(lambda c: c.execute(text("UPDATE gradings SET seen = now() - interval '1 hour'")))
    monkeypatch.setattr("harness.arena.web.workers.SWEEP_SECONDS", 0.05)
    monkeypatch.setattr("harness.arena.web.workers.LEASE_SECONDS", lease)
    with TestClient(application(site)):  # the arena was away for this hour
        time.sleep(0.5)
    assert worker.status(id).state is state


@pytest.mark.parametrize("name", ["tile", "../tile"], ids=["", "impossible name"])
def test_three_dead_attempts_are_reported_as_a_judge_error(
    name: str, worker: FakeWorker, site: Site
) -> None:
    id = worker.submit(name)
    for number in range(1, MAX_ATTEMPTS + 1):
        dead(worker)
        assert sweep_once(site, lease_seconds=-1) == {id: number < MAX_ATTEMPTS}
    done = worker.status(id)
    assert (done.state, done.verdict) == (State.DONE, Verdict.JUDGE_ERROR)
    report = worker.do(lambda c: kept_report(c, done.report))
    assert "3 workers died" in getattr(report.outcome, "message", "")
    assert not worker.do(waiting_jobs)


def test_a_task_given_back_costs_no_attempt(worker: FakeWorker, site: Site) -> None:
    id = worker.submit()
    for _ in range(MAX_ATTEMPTS):
        assert worker.give_back(worker.take().attempt)
        worker.take()  # an attempt that its worker never confirmed costs none either
        assert sweep_once(site, lease_seconds=-1) == {id: True}
    for _ in range(MAX_ATTEMPTS - 1):
        dead(worker)
        assert sweep_once(site, lease_seconds=-1) == {id: True}


def test_people_take_turns_and_a_newcomer_is_next(worker: FakeWorker) -> None:
    for number in range(4):
        worker.submit(f"a{number}", "ada")
    assert worker.status(worker.submit("b0", "bob")).place == 2
    order = [worker.take().name for _ in range(3)]
    assert order == ["a0", "b0", "a1"]
    for number in range(3):  # all but a newcomer's first submission alternate with those of others
        worker.submit(f"c{number}", "carol")
    assert [worker.take().name for _ in range(5)] == ["c0", "a2", "c1", "a3", "c2"]


@pytest.mark.parametrize("begun", [False, True])
def test_a_report_after_cancelling_does_not_count(
    begun: bool, worker: FakeWorker, site: Site
) -> None:
    id = worker.submit()
    attempt = worker.take() if begun else None
    assert worker.do(lambda c: gradings.cancel(c, id))
    assert worker.status(id).state is State.CANCELLED
    assert not worker.do(lambda c: gradings.cancel(c, id))
    if attempt is not None:
        assert not worker.go_on(attempt.attempt, GradingProgress()), "the worker is told"
        assert not worker.finish(attempt.attempt, graded(attempt))
    sweep_once(site, lease_seconds=-1)
    assert worker.fetch() is None, "nobody grades what was cancelled"
    assert not worker.do(waiting_jobs)


def test_limits_hold_under_simultaneous_submissions(
    connection: Connection, engine: Engine, ada: Person
) -> None:
    limits = Limits(in_flight=3)

    def one(_: int) -> bool:
        try:
            with engine.begin() as transaction:
                gradings.submit(transaction, ada.id, submission(), limits, None)
        except Problem as refused:
            assert refused.status == 429
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(one, range(30))) == 3


@pytest.mark.parametrize(
    ("limits", "begun", "reason"),
    [
        (Limits(in_flight=1), False, "not graded yet"),
        (Limits(in_flight=1), True, "not graded yet"),
        (Limits(per_day=1), False, "within 24 hours"),
        (Limits(device_seconds_per_day=1), False, "s of a device"),
    ],
)
def test_a_refusal_names_the_limit_and_when_to_return(
    limits: Limits,
    begun: bool,
    reason: str,
    connection: Connection,
    worker: FakeWorker,
    ada: Person,
    person: Add,
) -> None:
    submit(connection, ada)
    if begun:
        worker.take()
    if limits.device_seconds_per_day == 1:
        connection.execute(text("UPDATE gradings SET seconds = 2, ended = now()"))
    with pytest.raises(Problem, match=reason) as refused:
        gradings.submit(connection, ada.id, submission(), limits, None)
    assert 0 < int(refused.value.headers["Retry-After"]) <= 86400
    bob = person("bob")
    assert gradings.submit(connection, bob.id, submission(), limits, None), "it is for each person"
