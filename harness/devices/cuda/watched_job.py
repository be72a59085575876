"""What the program that compute-sanitizer and ncu watch is handed, in a folder, once it waits."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from harness.protocol.compiler import Kernel
from harness.protocol.device import LaunchInputs
from harness.protocol.files import write_whole
from harness.protocol.report import Value
from problem.cases import Shape


class Job(Value):
    """What to launch: the kernel, and shapes whose inputs lie in the job's folder."""

    kernel: Kernel
    shapes: tuple[Shape, ...]


JOB, PLACEMENTS, FAULT = "job.json", "placements.jsonl", "fault.json"

_GIVEN = "job.txt"
_MAY_OPEN, _OPEN = "may-open", "open"
_LOOKING_SECONDS = 0.005


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


def command(results: Path) -> tuple[str, ...]:
    """Runs the program, which waits for a job and leaves every A, B and C in a folder."""
    module = "harness.devices.cuda.watched_launches"
    return (sys.executable, "-m", module, str(results), str(os.getpid()))


def give_job(folder: Path, results: Path) -> None:
    """Let the program that leaves its results there begin."""
    write_whole(results / _GIVEN, str(folder))


def let_open(results: Path) -> None:
    """Let the program that leaves its results there create its context before it has a job."""
    (results / _MAY_OPEN).touch()


def is_open(results: Path) -> bool:
    return (results / _OPEN).is_file()


def given_job(results: Path, process: int, create_context: Callable[[], None]) -> Path | None:
    """Wait for the job's folder; None where the process that it comes from has ended."""
    given = results / _GIVEN
    while not given.is_file():
        if (results / _MAY_OPEN).is_file() and not is_open(results):
            create_context()
            (results / _OPEN).touch()
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return None
        time.sleep(_LOOKING_SECONDS)
    return Path(given.read_text(encoding="utf-8"))
