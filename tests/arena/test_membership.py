"""Joining an arena: one worker a GPU, one judge for all; who was taken for dead takes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from uuid import uuid4

import pytest
from sqlalchemy import URL, Connection, Engine, text

from harness.arena.build import Build
from harness.arena.queue import conninfo
from harness.arena.store.line import Line
from harness.arena.store.membership import (
    Duty,
    Held,
    Membership,
    Newcomer,
    Refused,
    clock_warning,
)
from harness.arena.store.people import Person
from harness.arena.store.preparing import set_build
from tests.arena.handing_in import fetch, graded, hand_in, joined, newcomer, take

Add = Callable[..., Person]


def membership(url: URL, who: Newcomer, build: Build | None = None) -> Membership:
    return Membership(Line(conninfo(url)), who, build or Build.here())


@pytest.mark.parametrize("change", [{"judge": "0.0.9"}, {"cases": 1}, {"source": "0" * 64}])
def test_a_worker_with_another_judge_is_refused_and_told_which(
    change: dict[str, object], worker_url: URL
) -> None:
    other = replace(Build.here(), **change)
    with pytest.raises(Refused, match="check out here what the arena runs") as refused:
        membership(worker_url, newcomer(), other).join()
    assert str(other) in str(refused.value) and str(Build.here()) in str(refused.value)


def test_one_worker_for_a_gpu(worker_url: URL) -> None:
    first = membership(worker_url, newcomer("GPU-1"))
    first.join()
    second = membership(worker_url, newcomer("GPU-1", crew=uuid4()))
    with pytest.raises(Held, match="GPU-1 is held by GPU-1 on a machine"):
        second.join()
    membership(worker_url, newcomer("GPU-2", crew=uuid4())).join()
    first.leave()
    second.join()
    assert first.beat() is None
    assert second.beat() is Duty.SERVE


def test_a_worker_that_shows_no_sign_of_life_loses_its_gpu(worker_url: URL, owner: Engine) -> None:
    first = membership(worker_url, newcomer("GPU-1"))
    first.join()
    with owner.begin() as link:
        link.execute(text("UPDATE workers SET seen = now() - interval '20 seconds'"))
    second = membership(worker_url, newcomer("GPU-1", crew=uuid4()))
    second.join()
    assert (first.beat(), second.beat()) == (None, Duty.SERVE)


def test_a_supervisor_that_starts_its_worker_again_waits_for_nothing(worker_url: URL) -> None:
    first = membership(worker_url, newcomer("GPU-1"))
    first.join()
    again = membership(worker_url, newcomer("GPU-1"))
    again.join()
    assert (first.beat(), again.beat()) == (None, Duty.SERVE)


def test_who_has_lost_the_gpu_takes_nothing_and_its_old_result_does_not_count(
    worker_url: URL, connection: Connection, person: Add
) -> None:
    ada = person("ada")
    hand_in(connection, ada, "old")
    lost = joined(worker_url)
    old = take(connection, lost)
    next_one = joined(worker_url)
    hand_in(connection, ada, "new")
    job = fetch(connection)
    assert job is not None
    assert lost.take(job) is None
    assert next_one.take(job) is not None
    assert lost.finish(old.attempt, graded(old)), "it still holds what it took"
    assert not lost.finish(old.attempt, graded(old))


def test_the_same_judge_started_again_keeps_its_workers_and_another_does_not(
    worker_url: URL, owner: Engine
) -> None:
    member = membership(worker_url, newcomer())
    member.join()
    with owner.begin() as link:
        set_build(link, Build.here())
    assert member.beat() is Duty.SERVE
    try:
        with owner.begin() as link:
            set_build(link, replace(Build.here(), source="other"))
        assert member.beat() is None
        with pytest.raises(Refused):
            member.join()
    finally:
        with owner.begin() as link:
            set_build(link, Build.here())


def test_a_clock_that_is_hours_off_is_told_and_does_not_count(
    worker_url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Behind:
            return super().now(tz) - timedelta(hours=3)

    monkeypatch.setattr("harness.arena.store.membership.datetime", Behind)
    member = membership(worker_url, newcomer())
    member.join()
    assert member.clock_ahead.total_seconds() == pytest.approx(-10800, abs=60)
    off = member.now() - datetime.now(UTC)
    assert abs(off.total_seconds()) < 60
    warning = clock_warning(member.clock_ahead)
    assert warning is not None and "3.0 h behind the arena's" in warning
    assert clock_warning(timedelta(seconds=1)) is None


def test_a_set_aside_worker_rests_and_a_drained_one_leaves(worker_url: URL, owner: Engine) -> None:
    member = membership(worker_url, newcomer())
    member.join()
    with owner.begin() as link:
        link.execute(text("UPDATE workers SET organiser_says = 'set aside'"))
    assert member.beat() is Duty.REST
    with owner.begin() as link:
        link.execute(text("UPDATE workers SET draining = true"))
    assert member.beat() is Duty.LEAVE
    late = membership(worker_url, newcomer("late"))
    late.join()
    assert late.beat() is Duty.LEAVE, "it was starting when its machine was drained"
    next_time = membership(worker_url, newcomer("late", crew=uuid4()))
    late.leave()
    next_time.join()
    assert next_time.beat() is Duty.SERVE
