"""The edition of the judge: what two results must have in common to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import harness
from harness.protocol.report import Report
from problem.cases import CASES_VERSION


@dataclass(frozen=True, slots=True)
class Edition:
    """The judge's version, and that of its cases."""

    judge: str
    cases: int

    @classmethod
    def current(cls) -> Self:
        """Of the judge that is running."""
        return cls(harness.__version__, CASES_VERSION)

    @classmethod
    def of(cls, report: Report) -> Self:
        return cls(report.environment.judge, report.environment.cases)

    def __str__(self) -> str:
        return f"judge {self.judge}, cases {self.cases}"
