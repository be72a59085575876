"""The assignment of processor cores: some are for measurements, the others for all other work.

If a machine has enough cores, the processes of a measurement have cores of their own. So compiling
and checking the next submission does not disturb it. Each GPU has its own share of both: a process
with threads on all cores interrupts all of them when it returns memory.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MEASURING = 2
"""The cores of a measurement: one for the process that is working, of three, and one for the
driver."""


class Cores(NamedTuple):
    measuring: frozenset[int]
    helping: frozenset[int]


def shared_out(gpus: int, cores: Collection[int] | None = None) -> list[Cores] | None:
    """Return the cores of each GPU, or None if there are too few for other work during a
    measurement.
    cores: by default all that this process may use."""
    cores = os.sched_getaffinity(0) if cores is None else cores
    if len(cores) < 2 * MEASURING * gpus:
        return None
    ordered = sorted(cores)
    shares = [
        ordered[len(ordered) * gpu // gpus : len(ordered) * (gpu + 1) // gpus]
        for gpu in range(gpus)
    ]
    return [Cores(frozenset(own[:MEASURING]), frozenset(own[MEASURING:])) for own in shares]


def set_affinity(process: int, cores: frozenset[int]) -> None:
    """Restrict a process to these cores, with all threads that it has and will have."""
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with suppress(OSError):  # the thread has just ended
            os.sched_setaffinity(int(thread.name), cores)


def set_session_niceness(process: int) -> None:
    """Give a session the niceness of this process. process: its leader.

    Linux weighs sessions against each other, and the niceness of processes within one only
    (autogroup in sched(7)).
    """
    if os.getsid(process) == process:
        with suppress(OSError):  # this Linux has no such groups
            niceness = os.getpriority(os.PRIO_PROCESS, 0)
            Path(f"/proc/{process}/autogroup").write_text(str(niceness))
