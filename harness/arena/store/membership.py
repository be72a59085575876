"""A worker's place in an arena: joining, signs of life, what it is to do, leaving."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Self
from uuid import UUID

from psycopg.errors import InsufficientPrivilege, UndefinedFunction

from harness.arena.build import Build
from harness.arena.store.line import Line

LEASE_SECONDS = 15.0
"""Without a sign of life for so long, a worker's GPU is free for another."""

CLOCK_SECONDS = 5.0
"""A machine's clock may be so far off before anybody is told."""


REVOKED = (InsufficientPrivilege, UndefinedFunction)
"""What a machine without rights meets: it does not even see what it may not call."""


class Duty(StrEnum):
    """What a worker is to do now; the database says."""

    SERVE = "serve"
    REST = "rest"
    """An organiser has set its GPU aside."""
    LEAVE = "leave"
    """End after what it has in hand."""


class Refused(Exception):
    """The arena does not take this worker, and will not if it asks again; says why."""


class Held(Exception):
    """Another worker has this GPU; says which."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Who asks to join.

    id: the GPU's UUID, or a name for a CPU. crew: the supervisor's; of its own workers a new one
    takes the place of the last at once. model: the GPU's, of a worker that gives scores.
    """

    id: str
    crew: UUID
    name: str
    model: str | None


@dataclass(frozen=True, slots=True)
class Arena:
    """What an arena says of itself."""

    build: Build
    clock_ahead: timedelta
    """Of this machine's clock, against the arena's."""

    @classmethod
    def asked(cls, line: Line) -> Self:
        row = line.ask("SELECT * FROM arena_edition()", ())
        assert row is not None
        clock = row.pop("clock")
        return cls(Build(**row), datetime.now(UTC) - clock)


def check_build(theirs: Build, ours: Build) -> None:
    """Raises Refused."""
    if theirs != ours:
        raise Refused(
            f"the arena grades with {theirs}, and this machine with {ours}; check out here what "
            "the arena runs, and start again"
        )


def drain(line: Line) -> int:
    """Tell the workers of the machine that asks to end after what they have in hand; how many
    there are still."""
    row = line.ask("SELECT arena_drain(%s) AS left", (LEASE_SECONDS,))
    return int(row["left"]) if row else 0


class Membership:
    """One worker's; from any thread."""

    def __init__(self, line: Line, newcomer: Newcomer, build: Build) -> None:
        self._line = line
        self._newcomer = newcomer
        self._build = build
        self._session: UUID | None = None
        self.clock_ahead = timedelta()
        """Of this machine's, against the database's."""

    @property
    def session(self) -> UUID | None:
        return self._session

    def now(self) -> datetime:
        """By the database's clock."""
        return datetime.now(UTC) - self.clock_ahead

    def join(self) -> None:
        """Raises Refused or Held."""
        who, ours = self._newcomer, self._build
        row = self._line.ask(
            "SELECT * FROM arena_join(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                *(who.id, who.crew, who.name, who.model),
                *(ours.judge, ours.cases, ours.source, ours.quick),
                *(datetime.now(UTC), LEASE_SECONDS),
            ),
        )
        assert row is not None
        self.clock_ahead = timedelta(seconds=row["clock_ahead"])
        if row["held_by"] is not None:
            raise Held(f"{who.id} is held by {row['held_by']}: one worker for a GPU")
        if row["session"] is None:
            check_build(Arena.asked(self._line).build, ours)
        self._session = row["session"]

    def beat(self) -> Duty | None:
        """Say that it lives; None where it has lost its place."""
        row = self._line.ask("SELECT arena_beat(%s) AS duty", (self._session,))
        return Duty(row["duty"]) if row and row["duty"] else None

    def leave(self) -> None:
        self._line.ask("SELECT arena_leave(%s)", (self._session,))


def clock_warning(ahead: timedelta) -> str | None:
    """What to say of a machine's clock."""
    seconds = ahead.total_seconds()
    if abs(seconds) < CLOCK_SECONDS:
        return None
    size = f"{abs(seconds):.0f} s" if abs(seconds) < 7200 else f"{abs(seconds) / 3600:.1f} h"
    side = "ahead of" if seconds > 0 else "behind"
    return f"this machine's clock is {size} {side} the arena's; only the arena's counts"
