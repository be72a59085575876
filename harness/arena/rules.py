"""The rules of a contest: one file, which the organiser writes and the arena reads again."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import (
    AwareDatetime,
    Field,
    PositiveInt,
    ValidationError,
    model_validator,
)

from harness.protocol.report import Value


class Sources(StrEnum):
    """Who may read what others have written; their reports go with it."""

    PRIVATE = "private"
    AFTER_END = "after-end"
    OPEN = "open"


class Limits(Value):
    """What one person may ask for; more is answered with the time to come back."""

    in_flight: PositiveInt = 5
    """Submissions that wait or are graded."""
    per_day: PositiveInt = 200
    """Submissions within 24 hours."""
    device_seconds_per_day: PositiveInt = 3600
    """Seconds of grading within 24 hours."""
    per_address_per_minute: PositiveInt = 6000
    """Requests from one address, behind which may be a whole class."""
    per_person_per_minute: PositiveInt = 300
    """Requests with one key or session."""


class OpenId(Value):
    """A provider that vouches for people."""

    issuer: str = Field(pattern=r"^https?://")
    client_id: str
    client_secret: str
    title: str = "your account"


class Rules(Value):
    """What the file may say. Times are written with their zone: 2026-11-21T18:00:00Z."""

    title: str = "matmul-arena"
    begins: AwareDatetime | None = None
    ends: AwareDatetime | None = None
    frozen_from: AwareDatetime | None = None
    """From then until the end the board shows contestants only what was handed in before."""
    sources: Sources = Sources.PRIVATE
    quick: bool = False
    """Grade by a sample of the cases: verdicts within seconds, nothing ranked."""
    gpu: str | None = Field(default=None, min_length=1)
    """The model on which everything is graded; if left out, on whichever is free."""
    limits: Limits = Limits()
    openid: OpenId | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        moments = [
            moment for moment in (self.begins, self.frozen_from, self.ends) if moment is not None
        ]
        if moments != sorted(moments):
            raise ValueError("begins, frozen_from and ends must be in this order")
        return self

    def closed(self, now: datetime) -> str | None:
        """Why nothing is taken now; None where it is."""
        if self.begins is not None and now < self.begins:
            return f"the contest begins at {_minute(self.begins)}"
        if self.ends is not None and now >= self.ends:
            return f"the contest ended at {_minute(self.ends)}"
        return None

    def frozen(self, now: datetime) -> bool:
        return (
            self.frozen_from is not None
            and now >= self.frozen_from
            and (self.ends is None or now < self.ends)
        )

    def sources_open(self, now: datetime) -> bool:
        if self.sources is Sources.AFTER_END:
            return self.ends is not None and now >= self.ends
        return self.sources is Sources.OPEN


_OBSOLETE = frozenset({"leagues", "playoff_places"})
"""Rules that earlier versions had: a file with them is still valid."""


class RulesError(Exception):
    """The rules cannot be read; says where and why."""


def read(path: Path) -> Rules:
    """The file's rules, or the usual ones where there is none. Raises RulesError."""
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
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RulesError(f"{path}: {f'{place}: ' if place else ''}{first['msg']}.") from None


class RulesFile:
    """Rules that are read again when their file has changed."""

    def __init__(self, path: Path) -> None:
        """Raises RulesError."""
        self.path = path
        self._stamp = self._look()
        self._rules = read(path)
        self.problem: str | None = None
        """Why the file as it stands now is not in force; the rules before it are."""

    @property
    def now(self) -> Rules:
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._rules, self.problem = read(self.path), None
            except RulesError as error:
                self.problem = str(error)
        return self._rules

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
