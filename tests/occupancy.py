"""What GPUs are held for, looked at from outside: the tickets in the folders of their locks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from harness.judge.workers.gpu_lock import Use, tickets_of

LOOK_SECONDS = 0.02


class Held(NamedTuple):
    """Shares of the time from when a GPU is first held to when it is last, the mean of all GPUs."""

    measuring: float
    checking: float
    idle: float


class Occupancy:
    """Looks often, and remembers what each GPU was held for."""

    def __init__(self, gpus: Sequence[str]) -> None:
        self._uses: dict[str, list[Use | None]] = {gpu: [] for gpu in gpus}

    def look(self) -> None:
        for gpu, uses in self._uses.items():
            uses.append(held_for(gpu))

    @property
    def held(self) -> Held | None:
        """None where no GPU was."""
        shares = [_shares(uses) for uses in self._uses.values() if any(uses)]
        if not shares:
            return None
        return Held(*(sum(parts) / len(shares) for parts in zip(*shares, strict=True)))


def held_for(gpu: str) -> Use | None:
    """By who came first of those that are there; None where nobody is."""
    folder = tickets_of(gpu)
    tickets = [path.name.partition("-") for path in folder.glob("[0-9]*-*")]
    return Use(min((int(number), use) for number, _, use in tickets)[1]) if tickets else None


def _shares(uses: Sequence[Use | None]) -> Held:
    times = [number for number, use in enumerate(uses) if use is not None]
    count = Counter(uses[times[0] : times[-1] + 1])
    return Held(*(count[use] / count.total() for use in (Use.ALONE, Use.SHARED, None)))


@contextmanager
def watched(gpus: Sequence[str]) -> Iterator[Occupancy]:
    """Inside, somebody looks."""
    occupancy, over = Occupancy(gpus), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            occupancy.look()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield occupancy
    finally:
        over.set()
        thread.join()
