"""Play-offs of an arena: called, played on one GPU after another, ended with what is known then.

A game is one run on one GPU: a job that only the worker of that GPU serves. `go_on` looks at every
play-off that is open, as the sweeper does now and then, and calls its next game or ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from sqlalchemy import Connection, Text, cast, exists, func, insert, select, text, update

from harness import __version__
from harness.arena.states import MAX_ATTEMPTS
from harness.arena.store.contest import note
from harness.arena.store.membership import LEASE_SECONDS
from harness.arena.store.people import NotPossible, Person
from harness.arena.store.tables import games, gradings, people, players, playoffs, submissions
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.ranking import Standing, standing
from harness.board.store import standing_entries
from harness.board.tables import entries
from harness.judge.playoff import FEWEST_GPUS
from harness.judge.stages.playoff import Game, Player, PlayOff, differences, settled
from problem.cases import CASES_VERSION

MOST_PLAYERS = 8
"""Each has a process of its own on the GPU."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A submission that may play."""

    submission: str
    name: str
    model: str
    code: str


def candidates(connection: Connection, chosen: Sequence[str]) -> list[Candidate]:
    """Those of the submissions that stand with a score that ranks, in their order."""
    rows = connection.execute(
        select(submissions.c.id, gradings.c.report)
        .join(gradings, gradings.c.id == submissions.c.counts)
        .where(submissions.c.id.in_(chosen))
    ).all()
    query = standing_entries().where(entries.c.id.in_([report for _, report in rows]))
    stand = {entry.id: entry for entry in (Entry(*row) for row in connection.execute(query))}
    found = {submission: stand[report] for submission, report in rows if report in stand}
    edition = Edition.current()
    return [
        Candidate(each, entry.name, entry.device, entry.code)
        for each in chosen
        if (entry := found.get(each)) is not None
        and entry.device is not None
        and standing(entry, edition) is Standing.RANKED
    ]


def call(connection: Connection, actor: Person | None, chosen: Sequence[str], reason: str) -> int:
    """Let these be played off. actor: None where the rules ask for it. Raises NotPossible."""
    reason = reason.strip()[:500]
    if not reason:
        raise NotPossible("a play-off needs a reason")
    chosen = list(dict.fromkeys(chosen))
    if not 2 <= len(chosen) <= MOST_PLAYERS:
        raise NotPossible(f"choose from 2 to {MOST_PLAYERS} submissions to be played off")
    found = candidates(connection, chosen)
    if len(found) < len(chosen):
        left_out = len(chosen) - len(found)
        raise NotPossible(f"{left_out} of these submissions have no score that ranks")
    models = {each.model for each in found}
    if len(models) > 1:
        raise NotPossible(f"they were graded on several models: {', '.join(sorted(models))}")
    for place, each in enumerate(found):
        twin = next((other for other in found[:place] if other.code == each.code), None)
        if twin is not None:
            raise NotPossible(f"{each.name} and {twin.name} are one program; leave one out")
    id = connection.execute(
        insert(playoffs)
        .values(made_by=actor.id if actor else None, reason=reason, model=models.pop())
        .returning(playoffs.c.id)
    ).scalar_one()
    connection.execute(
        insert(players),
        [
            {"playoff": id, "place": place, "submission": each.submission, "code": each.code}
            for place, each in enumerate(found)
        ],
    )
    note(connection, actor, "play off", str(id), reason=reason, submissions=chosen)
    return int(id)


def drop(connection: Connection, actor: Person, id: int) -> None:
    """End it without a result. Raises NotPossible."""
    if not _end(connection, id, failure="an organiser ended it"):
        raise NotPossible("there is no such play-off, or it has ended already")
    note(connection, actor, "end play-off", str(id))


# ------------------------------------------------------------------------------------- going on


def go_on(connection: Connection) -> list[int]:
    """Call the next game of each that is open, or end it; those that ended. In the caller's
    transaction."""
    open_ones = connection.execute(
        select(playoffs.c.id, playoffs.c.model)
        .where(playoffs.c.ended.is_(None))
        .order_by(playoffs.c.id)
        .with_for_update(skip_locked=True)
    ).all()
    return [id for id, model in open_ones if _go_on(connection, id, model)]


def _go_on(connection: Connection, id: int, model: str) -> bool:
    connection.execute(_DIED, {"playoff": id, "lease": LEASE_SECONDS})
    so_far = connection.execute(
        select(games.c.worker, games.c.state, games.c.found, games.c.failure).where(
            games.c.playoff == id
        )
    ).all()
    states = [game.state for game in so_far]
    if "queued" in states or "playing" in states:
        return False
    failure = next((game.failure for game in so_far if game.failure is not None), None)
    if failure is not None:
        return _end(connection, id, failure=failure)
    if states.count("died") >= MAX_ATTEMPTS:
        return _end(connection, id, failure=f"{MAX_ATTEMPTS} workers died while they played it")
    played = [Game.model_validate(game.found) for game in so_far if game.state == "finished"]
    if len(played) >= FEWEST_GPUS and settled(differences(played)):
        return _end(connection, id, games=played)
    done = [game.worker for game in so_far if game.state == "finished"]
    worker = connection.scalar(_NEXT, {"model": model, "done": done, "lease": LEASE_SECONDS})
    if worker is not None:
        connection.execute(select(func.arena_call_game(id, worker)))
        return False
    # Without a single GPU it waits for one.
    return bool(played) and _end(connection, id, games=played)


_DIED = text(
    """UPDATE games g SET state = 'died' FROM workers w
    WHERE g.playoff = :playoff AND w.id = g.worker AND (
        (g.state = 'playing' AND g.seen < now() - make_interval(secs => :lease))
        OR (g.state = 'queued' AND (w.seen IS NULL
            OR w.seen < now() - make_interval(secs => :lease)))
    )"""
)
"""Nobody works on them any more: a game that waits is its GPU's, and goes with it."""

_NEXT = text(
    """SELECT w.id FROM workers w
    LEFT JOIN LATERAL (
        SELECT judged, fault FROM checkups WHERE worker = w.id ORDER BY at DESC LIMIT 1
    ) c ON true
    WHERE w.model = :model AND w.id <> ALL(:done) AND NOT w.draining
        AND w.seen > now() - make_interval(secs => :lease)
        AND (w.organiser_says = 'in service'
            OR (w.organiser_says IS NULL AND c.judged IS NOT NULL AND c.fault IS NULL))
    ORDER BY (SELECT count(*) FROM games WHERE worker = w.id), w.id LIMIT 1"""
)
"""A GPU of the model that judges now and has not played; of several the one that has played
least."""


def _end(
    connection: Connection, id: int, *, games: Sequence[Game] = (), failure: str | None = None
) -> bool:
    """Whether it was open. What it found changes the board."""
    result = None
    if failure is None:
        result = PlayOff(
            judge=__version__,
            cases=CASES_VERSION,
            created=datetime.now(UTC).replace(microsecond=0),
            players=_players(connection, id),
            games=tuple(games),
            differences=differences(games),
        ).model_dump(mode="json")
    changed = connection.execute(
        update(playoffs)
        .where(playoffs.c.id == id, playoffs.c.ended.is_(None))
        .values(ended=func.now(), result=result, failure=failure)
    )
    connection.execute(text("SELECT nextval('board_version'), pg_notify('arena', 'board')"))
    return bool(changed.rowcount)


def _players(connection: Connection, id: int) -> tuple[Player, ...]:
    rows = connection.execute(
        select(submissions.c.name, people.c.name, submissions.c.sha256, players.c.code)
        .select_from(players)
        .join(submissions, submissions.c.id == players.c.submission)
        .join(people, people.c.id == submissions.c.person)
        .where(players.c.playoff == id)
        .order_by(players.c.place)
    ).all()
    return tuple(
        Player(name=name, author=author, sha256=sha256, code=code)
        for name, author, sha256, code in rows
    )


# ------------------------------------------------------------------------------------- watching


def any_open(connection: Connection) -> bool:
    return bool(connection.scalar(select(exists().where(playoffs.c.ended.is_(None)))))


def met(connection: Connection) -> set[tuple[str, str, str]]:
    """Every two programs of which there was a play-off, whatever came of it, with the model: the
    smaller of their hashes first."""
    one, other = players.alias("one"), players.alias("other")
    rows = connection.execute(
        select(playoffs.c.model, one.c.code, other.c.code)
        .join(one, one.c.playoff == playoffs.c.id)
        .join(other, (other.c.playoff == playoffs.c.id) & (other.c.code > one.c.code))
    )
    return {(model, first, second) for model, first, second in rows}


@dataclass(frozen=True, slots=True)
class Called:
    """One play-off, as pages show it."""

    id: int
    reason: str
    made_by: str | None
    """None: the rules."""
    model: str
    created: datetime
    ended: datetime | None
    failure: str | None
    names: list[str]
    played: int
    """Games that have ended with rounds."""
    result: PlayOff | None

    @property
    def state(self) -> str:
        """In a few words."""
        if self.failure is not None:
            return "no result"
        if self.result is None:
            return f"played on {self.played} GPUs so far"
        return "order known" if settled(self.result.differences) else "order not known"


def called(connection: Connection, id: int | None = None) -> list[Called]:
    """Newest first; or the one."""
    rows = connection.execute(
        text(
            f"""SELECT o.id, o.reason, p.name AS made_by, o.model, o.created, o.ended, o.failure,
            (SELECT array_agg(s.name ORDER BY y.place) FROM players y
                JOIN submissions s ON s.id = y.submission WHERE y.playoff = o.id) AS names,
            (SELECT count(*) FROM games g
                WHERE g.playoff = o.id AND g.state = 'finished') AS played,
            CAST(o.result AS text) AS result
            FROM playoffs o LEFT JOIN people p ON p.id = o.made_by
            {"WHERE o.id = :id" if id is not None else ""}
            ORDER BY o.id DESC LIMIT 50"""
        ),
        {} if id is None else {"id": id},
    ).mappings()
    return [Called(**{**row, "result": _read(row["result"])}) for row in rows]


def results(connection: Connection, before: datetime | None = None) -> list[PlayOff]:
    """What all of them have found, in order of time. before: those that had ended then."""
    query = select(cast(playoffs.c.result, Text)).where(playoffs.c.result.is_not(None))
    if before is not None:
        query = query.where(playoffs.c.ended < before)
    found = [_read(result) for result in connection.scalars(query.order_by(playoffs.c.ended))]
    return [playoff for playoff in found if playoff is not None]


@lru_cache(maxsize=256)
def _read(result: str | None) -> PlayOff | None:
    return PlayOff.model_validate_json(result) if result else None
