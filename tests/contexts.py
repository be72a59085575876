"""How many CUDA contexts a second the driver of this machine creates, one after the other or for
several who ask at once.

    python3 -m tests.contexts SECONDS      one after the other, as a worker has them
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from harness.judge.workers.isolation import Role, confine
from harness.judge.workers.processes import ROOT, environment

COMMAND = (sys.executable, "-m", "tests.contexts")


class Rate(NamedTuple):
    """Contexts that were created and ended."""

    asking: int
    """Processes at a time."""
    a_second: float
    ms: float
    """From when one is asked for until it is there."""


def rate(gpus: Sequence[str], asking: int, seconds: float) -> Rate:
    """So many ask for so long, shared out over the GPUs, each for one context after another."""
    with TemporaryDirectory() as scratch:
        started = [
            subprocess.Popen(
                [*COMMAND, f"{seconds}"],
                env=environment(Role.CUDA, Path(scratch), gpus[number % len(gpus)]),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(asking)
        ]
        said = [process.communicate()[0].split() for process in started]
    found = [(int(count), float(ms)) for count, ms in said]
    made = sum(count for count, _ in found)
    return Rate(asking, made / seconds, sum(count * ms for count, ms in found) / made)


def main(seconds: float) -> None:
    """Beside one context that stays, as the baseline's does: the first on a GPU takes longer."""
    confine(Role.CUDA, Path(os.environ["TMPDIR"]))
    driver = ctypes.CDLL("libcuda.so.1")
    stays = _child(driver, stays=True)
    count, creating = 0, 0.0
    over = time.monotonic() + seconds
    while time.monotonic() < over:
        began = time.monotonic()
        child = _child(driver, stays=False)
        creating += time.monotonic() - began
        os.waitpid(child, 0)
        count += 1
    os.kill(stays, signal.SIGKILL)
    os.waitpid(stays, 0)
    print(count, round(1e3 * creating / count, 1))


def _child(driver: Any, *, stays: bool) -> int:
    """A process that has a context by now."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        has_one = _creates(driver)
        os.write(writing, bytes([has_one]))
        if has_one and stays:
            signal.pause()
        os._exit(0)
    os.close(writing)
    has_one = os.read(reading, 1) == b"\x01"
    os.close(reading)
    if not has_one:
        sys.exit("no context can be created")
    return child


def _creates(driver: Any) -> bool:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    return not (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    )


if __name__ == "__main__":
    main(float(sys.argv[1]))
