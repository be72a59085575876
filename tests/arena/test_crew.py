"""GPUs and workers on the pages and in the metrics, and what an organiser does to them."""

from __future__ import annotations

import re
from collections.abc import Callable

from fastapi.testclient import TestClient
from sqlalchemy import URL, Connection, Engine, text

from harness.arena.build import Build
from harness.arena.queue import conninfo
from harness.arena.store import crew
from harness.arena.store.line import Line
from harness.arena.store.membership import Duty, Membership
from harness.arena.store.people import Person, Role
from tests.arena.handing_in import hand_in, joined, newcomer, take

Add = Callable[..., Person]
Key = Callable[[Person], dict[str, str]]


def gpu(url: URL, engine: Engine, id: str) -> Membership:
    """One that has joined."""
    member = Membership(Line(conninfo(url)), newcomer(id, model="NVIDIA H200"), Build.here())
    member.join()
    return member


def test_the_metrics_say_what_each_worker_does_and_how_long_each_queue_is(
    client: TestClient, connection: Connection, worker_url: URL, engine: Engine, person: Add
) -> None:
    gpu(worker_url, engine, "GPU-1")
    attempts = joined(worker_url)
    ada = person("ada")
    hand_in(connection, ada, "held")
    take(connection, attempts)
    hand_in(connection, ada, "waits")
    metrics = client.get("/metrics").text
    assert 'arena_queue_length{model="any"} 1.0' in metrics
    assert re.search(r'arena_worker_busy\{[^}]*worker="test"\} 1\.0', metrics)
    assert re.search(r'arena_worker_busy\{[^}]*worker="GPU-1"\} 0\.0', metrics)
    attempts.close()


def test_an_organiser_sets_aside_takes_back_and_drains(
    connection: Connection, worker_url: URL, engine: Engine, person: Add
) -> None:
    boss = person("boss", Role.ORGANISER)
    member = gpu(worker_url, engine, "GPU-1")
    assert member.beat() is Duty.SERVE
    crew.say(connection, boss, "GPU-1", "set aside")
    assert member.beat() is Duty.REST
    assert crew.everybody(connection)[0].set_aside
    crew.say(connection, boss, "GPU-1", None)
    assert member.beat() is Duty.SERVE
    crew.drain(connection, boss, "GPU-1")
    assert member.beat() is Duty.LEAVE
    actions = connection.execute(text("SELECT action FROM audit ORDER BY id")).scalars().all()
    assert actions[-3:] == ["set aside", "take back", "drain"]


def test_the_organisers_page_shows_workers_and_revokes_machines(
    client: TestClient,
    connection: Connection,
    worker_url: URL,
    owner: Engine,
    person: Add,
    key: Key,
) -> None:
    boss = person("boss", Role.ORGANISER)
    attempts = joined(worker_url)
    with owner.begin() as link:
        link.execute(text("SELECT arena_new_machine('lab-3', 'x')"))
    page = client.get("/organiser", headers=key(boss)).text
    assert "test on a machine" in page and "lab-3" in page and "Revoke" in page
    machine = crew.known_machines(connection)[0]
    crew.revoke(connection, boss, machine.id)
    assert crew.known_machines(connection)[0].revoked is not None
    attempts.close()
