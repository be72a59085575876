"""Measures how long explanations take without a GPU: python3 -m tests.judge.explain.times TABLE.md

Names behind it are the only solutions that are explained; the table's other rows are kept.
Each in processes of its own, with the CPU device's runtime in the cache and the kernel not. On a
machine that others use, too, the processor's time says more than the clock's.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime
from pathlib import Path

from harness.devices.cpu.device import CpuDevice
from harness.protocol.files import cache_directory, write_whole
from problem.cases import RANKED
from tests.judge.explain.ladder import SOLUTIONS

_HEAD = """\
# How long an explanation takes without a GPU

Written by `python3 -m tests.judge.explain.times` on {date}, on a machine with {cores} cores that
others used, too ({wanted} wanted them in the mean). The processor's seconds are those of all
processes together, of which the compiler and the CPU device work at the same time where they can;
nothing was in the cache but the CPU device's runtime. Each kernel is compiled, translated, held to
some twenty cases, sanitized, counted, and explained for {shape}.

| kernel | processor, s | clock, s |
|---|---:|---:|
"""


def head(day: date, cores: int, processes: int) -> str:
    """processes: that wanted those cores, this one's among them."""
    wanted = "1 process" if processes == 1 else f"{processes} processes"
    return _HEAD.format(date=day, cores=cores, wanted=wanted, shape=RANKED.shape)


def processor() -> float:
    """Seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(table: Path, names: list[str]) -> None:
    rows, loads = _rows(table) if names else {}, []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        CpuDevice(cache_directory())
        for path in sorted(SOLUTIONS.glob("*.cu")):
            if names and path.stem not in names:
                continue
            used, started = processor(), time.perf_counter()
            command = (sys.executable, "-m", "harness", "explain", "--device", "cpu", str(path))
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            elapsed = time.perf_counter() - started
            rows[path.stem] = f"| {path.stem} | {processor() - used:.1f} | {elapsed:.1f} |"
            loads.append(os.getloadavg()[0])
            today, load = datetime.now(UTC).date(), sum(loads) / len(loads)
            text = head(today, os.cpu_count() or 1, round(load))
            write_whole(table, text + "\n".join(rows[name] for name in sorted(rows)) + "\n")


def _rows(table: Path) -> dict[str, str]:
    """By the kernel's name."""
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    return {line.split()[1]: line for line in lines if re.match(r"\| \d\d_", line)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("names", nargs="*", help="of solutions, such as 17_split_tail")
    options = parser.parse_args()
    main(options.table, options.names)
