"""GPUs and workers on the pages and in the metrics, and what an organiser does to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

from fastapi.testclient import TestClient
from sqlalchemy import URL, Connection, Engine, text

from harness.arena.build import Build
from harness.arena.queue import conninfo
from harness.arena.store import crew
from harness.arena.store.line import Line
from harness.arena.store.membership import Duty, Membership
from harness.arena.store.people import Person, Role
from harness.arena.sweeper import judge_checkups
from harness.arena.web.plots import plots
from tests.arena.checkups import MODEL, checkup
from tests.arena.handing_in import hand_in, joined, newcomer, take

Add = Callable[..., Person]
Key = Callable[[Person], dict[str, str]]


def gpu(url: URL, engine: Engine, id: str, tensor: float = 4.8) -> Membership:
    """One that has joined and was checked up."""
    member = Membership(Line(conninfo(url)), newcomer(id, model=MODEL), Build.here())
    member.join()
    member.check_up(checkup(id, tensor=tensor).model_dump(mode="json"))
    judge_checkups(engine)
    return member


def test_everybody_sees_each_gpu_its_scores_and_why_it_is_set_aside(
    client: TestClient, worker_url: URL, engine: Engine
) -> None:
    assert "No GPU has judged here yet" in client.get("/gpus").text
    gpu(worker_url, engine, "GPU-1")
    gpu(worker_url, engine, "GPU-2", tensor=3.0)
    page = client.get("/gpus").text
    assert "GPU-1" in page and "GPU-2" in page and "36_wgmma_one_accumulator" in page
    assert re.search(r"Set aside: 36_wgmma\w+ scores 3\.0000 here, 37\.5% off the median", page)
    assert page.count("<svg") == 6 and "style=" not in page and "<script>" not in page


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
    score = r'arena_gpu_reference_score\{kernel="02_shared_tile",worker="GPU-1"\} 0\.16'
    assert re.search(score, metrics)
    attempts.close()


def test_an_organiser_sets_aside_takes_back_and_drains(
    connection: Connection, worker_url: URL, engine: Engine, person: Add
) -> None:
    boss = person("boss", Role.ORGANISER)
    member = gpu(worker_url, engine, "GPU-1")
    assert member.beat() is Duty.SERVE
    crew.say(connection, boss, "GPU-1", "set aside")
    assert member.beat() is Duty.REST
    assert crew.everybody(connection)[0].fault == "an organiser set it aside"
    crew.say(connection, boss, "GPU-1", None)
    assert member.beat() is Duty.SERVE
    crew.drain(connection, boss, "GPU-1")
    assert member.beat() is Duty.LEAVE
    actions = connection.execute(text("SELECT action FROM audit ORDER BY id")).scalars().all()
    assert actions[-3:] == ["set aside", "leave to check-ups", "drain"]


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


def test_a_plot_begins_left_ends_right_and_is_higher_where_the_score_is(
    connection: Connection, worker_url: URL, engine: Engine, owner: Engine
) -> None:
    member = gpu(worker_url, engine, "GPU-1", tensor=4.70)
    with owner.begin() as link:
        link.execute(text("UPDATE checkups SET at = at - interval '1 day'"))
    member.check_up(checkup("GPU-1", tensor=4.75).model_dump(mode="json"))
    judge_checkups(engine)
    found = crew.everybody(connection)[0].checkups
    assert found[0].at - found[1].at > timedelta(hours=23)
    plot = next(each for each in plots(found) if each.kernel.startswith("36"))
    first, last = plot.points
    assert first.x < last.x and first.y > last.y
