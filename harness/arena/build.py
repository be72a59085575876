"""The version of the judge to the byte: all workers of an arena have the same."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from harness.board.entry import Version

ROOT = Path(__file__).resolve().parent.parent.parent
SUFFIXES = (".py", ".cu", ".h", ".sql")


@dataclass(frozen=True, slots=True)
class Build:
    """A version of the judge. source: the sha256 of its files."""

    judge: str
    cases: int
    source: str

    @classmethod
    def here(cls) -> Self:
        version = Version.current()
        return cls(version.judge, version.cases, _source())

    def __str__(self) -> str:
        return f"judge {self.judge}, cases {self.cases}, source {self.source[:12]}"


def refusal(arena: Build, machine: Build) -> str:
    """Return what to tell a machine that has another version of the judge."""
    return (
        f"the arena grades with {arena}, and this machine with {machine}; check out there what the "
        "arena runs, and start again"
    )


@lru_cache
def _source() -> str:
    """Return the hash of all files that can make a difference, with their names."""
    whole = hashlib.sha256()
    for folder in ("harness", "problem"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                whole.update(f"{path.relative_to(ROOT)} {content}\n".encode())
    return whole.hexdigest()
