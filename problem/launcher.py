"""How every submission is launched."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from problem.signature import Arguments

BLOCK = (16, 16, 1)
"""Threads in a block: 16 along x (columns of C), 16 along y (rows of C)."""

MAX_TILE = 65_536
MAX_SHARED_MEMORY = 1 << 20
MAX_CLUSTER = 8
"""The most blocks of a cluster that every GPU with clusters can run."""

Size = tuple[int, int, int]
"""A number of things along x, y and z."""

Launchable = Callable[..., None]
"""A compiled kernel, called as CuPy calls one: kernel(grid, block, arguments, shared_mem=bytes)."""


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """The launch line of a submission: `// solve: tile=ROWSxCOLS shared_memory=BYTES`.

    tile_rows, tile_columns: the part of C that one block computes.
    shared_memory: dynamic shared memory of a block, in bytes.
    cluster: blocks of one cluster along x, y and z, as the kernel's own __cluster_dims__ has them.
        It is not part of the line, so comparisons of lines ignore it.
    """

    tile_rows: int = 16
    tile_columns: int = 16
    shared_memory: int = 0
    cluster: Size = field(default=(1, 1, 1), compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, size in (("rows", self.tile_rows), ("columns", self.tile_columns)):
            if not 1 <= size <= MAX_TILE:
                raise ValueError(f"a tile has 1 to {MAX_TILE} {name}, not {size}")
        if not 0 <= self.shared_memory <= MAX_SHARED_MEMORY:
            raise ValueError(
                f"shared_memory is 0 to {MAX_SHARED_MEMORY} bytes, not {self.shared_memory}"
            )
        if min(self.cluster) < 1 or prod(self.cluster) > MAX_CLUSTER:
            raise ValueError(f"a cluster has 1 to {MAX_CLUSTER} blocks, not {self.cluster}")

    @property
    def is_default(self) -> bool:
        return self == LaunchLine()

    def clusters(self, rows: int, columns: int) -> Size:
        """Return the clusters along x, y and z that cover the output."""
        tiles = (-(-columns // self.tile_columns), -(-rows // self.tile_rows), 1)
        x, y, z = (-(-n // c) for n, c in zip(tiles, self.cluster, strict=True))
        return x, y, z

    def grid(self, rows: int, columns: int) -> Size:
        """Return the blocks along x, y and z of whole clusters that cover the output."""
        x, y, z = (n * c for n, c in zip(self.clusters(rows, columns), self.cluster, strict=True))
        return x, y, z

    def blocks_of(self, clusters: Sequence[int], rows: int, columns: int) -> tuple[int, ...]:
        """Return the blocks of some clusters, one cluster after the other. Clusters and blocks are
        numbered x fastest."""
        firsts = np.unravel_index(np.array(clusters, int), self.clusters(rows, columns), order="F")
        ranks = np.unravel_index(np.arange(prod(self.cluster)), self.cluster, order="F")
        places = [
            np.add.outer(first * size, rank)
            for first, size, rank in zip(firsts, self.cluster, ranks, strict=True)
        ]
        blocks = np.ravel_multi_index(places, self.grid(rows, columns), order="F")
        return tuple(blocks.ravel().tolist())


def launch(
    kernel: Launchable, buffers: Sequence[Any], arguments: Arguments, line: LaunchLine
) -> None:
    """Launch in blocks of 16×16 threads. It does not wait for the end of the launch."""
    numbers = map(np.int32, arguments.numbers)
    grid = line.grid(arguments.output.rows, arguments.output.columns)
    kernel(grid, BLOCK, (*buffers, *numbers), shared_mem=line.shared_memory)
