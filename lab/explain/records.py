"""Hardware counters on record, and whether they are of a kernel's source as it stands."""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from pydantic import PositiveInt

from harness.compiling.source import Source
from harness.protocol.profile import Profile
from harness.protocol.report import Sha256, Value


class Recorded(Value):
    """Launches of one kernel, whose lines are those of the file as it was then."""

    code_sha256: Sha256
    code_lines: tuple[PositiveInt, ...]
    """The lines that held code: a comment that moves them later does no harm."""
    date: datetime.date
    launches: tuple[Profile, ...]


class Recording(Value):
    """Launches of several kernels on one GPU, each of them at one or more sizes."""

    schema_version: Literal[2] = 2
    gpu: str
    kernels: dict[str, Recorded]
    """By name."""


def recorded(source: Source, launches: Sequence[Profile], on: datetime.date) -> Recorded:
    return Recorded(
        code_sha256=source.code_sha256,
        code_lines=source.code_lines,
        date=on,
        launches=tuple(launches),
    )


def of_source(record: Recorded, source: Source) -> tuple[Profile, ...] | None:
    """The launches, by the lines of this source; None where they were another code's."""
    if record.code_sha256 != source.code_sha256 or len(record.code_lines) != len(source.code_lines):
        return None
    return tuple(_moved(launch, record.code_lines, source.code_lines) for launch in record.launches)


def _moved(profile: Profile, then: Sequence[int], now: Sequence[int]) -> Profile:
    def moved(line: int) -> int:
        index = max(bisect_right(then, line) - 1, 0)
        return now[index] + line - then[index]

    lines = (line.model_copy(update={"line": moved(line.line)}) for line in profile.lines)
    return profile.model_copy(update={"lines": tuple(lines)})


def added(old: Recording | None, new: Recording) -> Recording:
    """Both, the newer record of a kernel in place of the older. Raises ValueError where they are
    of two GPUs."""
    if old is None:
        return new
    if old.gpu != new.gpu:
        raise ValueError(f"one is of an {old.gpu}, the other of an {new.gpu}")
    kernels = dict(sorted((old.kernels | new.kernels).items()))
    return new.model_copy(update={"kernels": kernels})
