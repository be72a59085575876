"""Workers on the organiser's page and in the metrics, and what an organiser does to them."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine, text

from harness.arena.store import workers
from harness.arena.store.people import Role
from harness.arena.store.workers import SessionEnded
from harness.arena.web.app import application
from harness.arena.web.context import Site
from tests.arena.submitting import Add, FakeWorker, Key, asking


def gpu(engine: Engine) -> FakeWorker:
    return FakeWorker(engine, asking("GPU-1", model="NVIDIA H200"))


def test_metrics_count_gradings_and_workers(site: Site, engine: Engine, worker: FakeWorker) -> None:
    gpu(engine)
    for name in ("held", "waits"):
        worker.submit(name)
    worker.take()
    metrics = TestClient(application(site), client=("127.0.0.1", 1)).get("/metrics").text
    for state in ("queued", "grading"):
        assert f'arena_gradings{{state="{state}"}} 1.0' in metrics
    assert "arena_workers 2.0" in metrics


def test_an_organiser_drains_a_worker(
    client: TestClient, connection: Connection, engine: Engine, person: Add, key: Key
) -> None:
    boss, worker = person("boss", Role.ORGANISER), gpu(engine)
    assert not worker.leaves
    drain = client.post("/organiser/workers/drain", data={"id": "GPU-1"}, headers=key(boss))
    assert drain.status_code == 303 and worker.leaves
    with pytest.raises(SessionEnded):  # it gets no other task
        worker.fetch()
    assert connection.scalar(text("SELECT action FROM audit")) == "drain"


def test_a_worker_key_is_made_on_the_page_and_revoked(
    client: TestClient, connection: Connection, person: Add, key: Key
) -> None:
    boss = person("boss", Role.ORGANISER)
    client.post("/signin", data={"key": key(boss)["Authorization"].split()[1]})
    form = {"name": "lab 3"}
    made = client.post("/organiser/workers/keys", data=form)
    assert 'filename="lab-3.key"' in made.headers["content-disposition"]
    header = {"Authorization": f"Bearer {made.text.strip()}"}
    assert client.get("/api/v1/workers", headers=header).status_code == 200
    (machine,) = workers.machines(connection)
    client.post("/organiser/workers/keys/revoke", data=form | {"id": machine.id})
    assert client.get("/api/v1/workers", headers=header).status_code == 401
