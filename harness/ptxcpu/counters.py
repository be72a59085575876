"""Counters of a GPU's memory system: sectors, wavefronts, instructions, divergence."""

from __future__ import annotations

import ctypes
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.arguments import Buffer, window_of_buffer, zeros
from harness.ptxcpu.execution.build import Loaded
from harness.ptxcpu.execution.launch import Instruments
from harness.ptxcpu.grid import Clusters, Size
from harness.ptxcpu.ptx.effects import written_by
from harness.ptxcpu.ptx.syntax import Address, Instruction, Label, Register
from harness.ptxcpu.results import Counters, LineCounters
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.runtime.layout import Counts

SECTOR = 32  # bytes

Code = Mapping[int, Iterable[str]]
"""The machine instructions of each source line, by opcode."""


def choose_blocks(grid: Size, cluster: Size, most: int) -> tuple[int, ...]:
    """Return at most this many blocks, but at least one cluster, spread evenly over the grid."""
    clusters = Clusters(grid, cluster)
    count = max(1, most // prod(cluster))
    if clusters.count <= count:
        return tuple(range(prod(grid)))
    chosen = np.unique(np.linspace(0, clusters.count - 1, count).astype(np.int64))
    return tuple(block for number in chosen for block in clusters.blocks(int(number)))


@dataclass(frozen=True)
class Counting:
    """The counters of a launch, as they are counted."""

    kernel: InlinedKernel
    runs: tuple[Run, ...]
    instruments: Instruments

    @staticmethod
    def of(loaded: Loaded, buffers: Sequence[Buffer]) -> Counting:
        """Return empty counters for one launch."""
        kernel, blocks = loaded.kernel, loaded.kernel.cluster_blocks
        runs = runs_of_loads(kernel)
        first = [index for run in runs for offset, index in run if offset % 8 == 0]
        size, lanes = len(kernel.body) + 1, -(-loaded.threads // layout.LANES) * layout.LANES
        memory = {
            "rows": zeros(8 * len(layout.COUNT) * size),
            "place": zeros(4 * size),
            "wider": zeros(8 * len(layout.COUNT) * max(1, 2 * len(first))),
            "trace": zeros(layout.TRACED_BYTES * layout.TRACE * blocks * lanes),
            "traced": zeros(4 * blocks * loaded.threads),
            "to": zeros(8 * layout.LANES),
            "recent": zeros(8 * layout.RECENT * blocks * lanes // layout.LANES),
            "touched": zeros(8 * layout.WINDOWS),
        }
        touched = [zeros(4 * blocks * -(-buffer.data.nbytes // SECTOR)) for buffer in buffers]
        for index, last_touched in enumerate(touched):
            memory["touched"].view(np.int64)[window_of_buffer(index)] = last_touched.ctypes.data
        place = memory["place"].view(np.int32)
        place[:] = -1
        place[first] = range(len(first))
        counts = Counts(**{name: array.ctypes.data for name, array in memory.items()})
        keep = [counts, *touched]
        used = Instruments(counts=ctypes.addressof(counts), keep=keep, arrays=memory)
        return Counting(kernel, runs, used)

    def rows(self, code: Code) -> list[Row]:
        """Return the counts of each instruction, as in the machine code."""
        arrays = self.instruments.arrays
        rows, wider = (
            arrays[name].view(np.int64).reshape(-1, len(layout.COUNT)).tolist()
            for name in ("rows", "wider")
        )
        place = arrays["place"].view(np.int32)
        for index, words in merged_loads(self.kernel, self.runs, code).items():
            used = wider[2 * place[index] + words // 4] if words else [0] * len(layout.COUNT)
            for column in _SHARED_COLUMNS:
                rows[index][column] = used[column]
        return rows


Row = list[int]
"""One number for each name in layout.COUNT."""

_SHARED_COLUMNS = tuple(
    [*layout.COUNT].index(name) for name in ("shared_requests", "wavefronts", "min_wavefronts")
)

Run = tuple[tuple[int, int], ...]
"""Shared-memory loads of 32 bits in one basic block with one base register: the offset and the
index of each, in the order of the offsets."""


def runs_of_loads(kernel: InlinedKernel) -> tuple[Run, ...]:
    """Return the loads that ptxas may merge.

    ptxas merges loads of four or two neighbouring, aligned words with one base register within a
    basic block. A store or a barrier between them prevents that (as in the machine code of
    ptxas 13.0).
    """
    found: list[Run] = []
    runs: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def close() -> None:
        found.extend(tuple(sorted(loads)) for loads in runs.values())
        runs.clear()

    for index, item in enumerate(kernel.body):
        if isinstance(item, Label) or item.opcode.split(".")[0] in ("bra", "bar", "st", "ret"):
            close()
        elif item.opcode in ("ld.shared.f32", "ld.shared.u32", "ld.shared.b32"):
            address = item.operands[1]
            assert isinstance(address, Address)
            if isinstance(address.base, Register):
                runs[address.base.name].append((address.offset, index))
        elif any(name in runs for name in written_by(item)):
            close()
    close()
    return tuple(found)


def merged_loads(kernel: InlinedKernel, runs: Iterable[Run], code: Code) -> dict[int, int]:
    """Return the words per lane of the loads that ptxas merges from several ones. A load that is
    merged into another one has 0.

    ptxas knows whether the base is aligned, and this function does not. So where the machine code
    of a line is known, only loads that ptxas merged are merged.
    """
    widest, unknown = _widest_loads(code), 0 if code else 4
    merged: dict[int, int] = {}
    for loads in runs:
        at = 0
        while at < len(loads):
            start, first = loads[at]
            most = widest.get(_line(kernel, first), unknown)
            for words in (4, 2):
                run = loads[at : at + words]
                neighbours = [offset for offset, _ in run] == [start + 4 * i for i in range(words)]
                if neighbours and words <= most and start % (4 * words) == 0:
                    merged[first] = words
                    merged |= {index: 0 for _, index in run[1:]}
                    at += words
                    break
            else:
                at += 1
    return merged


def _widest_loads(code: Code) -> dict[int, int]:
    """Return the widest load of a lane from shared memory in words, by source line."""
    loads = {line: [x for x in opcodes if x.startswith("LDS")] for line, opcodes in code.items()}
    return {
        line: max(4 if ".128" in x else 2 if ".64" in x else 1 for x in found)
        for line, found in loads.items()
        if found
    }


def _line(kernel: InlinedKernel, index: int) -> int:
    item = kernel.instruction(index)
    return item.line if item else 0


def read(counting: Counting, grid: Size, counted: int, code: Code) -> Counters:
    """Return the counts of this many blocks of the grid. code: empty if the machine code is not
    known."""
    kernel, rows = counting.kernel, counting.rows(code)
    total: Counter[str] = Counter()
    lines: dict[int, Counter[str]] = defaultdict(Counter)
    for index, values in enumerate(rows):
        if not any(values):
            continue
        item = kernel.instruction(index)
        row = dict(zip(layout.COUNT, values, strict=True))
        total["divergent_branches"] += row["divergent"]
        if item is None:
            continue
        for space, unit in (("global", "sectors"), ("shared", "wavefronts")):
            way = _direction(item, space)
            requests, units = row[f"{space}_requests"], row[unit]
            total[f"{space}_{way}_requests"] += requests
            total[f"{space}_{way}_{unit}"] += units
            lines[item.line][f"{space}_requests"] += requests
            lines[item.line][f"{space}_{unit}"] += units
            lines[item.line][f"{space}_min_{unit}"] += row[f"min_{unit}"]
        lines[item.line]["global_first_sectors"] += row["first_sectors"]
        lines[item.line]["global_new_sectors"] += row["new_sectors"]
        lines[item.line]["global_passes"] += row["global_passes"]
        if item.opcode.startswith("cp.async"):
            lines[item.line]["copy_passes"] += row["global_passes"]
        total["bank_conflicts"] += row["wavefronts"] - row["min_wavefronts"]
    executed: Counter[str] = Counter()
    for item, threads, warps in _executed(kernel, rows):
        executed[item.opcode] += threads
        lines[item.line]["instructions"] += threads
        lines[item.line]["warp_instructions"] += warps
        total["warp_instructions"] += warps
    return Counters(
        counted_blocks=counted,
        blocks=prod(grid),
        instructions=dict((+executed).most_common()),
        lines=tuple(
            LineCounters(line=number, **counts)
            for number, counts in sorted(lines.items())
            if number > 0
        ),
        **{name: total[name] for name in _TOTALS},
    )


_TOTALS = (
    *(f"global_{way}_{what}" for way in ("load", "store") for what in ("requests", "sectors")),
    *(f"shared_{way}_{what}" for way in ("load", "store") for what in ("requests", "wavefronts")),
    *("bank_conflicts", "divergent_branches", "warp_instructions"),
)
"""The counters that are sums over all instructions."""


def _direction(item: Instruction, space: str) -> str:
    """cp.async loads from global and stores to shared memory."""
    if item.opcode.startswith("cp.async"):
        return "load" if space == "global" else "store"
    return "store" if item.opcode.startswith(("st", "red")) else "load"


def _executed(kernel: InlinedKernel, rows: list[Row]) -> Iterator[tuple[Instruction, int, int]]:
    """Return how many threads and warps executed each instruction: those that reached the beginning
    of its basic block."""
    columns = [list(layout.COUNT).index(name) for name in ("threads", "warps")]

    def begun(index: int) -> tuple[int, int]:
        threads, warps = (rows[index][column] for column in columns)
        return threads, warps

    reached = begun(0) if rows else (0, 0)
    for index, item in enumerate(kernel.body):
        if isinstance(item, Label):
            reached = begun(index)
            continue
        yield item, *reached
        if item.opcode.startswith("bra"):
            reached = begun(index) if item.guard is not None else (0, 0)
