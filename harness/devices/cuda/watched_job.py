"""The job of the program that compute-sanitizer watches, in a folder that it waits for."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.protocol.compiler import Kernel
from harness.protocol.device import LaunchInputs
from harness.protocol.files import write_whole
from harness.protocol.report import Value
from problem.signature import Arguments


class Job(Value):
    """The kernel to launch, and the arguments of launches whose inputs are in the job's folder."""

    kernel: Kernel
    launches: tuple[Arguments, ...]


JOB, PLACEMENTS, FAULT = "job.json", "placements.jsonl", "fault.json"

_GIVEN = "job.txt"
_LOOKING_SECONDS = 0.005


def file(folder: Path, name: str, launch: int) -> Path:
    """Return where a buffer of a launch is stored."""
    return folder / f"{name}{launch}.npy"


def write_job(kernel: Kernel, launches: Sequence[LaunchInputs], folder: Path) -> None:
    """Write what the program is to launch into a folder."""
    job = Job(kernel=kernel, launches=tuple(launch.arguments for launch in launches))
    (folder / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    for number, launch in enumerate(launches):
        for buffer, matrix in zip(launch.arguments.inputs, launch.matrices, strict=True):
            np.save(file(folder, buffer.name, number), matrix)


def command(results: Path) -> tuple[str, ...]:
    """Return the command of the program, which waits for a job and stores every buffer."""
    module = "harness.devices.cuda.watched_launches"
    return (sys.executable, "-m", module, str(results), str(os.getpid()))


def give_job(folder: Path, results: Path) -> None:
    write_whole(results / _GIVEN, str(folder))


def wait_for_job(results: Path, process: int) -> Path | None:
    """Wait for the job's folder; None if the process that would give it has ended."""
    given = results / _GIVEN
    while not given.is_file():
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return None
        time.sleep(_LOOKING_SECONDS)
    return Path(given.read_text(encoding="utf-8"))
