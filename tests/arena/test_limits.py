"""Tests of limits on requests, connections, streams and comparisons, and of the disk's space."""

import asyncio
import time
from collections import namedtuple
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from psycopg.errors import DiskFull
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from harness.arena.problems import Problem
from harness.arena.rules import Limits
from harness.arena.states import MAX_ATTEMPTS
from harness.arena.store import contest, gradings, watching
from harness.arena.store.people import Person, Role
from harness.arena.web import connections, guard, health, renderer
from harness.arena.web.app import application
from harness.arena.web.context import Site
from harness.arena.web.guard import Buckets
from harness.arena.web.renderer import OtherProcess
from harness.arena.workers.api import PATH, Decision
from harness.protocol.report import Verdict
from tests.arena.conftest import served
from tests.arena.submitting import Add, FakeWorker, Key, graded, submission, submit
from tests.arena.test_attacks import connect
from tests.board import factory
from tests.waiting import PATIENCE


def test_a_bucket_refills_with_time_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(guard.time, "monotonic", lambda: now)
    buckets = Buckets(lambda: 60, "You have")

    def allowed(source: str = "ada") -> int:
        count = 0
        try:
            while count < 1000:
                buckets.count(source)
                count += 1
        except Problem as problem:
            assert problem.status == 429 and int(problem.headers["Retry-After"]) >= 1
        return count

    assert allowed() == 60
    assert allowed() == 0, "it forgets nothing"
    now += 30
    assert allowed() == 30
    assert allowed("bob") == 60
    now += 3600
    assert allowed() == 60, "and saves up nothing"


def test_too_many_requests_of_one_person_or_address_are_refused(
    client: TestClient, rules: Path, person: Add, key: Key
) -> None:
    rules.write_text("[limits]\nper_person_per_minute = 5\nper_address_per_minute = 30\n")
    ada, bob = key(person("ada")), key(person("bob"))
    answers = [client.get("/api/v1/submissions", headers=ada).status_code for _ in range(7)]
    assert answers == [200] * 5 + [429] * 2
    assert client.get("/api/v1/submissions", headers=bob).status_code == 200
    client.post("/signin", data={"key": bob["Authorization"].split()[1]})
    assert [client.get("/mine").status_code for _ in range(7)] == [200] * 5 + [429] * 2
    client.cookies.clear()
    while client.get("/problem").status_code == 200:
        pass
    refused = client.get("/problem")
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
    for free in ("/assets/site.css", "/healthz"):
        assert client.get(free).status_code != 429
    form = client.post("/signin", data={"key": "arena_guessed"})
    assert form.status_code == 429
    assert ["tries again by itself" in each.text for each in (refused, form)] == [True, False]


def test_wrong_worker_keys_of_one_address_are_limited(client: TestClient, rules: Path) -> None:
    rules.write_text("[limits]\nper_address_per_minute = 2\n")
    wrong = {"Authorization": "Bearer worker_guessed"}
    assert [client.get(PATH, headers=wrong).status_code for _ in range(3)] == [401, 401, 429]


def test_watching_pages_of_one_person_are_bounded(
    client: TestClient,
    worker: FakeWorker,
    connection: Connection,
    ada: Person,
    key: Key,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "STREAMS_PER_PERSON", 1)
    path, ours = f"/live/submissions/{submit(connection, ada)}", key(ada)
    worker.grade()
    for _ in range(3):
        assert client.get(path, headers=ours).status_code == 200, "the one before has ended"
    monkeypatch.setattr(guard, "STREAMS_PER_PERSON", 0)
    answer = client.get("/live/board", headers=ours)
    assert answer.status_code == 429 and "live pages are open" in answer.json()["detail"]
    monkeypatch.setattr(guard, "STREAMS_PER_PERSON", 1)
    monkeypatch.setattr(guard, "STREAMS_PER_ADDRESS", 0)
    assert client.get(path, headers=ours).status_code == 429


def test_an_open_stream_does_not_delay_the_end(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with httpx.Client(timeout=PATIENCE) as client:
        with served(site, shutdown_seconds=int(PATIENCE)) as address:
            request = client.build_request("GET", f"{address}/live/board")
            lines = client.send(request, stream=True).iter_lines()
            assert next(lines) == "event: board"
            began = time.monotonic()
        assert time.monotonic() - began < PATIENCE / 4
        with pytest.raises(httpx.RemoteProtocolError):  # browsers and submit.py connect again
            for _ in lines:
                pass
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_idle_connections_and_endless_headers_are_cut(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    with connect(address) as endless:
        endless.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ")
        with pytest.raises(OSError):
            for _ in range(1000):
                endless.sendall(b"x" * 100_000)
                time.sleep(0.01)
    with connect(address) as idle, suppress(ConnectionResetError):
        assert idle.recv(1) == b""


def test_the_third_judge_error_is_final_and_not_counted(
    connection: Connection, worker: FakeWorker, ada: Person, client: TestClient, key: Key
) -> None:
    id = submit(connection, ada)
    for number in range(1, MAX_ATTEMPTS + 1):
        assert worker.status(id).verdict is None
        task = worker.take()
        outcome = worker.outcome(task.attempt, graded(task, report=factory.our_fault()))
        assert outcome is (Decision.RETRY if number < MAX_ATTEMPTS else Decision.COUNTED)
    assert worker.status(id).verdict == Verdict.JUDGE_ERROR
    page = client.get(f"/submissions/{id}", headers=key(ada)).text
    assert "does not count against your limits" in page and "3 times" in page
    limits = Limits(per_day=1, device_seconds_per_day=1)
    assert gradings.submit(connection, ada.id, submission("other"), limits, None)


def test_a_rejudging_never_replaces_a_result_by_a_judge_error(
    connection: Connection, worker: FakeWorker, person: Add
) -> None:
    olga = person("olga", Role.ORGANISER)
    ids = [submit(connection, person(name), name) for name in ("bob", "ada")]
    for _ in ids:
        worker.grade(1.0)
    number = contest.rejudge(connection, olga, ids, "again")
    assert not gradings.cancel(connection, ids[0]), "an author does not end it"
    own = gradings.submit(connection, olga.id, submission("own"), Limits(in_flight=1), None)
    assert gradings.cancel(connection, own), "a rejudging does not count as a submission"
    while (task := worker.fetch()) is not None:
        failed = factory.our_fault() if task.name == "ada" else None
        worker.finish(task.attempt, graded(task, 2.0, failed))
    contest.apply_rejudging(connection, olga, number)
    verdicts = [each["verdict_after"] for each in contest.changes(connection, number)]
    assert verdicts == ["judge-error", "accepted"], "those that differ come first"
    scores = {each.name: each.score for each in watching.recent(connection)}
    assert scores == {"ada": 1.0, "bob": 2.0, "own": None}


def test_comparisons_are_bounded_in_number_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "MAX_WAITING", 2)
    process = OtherProcess()

    async def many() -> list[str]:
        asked = (process.call(partial(time.sleep, 100), seconds=0.05) for _ in range(4))
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert await process.call(partial(max, 3, 7)) == 7, "the next one is served"
        return sorted(each.detail[:9] for each in found if isinstance(each, Problem))

    assert asyncio.run(many()) == ["Many comp"] * 2 + ["This took"] * 2


def test_health_fails_before_the_disk_is_full(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: usage(100, 100, 5 << 20))
    answer = client.get("/healthz")
    assert answer.status_code == 503 and "5 MiB left" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (DiskFull("No space left on device"), "disk is full"),
        (Exception("connection refused"), "database does not answer"),
    ],
)
def test_a_database_error_names_its_cause(cause: Exception, said: str, site: Site) -> None:
    with pytest.raises(Problem, match=said) as caught, site.transaction():
        raise OperationalError("INSERT", {}, cause)
    assert caught.value.status == 503


def test_an_arena_of_one_machine_refuses_other_host_names(site: Site) -> None:
    local = TestClient(application(site, local=True), base_url="http://127.0.0.1:8040")
    assert local.get("/submit.py").status_code == 200
    refused = local.get("/submit.py", headers={"Host": "evil.example"})
    assert refused.status_code == 421 and "--proxy" in refused.text
