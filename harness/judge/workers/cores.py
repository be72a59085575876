"""Which processor cores measure, and which do everything else meanwhile.

Where a machine has enough of them, the processes of a measurement have cores to themselves, so that
compiling and checking the next submission beside it takes nothing from it. Each GPU has its own
share of both: a process whose threads are on all cores of a machine interrupts all of them whenever
it gives memory back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MEASURING = 2
"""Of the three processes of a measurement one works at a time, and the driver beside it."""


class Cores(NamedTuple):
    """Of one GPU."""

    measuring: frozenset[int]
    helping: frozenset[int]


def shared_out(gpus: int, cores: Collection[int] | None = None) -> list[Cores] | None:
    """Cores for each GPU; None where there are too few for something else to go on beside a
    measurement. cores: by default all that this process may use."""
    if cores is None:
        if sys.platform != "linux":
            return None
        cores = os.sched_getaffinity(0)
    if len(cores) < 2 * MEASURING * gpus:
        return None
    ordered = sorted(cores)
    shares = [
        ordered[len(ordered) * gpu // gpus : len(ordered) * (gpu + 1) // gpus]
        for gpu in range(gpus)
    ]
    return [Cores(frozenset(own[:MEASURING]), frozenset(own[MEASURING:])) for own in shares]


def keep_to(process: int, cores: frozenset[int]) -> None:
    """Hold a process to these cores, with all threads that it has and will have."""
    if sys.platform == "linux":
        for thread in Path(f"/proc/{process}/task").glob("*"):
            with suppress(OSError):  # it has just ended
                os.sched_setaffinity(int(thread.name), cores)
