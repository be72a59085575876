"""The rules of a contest: a file of the organiser, which is read again when it changes."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AwareDatetime,
    Field,
    NonNegativeFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from harness.arena.store.people import Person
from harness.judge import figures
from harness.protocol.errors import UsageError, first_mistake
from harness.protocol.report import Value


class Sources(StrEnum):
    """The people who may read others' sources and reports."""

    PRIVATE = "private"
    AFTER_END = "after-end"
    OPEN = "open"


class Limits(Value):
    """Limits of a person and of an address. A refusal says when to come back."""

    in_flight: PositiveInt = 5
    """Submissions that wait or are graded."""
    per_day: PositiveInt = 200
    """Submissions within 24 hours."""
    device_seconds_per_day: PositiveInt = 3600
    """Seconds of grading within 24 hours."""
    per_address_per_minute: PositiveInt = 6000
    """Requests from one address, which a whole class may share."""
    per_person_per_minute: PositiveInt = 300
    """Requests with one key or session."""


class OpenId(Value):
    """A provider that vouches for people."""

    issuer: str = Field(pattern=r"^https?://")
    client_id: str
    client_secret: str
    title: str = "your account"
    require: dict[str, str] = Field(default_factory=dict)
    """Claims that a person must have in order to sign in, with their values."""
    login: str = "email"
    """The claim that is the login of the course's roster."""
    section: str | None = None
    """The claim that names a person's section, where the roster does not."""


FIRST, LAST = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 9000))
"""The range of dates. Years after 9999, which other zones and late days lead to, are errors in
Python."""

Moment = Annotated[AwareDatetime, Field(ge=FIRST, le=LAST)]


class Late(Value):
    """The rule for submissions after the deadline."""

    days: float = Field(default=0, ge=0, le=3650)
    """The number of days for which submissions are still accepted."""
    factor: float = Field(default=1, ge=0, le=1)
    """The points of a late submission are multiplied by this."""


class Threshold(Value):
    """A score, and the points that it is worth."""

    score: NonNegativeFloat
    points: float


class Rules(Value):
    """The rules of a contest. Times are written with their zone: 2026-11-21T18:00:00Z."""

    title: str = "matmul-arena"
    begins: Moment | None = None
    ends: Moment | None = None
    deadlines: dict[str, Moment] = Field(default_factory=dict)
    """The deadlines of sections of the course that end at another time."""
    late: Late = Late()
    frozen_from: Moment | None = None
    """The time from which the board shows contestants only earlier submissions."""
    thawed: bool = False
    """Whether the organiser has ended the freeze."""
    private_board: bool = False
    """Only those who have signed in see the boards."""
    pseudonyms: bool = False
    """Others know a contestant by a pseudonym that the arena gives; organisers see the names."""
    failures: bool = False
    """Everybody sees others' submissions that were not accepted in the list of all runs."""
    sources: Sources = Sources.PRIVATE
    quick: bool = False
    """Grade by a sample of the cases: verdicts within seconds, nothing ranked."""
    gpu: str | None = Field(default=None, min_length=1)
    """The model on which everything is graded; if left out, on any that is free."""
    points: tuple[Threshold, ...] = ()
    """The points for scores in the gradebook: the last threshold that a score reaches counts."""
    limits: Limits = Limits()
    openid: OpenId | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        moments = [
            moment for moment in (self.begins, self.frozen_from, self.ends) if moment is not None
        ]
        if moments != sorted(moments):
            raise ValueError("begins, frozen_from and ends must be in this order")
        scores = [each.score for each in self.points]
        if scores != sorted(scores):
            raise ValueError("the scores of points must rise")
        return self

    def deadline(self, person: Person | None = None) -> datetime | None:
        """Return when a person's time is over: their own extension, their section's, or the end."""
        if person is None:
            return self.ends
        own = self.deadlines.get(person.section or "", self.ends)
        return max(own, person.extended) if own and person.extended else own

    def closed(self, now: datetime, person: Person | None = None) -> str | None:
        """Return why no submission of a person is accepted now; None where one is."""
        if self.begins is not None and now < self.begins:
            return f"the contest begins at {figures.minute(self.begins)}"
        deadline = self.deadline(person)
        if deadline is not None and now >= deadline + timedelta(days=self.late.days):
            return f"the contest ended at {figures.minute(deadline)}"
        return None

    def is_late(self, at: datetime, person: Person) -> bool:
        deadline = self.deadline(person)
        return deadline is not None and at >= deadline

    def points_for(self, score: float | None, late: bool) -> float:
        """Return the points of the last threshold that a score reaches, reduced if it is late."""
        reached = [each.points for each in self.points if score is not None and score >= each.score]
        return (reached[-1] if reached else 0.0) * (self.late.factor if late else 1.0)

    def frozen(self, now: datetime) -> bool:
        """Return whether contestants see the board as it was, which they do until it is thawed."""
        return self.frozen_from is not None and now >= self.frozen_from and not self.thawed

    def sources_open(self, now: datetime) -> bool:
        if self.sources is Sources.AFTER_END:
            return self.ends is not None and now >= max((self.ends, *self.deadlines.values()))
        return self.sources is Sources.OPEN


THAWED = "thawed"
"""The file next to the rules that says which freeze the organiser has ended."""

_OBSOLETE = frozenset({"leagues", "playoff_places", "estimates"})
"""Rules that earlier versions had: a file with them is still valid."""


class RulesError(UsageError):
    """The rules cannot be read; says where and why."""


def read(path: Path) -> Rules:
    """Return the file's rules, or the defaults without a file. Raises RulesError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Rules()
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(f"{path} cannot be read: {error}.") from None
    try:
        written = tomllib.loads(text)
        return Rules.model_validate(
            {name: value for name, value in written.items() if name not in _OBSOLETE}
        )
    except tomllib.TOMLDecodeError as error:
        raise RulesError(f"{path} is no TOML: {error}.") from None
    except ValidationError as error:
        raise RulesError(f"{path}: {first_mistake(error)}.") from None


class RulesFile:
    """Rules that are read again when their file has changed."""

    def __init__(self, path: Path) -> None:
        """Raises RulesError."""
        self.path = path
        self.stamp = self._look()
        """A value that changes whenever the rules may have changed."""
        self._rules = self._read()
        self.problem: str | None = None
        """The mistake for which the file is not in force, and the previous rules still are."""

    @property
    def now(self) -> Rules:
        stamp = self._look()
        if stamp != self.stamp:
            self.stamp = stamp
            try:
                self._rules, self.problem = self._read(), None
            except RulesError as error:
                self.problem = str(error)
        return self._rules

    def thaw(self) -> None:
        """End the freeze that the file has now, and no later one."""
        self._thawed.write_text(str(self.now.frozen_from), encoding="utf-8")

    @property
    def _thawed(self) -> Path:
        return self.path.with_name(THAWED)

    def _read(self) -> Rules:
        rules = read(self.path)
        try:
            thawed = self._thawed.read_text(encoding="utf-8") == str(rules.frozen_from)
        except OSError:
            thawed = False
        return rules.model_copy(update={"thawed": rules.thawed or thawed})

    def _look(self) -> tuple[int, ...]:
        stamp: tuple[int, ...] = ()
        for path in (self.path, self._thawed):
            try:
                found = path.stat()
            except OSError:
                stamp += (0, 0)
            else:
                stamp += (found.st_mtime_ns, found.st_size)
        return stamp
