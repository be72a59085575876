"""The version of a judge: results of two versions are not compared."""

from __future__ import annotations

from typing import NamedTuple, Self

import harness
from problem.cases import CASES_VERSION


class Version(NamedTuple):
    """The version of the program, and that of the cases that it tries."""

    judge: str
    cases: int

    @classmethod
    def current(cls) -> Self:
        """Return the version of the judge that is running."""
        return cls(harness.__version__, CASES_VERSION)

    @property
    def age(self) -> tuple[int, tuple[tuple[int, str], ...]]:
        """Return a key by which later versions sort after earlier ones."""
        parts = tuple(
            (int(part), "") if part.isascii() and part.isdecimal() else (0, part)
            for part in self.judge.split(".")
        )
        return self.cases, parts

    def __str__(self) -> str:
        return f"judge {self.judge}, cases {self.cases}"
