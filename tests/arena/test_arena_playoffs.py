"""Play-offs of an arena: called on a page or by the rules, played on one GPU after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import URL, Connection, Engine, text

from harness.arena.build import Build
from harness.arena.checkup import CheckUp
from harness.arena.contested import Contested
from harness.arena.judging import Judge
from harness.arena.presence import Presence
from harness.arena.queue import QUEUE, conninfo, queue_app, queue_of_gpu
from harness.arena.rules import RulesError, RulesFile, read
from harness.arena.states import MAX_ATTEMPTS
from harness.arena.store import board, crew, playoffs
from harness.arena.store.attempts import Attempts
from harness.arena.store.games import Games
from harness.arena.store.line import Line
from harness.arena.store.membership import Membership
from harness.arena.store.people import NotPossible, Person, Role
from harness.arena.sweeper import go_on_with_playoffs
from harness.arena.worker import Worker
from harness.board import playoffs as of_a_store
from harness.board.edition import Edition
from harness.board.ranking import rank
from harness.cli.commands._stores import Address
from harness.judge.progress import Progress
from harness.judge.stages.playoff import Game
from harness.protocol.errors import JudgeFailure
from harness.protocol.report import Submission
from tests.arena.checkups import checkup
from tests.arena.handing_in import graded, hand_in, joined, newcomer, take
from tests.board import factory
from tests.board.test_playoffs import A, B, playoff
from tests.waiting import PATIENCE

Add = Callable[..., Person]
Key = Callable[[Person], dict[str, str]]
GPUS = ("GPU-0", "GPU-1", "GPU-2")


class Gpu:
    """A worker on one, as far as play-offs can tell."""

    def __init__(self, url: URL, id: str) -> None:
        self.line = Line(conninfo(url))
        who = newcomer(id, model=factory.H100)
        self.membership = Membership(self.line, who, Build.here())
        self.membership.join()
        self.games = Games(self.line, self.membership)

    def called(self, connection: Connection) -> UUID | None:
        """The game that waits for it, as its worker fetches it from the queue."""
        query = "SELECT args FROM procrastinate_fetch_job_v2(ARRAY[:queue], NULL)"
        own = queue_of_gpu(self.membership._newcomer.id)
        args = connection.scalar(text(query), {"queue": own})
        return UUID(args["game"]) if args else None


@pytest.fixture
def gpus(worker_url: URL, owner: Engine) -> Iterator[list[Gpu]]:
    """Three, whose check-ups an organiser has waived."""
    made = [Gpu(worker_url, id) for id in GPUS]
    with owner.begin() as link:
        link.execute(text("UPDATE workers SET organiser_says = 'in service'"))
    yield made
    for each in made:
        each.line.close()


@pytest.fixture
def pair(worker_url: URL, connection: Connection, person: Add) -> list[str]:
    """Two submissions whose scores do not tell their order."""
    scores = {"ada": 1.0, "bob": 0.9995}
    return [scored(worker_url, connection, person(n), n, score) for n, score in scores.items()]


def scored(url: URL, connection: Connection, who: Person, name: str, score: float) -> str:
    id = hand_in(connection, who, name)
    attempts = joined(url)
    attempt = take(connection, attempts)
    assert attempts.finish(attempt.attempt, graded(attempt, score))
    attempts.close()
    return id


def game(ratio: float, gpu: str) -> Game:
    """In which the first is so many times as fast."""
    return playoff(A, B, ratio, [gpu]).games[0]


def places(connection: Connection) -> list[tuple[int | None, str]]:
    (made,) = rank(
        board.counting(connection), Edition.current(), played=playoffs.results(connection)
    )
    return [(row.rank, row.entry.name) for row in made.rows]


def only(connection: Connection) -> playoffs.Called:
    (found,) = playoffs.called(connection)
    return found


def test_an_organiser_has_two_played_off_and_the_board_follows(
    client: TestClient,
    connection: Connection,
    gpus: list[Gpu],
    pair: list[str],
    person: Add,
    key: Key,
) -> None:
    boss = person("boss", Role.ORGANISER)
    assert places(connection) == [(1, "ada"), (1, "bob")]
    before = board.version(connection)
    id = playoffs.call(connection, boss, pair, "the final")
    for number, gpu in enumerate(gpus[:2]):
        assert playoffs.go_on(connection) == []
        assert only(connection).state == f"played on {number} GPUs so far"
        called = gpu.called(connection)
        assert called is not None
        assert [each.name for each in gpu.games.take(called)] == ["ada", "bob"]
        assert gpu.games.play_on(called)
        (playing,) = (each for each in crew.everybody(connection) if each.plays)
        assert (playing.id, playing.does) == (GPUS[number], "plays off")
        assert playoffs.go_on(connection) == [], "it is being played"
        # The second is faster: by 1 %.
        assert gpu.games.finish(called, game(1 / 1.01, GPUS[number]))
        assert not gpu.games.finish(called, game(9.0, GPUS[number])), "handed in twice"
    assert playoffs.go_on(connection) == [id]
    assert gpus[2].called(connection) is None, "two GPUs were enough"
    assert places(connection) == [(1, "bob"), (2, "ada")]
    assert board.version(connection) > before
    page = client.get(f"/organiser/playoffs/{id}", headers=key(boss)).text
    assert "bob is faster" in page and "-0.99 %" in page and "100.0 %" in page
    assert "the final" in client.get("/organiser", headers=key(boss)).text
    assert "found: 1. bob, 2. ada." in client.get("/").text


def test_what_was_found_is_kept_for_the_commands_too_and_signed(
    engine: Engine, connection: Connection, gpus: list[Gpu], pair: list[str], rules: Path
) -> None:
    key = rules.with_name("signing-key.pem")
    nobody = Contested(RulesFile(rules), own="")
    id = playoffs.call(connection, None, pair, "x")
    for number, gpu in enumerate(gpus[:2]):
        go_on_with_playoffs(engine, nobody, key)
        called = gpu.called(connection)
        assert called is not None and gpu.games.take(called)
        gpu.games.finish(called, game(1.01, GPUS[number]))
    go_on_with_playoffs(engine, nobody, key)
    (kept,) = of_a_store.read(Address(str(rules.parent)).beside(of_a_store.SUFFIX), key)
    assert [kept] == playoffs.results(connection)
    assert playoffs.called(connection, id)[0].state == "order known"


def test_what_stays_unknown_is_played_on_every_gpu_and_said_to_be_unknown(
    connection: Connection, gpus: list[Gpu], pair: list[str]
) -> None:
    playoffs.call(connection, None, pair, "x")
    for gpu, ratio in zip(gpus, (1.01, 0.99, 1.01), strict=True):
        playoffs.go_on(connection)
        called = gpu.called(connection)
        assert called is not None and gpu.games.take(called)
        gpu.games.finish(called, game(ratio, gpu.membership._newcomer.id))
    playoffs.go_on(connection)
    found = only(connection)
    assert (found.state, found.played) == ("order not known", 3)
    assert places(connection) == [(1, "ada"), (1, "bob")]


def test_a_gpu_that_dies_at_play_costs_its_run_and_another_plays(
    connection: Connection, owner: Engine, gpus: list[Gpu], pair: list[str]
) -> None:
    playoffs.call(connection, None, pair, "x")
    for _ in range(MAX_ATTEMPTS):
        playoffs.go_on(connection)
        gpu, called = next((g, c) for g in gpus if (c := g.called(connection)) is not None)
        gpu.games.take(called)
        with owner.begin() as link:
            link.execute(text("UPDATE games SET seen = now() - interval '1 minute'"))
        playoffs.go_on(connection)
        assert not gpu.games.play_on(called)
        assert not gpu.games.finish(called, game(1.01, "GPU-0")), "it comes back too late"
    found = only(connection)
    assert (found.state, found.failure) == ("no result", "3 workers died while they played it")


def test_a_gpu_that_leaves_before_its_turn_takes_its_game_with_it(
    connection: Connection, gpus: list[Gpu], pair: list[str]
) -> None:
    playoffs.call(connection, None, pair, "x")
    playoffs.go_on(connection)
    gpus[0].membership.leave()
    playoffs.go_on(connection)
    playoffs.go_on(connection)
    called = gpus[1].called(connection)
    assert called is not None and gpus[1].games.take(called)
    assert not gpus[2].games.take(called), "it is another's"
    assert gpus[1].games.give_back(called)
    playoffs.go_on(connection)
    assert gpus[2].called(connection) is not None, "the GPU that has played least"


def test_a_kernel_that_fails_at_play_ends_it_with_a_sentence(
    connection: Connection, gpus: list[Gpu], pair: list[str]
) -> None:
    playoffs.call(connection, None, pair, "x")
    playoffs.go_on(connection)
    called = gpus[0].called(connection)
    assert called is not None and gpus[0].games.take(called)
    gpus[0].games.fail(called, "ada was wrong")
    playoffs.go_on(connection)
    assert only(connection).failure == "ada was wrong"
    assert places(connection) == [(1, "ada"), (1, "bob")]


def test_what_cannot_be_played_off_is_refused_in_a_sentence(
    worker_url: URL, connection: Connection, pair: list[str], person: Add
) -> None:
    boss = person("boss", Role.ORGANISER)

    def refused(chosen: Sequence[str], reason: str = "x") -> str:
        with pytest.raises(NotPossible) as error:
            playoffs.call(connection, boss, chosen, reason)
        return str(error.value)

    assert "needs a reason" in refused(pair, " ")
    assert "choose from 2 to 8" in refused(pair[:1])
    assert "choose from 2 to 8" in refused([pair[0], pair[0]])
    waiting = hand_in(connection, boss, "waits")
    assert "1 of these submissions have no score that ranks" in refused([*pair, waiting])
    twin = hand_in(connection, person("eve"), "ada")
    attempts = joined(worker_url)
    for _ in range(2):
        attempt = take(connection, attempts)
        attempts.finish(attempt.attempt, graded(attempt, 1.0))
    attempts.close()
    assert "ada and ada are one program" in refused([pair[0], twin])
    with pytest.raises(NotPossible, match="has ended already"):
        playoffs.drop(connection, boss, 99)


# ------------------------------------------------------------------------------------ by the rules


def contested(rules: Path, ends: datetime, places: int = 3) -> Contested:
    rules.write_text(f"playoff_places = {places}\nends = {ends:%Y-%m-%dT%H:%M:%SZ}\n")
    return Contested(RulesFile(rules), own="")


def test_after_the_end_shared_places_are_played_off_once(
    connection: Connection, gpus: list[Gpu], pair: list[str], rules: Path
) -> None:
    now = datetime.now(UTC)
    assert contested(rules, now + timedelta(hours=1)).call(connection, now) == [], "not yet"
    contest = contested(rules, now - timedelta(hours=1))
    (id,) = contest.call(connection, now)
    found = only(connection)
    assert (found.made_by, found.names) == (None, ["ada", "bob"])
    assert found.reason == "place 1, which 2 kernels share"
    assert contest.call(connection, now) == [], "one is open"
    for number, gpu in enumerate(gpus[:2]):
        playoffs.go_on(connection)
        called = gpu.called(connection)
        assert called is not None and gpu.games.take(called)
        gpu.games.finish(called, game(1.0, GPUS[number]))
    assert playoffs.go_on(connection) == [id]
    assert places(connection) == [(1, "ada"), (1, "bob")], "they are equal"
    assert contest.call(connection, now) == [], "and that is known"


def test_the_rules_play_nothing_off_while_something_is_graded_or_beyond_the_places(
    worker_url: URL, connection: Connection, pair: list[str], person: Add, rules: Path
) -> None:
    now = datetime.now(UTC)
    contest = contested(rules, now - timedelta(hours=1), places=1)
    scored(worker_url, connection, person("eve"), "best", 2.0)
    assert contest.call(connection, now) == [], "ada and bob share place 2"
    contest = contested(rules, now - timedelta(hours=1), places=2)
    hand_in(connection, person("late"), "late")
    assert contest.call(connection, now) == [], "something waits"


def test_places_to_be_played_off_need_an_end(rules: Path) -> None:
    rules.write_text("playoff_places = 3\n")
    with pytest.raises(RulesError, match="say when it ends"):
        read(rules)


# -------------------------------------------------------------------------------------- the worker


class Player:
    """A judge that only plays."""

    lanes = 1

    def __init__(self, found: Game | JudgeFailure) -> None:
        self._found = found
        self.played: list[list[str]] = []

    def check_up(self, progress: Progress) -> CheckUp:
        return checkup(GPUS[0])

    def play(self, submissions: Sequence[Submission], progress: Progress) -> Game:
        progress.step("round 1")
        self.played.append([each.name for each in submissions])
        if isinstance(self._found, JudgeFailure):
            raise self._found
        return self._found


def serve(url: URL, judge: Player, until: Callable[[], bool]) -> None:
    """A real worker's loop on GPU-0, until that is so."""

    async def work() -> None:
        who = newcomer(GPUS[0], model=factory.H100)
        line = Line(conninfo(url))
        membership = Membership(line, who, Build.here())
        async with Presence(membership) as presence:
            worker = Worker(
                queue_app(url),
                presence,
                Attempts(line, membership),
                Games(line, membership),
                cast(Judge, judge),
                [QUEUE, queue_of_gpu(who.id)],
            )
            running = asyncio.create_task(worker.run())
            async with asyncio.timeout(PATIENCE):
                while not until():
                    await asyncio.sleep(0.05)
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(work())


@pytest.mark.parametrize("found", [game(1.01, "GPU-0"), JudgeFailure("ada was wrong")])
def test_a_worker_plays_what_is_called_on_its_gpu(
    worker_url: URL,
    connection: Connection,
    owner: Engine,
    gpus: list[Gpu],
    pair: list[str],
    found: Any,
) -> None:
    playoffs.call(connection, None, pair, "x")
    playoffs.go_on(connection)
    gpus[0].membership.leave()
    judge = Player(found)

    def over() -> bool:
        states = connection.execute(text("SELECT state FROM games")).scalars().all()
        return states in (["finished"], ["failed"])

    serve(worker_url, judge, over)
    assert judge.played == [["ada", "bob"]]
    row = connection.execute(text("SELECT state, failure FROM games")).one()
    assert row == (
        ("failed", "ada was wrong") if isinstance(found, JudgeFailure) else ("finished", None)
    )
