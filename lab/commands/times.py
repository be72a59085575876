"""Measure how long gradings take on this machine's GPU, from start to end.

The first gradings are quick ones with an empty cache, then quick ones with a filled cache, then
full ones.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.files import write_whole
from harness.protocol.report import Report, Stage

HELP = """\
example:
  python3 -m lab times times.md
"""

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"

PAGE = """\
# How long a grading takes on a GPU

`python3 -m lab times` wrote this page on {date}, on an {gpu} with {cores} cores. Each row is
the time of one run of `grade {file}`, and of its stages. The cache is that of the CPU device,
which a full grading needs. The start of the processes comes before the first stage.

| grading | seconds | {stages} |
|---|{dashes}
{rows}
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("page", type=Path)
    parser.add_argument("--file", type=Path, default=SOLUTIONS / "17_split_tail.cu")
    parser.add_argument("--quick", type=int, default=5, help="of each kind")
    parser.add_argument("--full", type=int, default=2)


def graded(file: Path, cache: Path, *more: str) -> tuple[float, Report]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        command = (sys.executable, "-m", "harness", "grade", "--json", str(path), *more, str(file))
        environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        return time.perf_counter() - started, Report.model_validate_json(path.read_bytes())


def row(kind: str, seconds: float, report: Report) -> str:
    by_stage = {each.stage: each.seconds for each in report.stages}
    numbers = (seconds, *(by_stage[stage] for stage in STAGES))
    return f"| {kind} | " + " | ".join(f"{number:.1f}" for number in numbers) + " |"


STAGES = (Stage.COMPILE, Stage.VERIFY, Stage.SANITIZE, Stage.MEASURE)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    """Grade, and write the page after each grading."""
    rows: list[str] = []

    def keep(kind: str, seconds: float, report: Report) -> None:
        rows.append(row(kind, seconds, report))
        terminal.show(rows[-1])
        page = PAGE.format(
            date=datetime.now(UTC).date(),
            gpu=report.device.name if report.device else "unknown GPU",
            cores=os.cpu_count(),
            file=arguments.file.name,
            stages=" | ".join(STAGES),
            dashes="---:|" * (1 + len(STAGES)),
            rows="\n".join(rows),
        )
        write_whole(arguments.page, page)

    with tempfile.TemporaryDirectory() as caches:
        for number in range(arguments.quick):
            keep(
                "quick, empty cache", *graded(arguments.file, Path(caches, str(number)), "--quick")
            )
        for _ in range(arguments.quick):
            keep("quick", *graded(arguments.file, Path(caches, "0"), "--quick"))
        for _ in range(arguments.full):
            keep("full", *graded(arguments.file, Path(caches, "0")))
    return Exit.YES
