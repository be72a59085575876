"""Hardware counters on record, and whether they are of a kernel's source as it stands."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date

from harness.compiling.source import Source
from harness.protocol.profile import Profile, Recorded, Recording


def recorded(source: Source, launches: Sequence[Profile], on: date) -> Recorded:
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
