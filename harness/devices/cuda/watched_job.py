"""What is handed to the program that compute-sanitizer and ncu watch, in a folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.protocol.compiler import Kernel
from harness.protocol.device import LaunchInputs
from harness.report import Value
from problem.cases import Shape


class Job(Value):
    """What to launch: the kernel, and shapes whose inputs lie in the job's folder."""

    kernel: Kernel
    shapes: tuple[Shape, ...]


JOB, PLACEMENTS, FAULT = "job.json", "placements.jsonl", "fault.json"


def file(folder: Path, name: str, launch: int) -> Path:
    """Where a matrix of a launch lies."""
    return folder / f"{name}{launch}.npy"


def write_job(kernel: Kernel, launches: Sequence[LaunchInputs], folder: Path) -> None:
    """Leave in a folder what the program is to launch."""
    job = Job(kernel=kernel, shapes=tuple(launch.shape for launch in launches))
    (folder / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    for number, launch in enumerate(launches):
        np.save(file(folder, "A", number), launch.A)
        np.save(file(folder, "B", number), launch.B)


def command(folder: Path, results: Path) -> tuple[str, ...]:
    """Runs the program on a job; it leaves every A, B and C in another folder."""
    return (
        sys.executable,
        "-m",
        "harness.devices.cuda.watched_launches",
        str(folder),
        str(results),
    )
