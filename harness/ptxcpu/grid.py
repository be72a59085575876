"""Positions of threads, blocks and clusters, and the number of cores of the host."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

Size = tuple[int, int, int]
"""A size or position along x, y and z."""


MULTIPROCESSORS = 132
"""Those of an H100."""

_BLOCKS, _THREADS, _SHARED_BYTES, _RESERVED_BYTES = 2, 2048, 228 << 10, 1 << 10
"""What a multiprocessor of an H100 has room for: threads and shared memory, and blocks that have as
many registers as most. Each block takes a kilobyte more than it asks for."""


def resident_blocks(threads: int, shared_bytes: int) -> int:
    """Return how many blocks can run at the same time, each with so many threads and bytes of
    shared memory."""
    by_memory = _SHARED_BYTES // (shared_bytes + _RESERVED_BYTES)
    return max(1, min(_BLOCKS, _THREADS // threads, by_memory)) * MULTIPROCESSORS


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def position(number: int, sizes: Size) -> Size:
    """Return the position of a thread, block or cluster from its number, x fastest."""
    x, y, _ = sizes
    return number % x, number // x % y, number // x // y


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of a grid, numbered like blocks, x fastest."""

    grid: Size
    cluster: Size

    @property
    def sizes(self) -> Size:
        """The number of clusters along x, y and z."""
        x, y, z = (n // c for n, c in zip(self.grid, self.cluster, strict=True))
        return x, y, z

    @property
    def count(self) -> int:
        return prod(self.sizes)

    def of(self, block: int) -> int:
        """Return the cluster of a block."""
        place = position(block, self.grid)
        return _number([n // c for n, c in zip(place, self.cluster, strict=True)], self.sizes)

    def blocks(self, cluster: int) -> list[int]:
        """Return the blocks of one cluster, by rank."""
        first = [n * c for n, c in zip(position(cluster, self.sizes), self.cluster, strict=True)]
        places = [position(rank, self.cluster) for rank in range(prod(self.cluster))]
        return [
            _number([a + b for a, b in zip(first, place, strict=True)], self.grid)
            for place in places
        ]


def _number(place: Sequence[int], sizes: Size) -> int:
    return place[0] + sizes[0] * (place[1] + sizes[1] * place[2])
