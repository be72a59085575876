"""Workers on the organiser's page, and what an organiser does to them."""

from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine

from harness.arena.store import workers
from harness.arena.store.people import Role
from tests.arena.submitting import Add, FakeWorker, Key, asking


def gpu(engine: Engine) -> FakeWorker:
    return FakeWorker(engine, asking("GPU-1", model="NVIDIA H200"))


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
