"""PTX to machine code, by the ptxas of NVRTC's release, and the resources that it reports.

Machine code does not tell how much is spilled, but ptxas --verbose does.
"""

import functools
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cuda import pathfinder

from harness.protocol.report import Resources
from harness.ptxcpu import nvrtc
from problem.launcher import LaunchLine

Result = TypeVar("Result")


def assemble(ptx: str, arch: str, work: Callable[[], Result]) -> tuple[bytes, str, Result]:
    """Return machine code for one architecture, with the lines of the source; the log; and the
    result of other work that is done while ptxas is busy. There is no machine code if ptxas refused
    the program."""
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "kernel.ptx", Path(scratch) / "kernel.cubin"
        source.write_text(ptx, encoding="ascii")
        options = (f"--gpu-name={arch}", "--generate-line-info", "--verbose")
        with subprocess.Popen(
            [program(), *options, f"--output-file={target.name}", source.name],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as done:
            result = work()
            log = done.communicate()[0].decode(errors="replace")
        if done.returncode < 0:
            ended = signal.Signals(-done.returncode)
            if ended not in _CRASHES:
                raise RuntimeError(f"ptxas was ended by {ended.name}: {log[-500:]}")
            log += f"ptxas crashed on this program ({ended.name})\n"
        machine_code = target.read_bytes() if done.returncode == 0 else b""
        return machine_code, log, result


_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
"""Signals of a crash, which counts as the program's fault."""


@functools.cache
def program() -> str:
    """Return the path of ptxas. Raises RuntimeError where none of NVRTC's release is found: another
    would make other machine code."""
    path = pathfinder.find_nvidia_binary_utility("ptxas")
    wanted = nvrtc.version()
    if path is None:
        raise RuntimeError(f"there is no ptxas; install nvidia-cuda-nvcc {wanted}")
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release (\d+\.\d+)", printed)
    if release is None or release[1] != wanted:
        found = release[1] if release else "of no known release"
        raise RuntimeError(f"{path} is ptxas {found}; NVRTC needs that of {wanted}")
    return str(path)


_COMPILING = re.compile(r"ptxas info +: Compiling entry function '([^']+)'")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info +: Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")


def resources(log: str, name: str, launch: LaunchLine) -> Resources:
    """Return the resources of one kernel, with the spills of the functions that it may call, which
    ptxas lists separately. Raises RuntimeError if the log does not have them."""
    compiling = ""
    stack = stores = loads = registers = shared = 0
    for line in log.splitlines():
        if match := _COMPILING.match(line):
            compiling = match[1]
        elif compiling != name:
            continue
        elif match := _SPILLED.search(line):
            stores += int(match[1])
            loads += int(match[2])
        elif match := _USED.match(line):
            registers, shared, stack = int(match[1]), _bytes(_SHARED, line), _bytes(_STACK, line)
    if not registers:
        raise RuntimeError(f"ptxas does not report the resources of {name}")
    return Resources(
        registers=registers,
        stack_bytes=stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        static_shared_bytes=shared,
        dynamic_shared_bytes=launch.shared_memory,
    )


def _bytes(what: re.Pattern[str], line: str) -> int:
    match = what.search(line)
    return int(match[1]) if match else 0
