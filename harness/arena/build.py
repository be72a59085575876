"""Which judge a worker has, to the byte: workers of one arena must have the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from harness.leaderboard.edition import Edition

ROOT = Path(__file__).resolve().parent.parent.parent
SUFFIXES = (".py", ".cu", ".h", ".sql")


@dataclass(frozen=True, slots=True)
class Build:
    """A judge: its version, that of its cases, and the sha256 of its files."""

    judge: str
    cases: int
    source: str

    @classmethod
    def here(cls) -> Self:
        edition = Edition.current()
        return cls(edition.judge, edition.cases, _source())

    def __str__(self) -> str:
        return f"judge {self.judge}, cases {self.cases}, source {self.source[:12]}"


@lru_cache
def _source() -> str:
    """Of all that can make a difference, each file with its name."""
    whole = hashlib.sha256()
    for folder in ("harness", "problem"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                whole.update(f"{path.relative_to(ROOT)} {content}\n".encode())
    return whole.hexdigest()
