"""compute-sanitizer: run a kernel under its four tools."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Thread
from types import MappingProxyType
from typing import Any

import numpy as np
from cuda import pathfinder

from harness.devices.cuda import watched_job as watched
from harness.devices.cuda.findings import Placement, read_xml
from harness.devices.guards import changed_inputs
from harness.protocol.compiler import Kernel
from harness.protocol.device import (
    LaunchInputs,
    Load,
    Product,
    Ready,
    Sanitize,
    Sanitized,
    Stopped,
)
from harness.protocol.errors import without_paths
from harness.protocol.report import Finding, Tool, ToolRun, Value
from harness.protocol.request import Fault, Request
from problem.inputs import Matrix
from problem.signature import SIGNATURE

_MAX_RECORDS = 50
_FOUND = 86
"""The exit code of compute-sanitizer if it finds something."""

_PROGRAM = "compute-sanitizer"

_NEWEST = {Tool.INITCHECK: ("--initcheck-address-space=all",)}
"""Since 13.4 this includes shared memory. An older release does not start with it, and is run again
without."""


def programs() -> list[str]:
    """Find compute-sanitizer, best first: NVIDIA's wheel, then the toolkits of this machine."""
    wheels = (Path(entry).glob(f"nvidia/*/bin/{_PROGRAM}") for entry in sys.path)
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [
        *(str(path) for found in wheels for path in found),
        pathfinder.find_nvidia_binary_utility(_PROGRAM),
        shutil.which(_PROGRAM),
        *(str(path) for home in homes if home and (path := Path(home, "bin", _PROGRAM)).is_file()),
    ]
    return list(dict.fromkeys(place for place in places if place))


class CudaSanitizer:
    """A device that runs a kernel under compute-sanitizer. It needs no context of its own.

    The tools of a quick grading start at once and wait for their launches, since a tool takes
    longer to start than the launches take. They check kernels of one name, so only problems with
    this name.
    """

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._folder = TemporaryDirectory()
        self._waiting = {
            tool: _Process(
                path, tool, SIGNATURE.kernel, newest=True, results=Path(self._folder.name)
            )
            for path in programs()[:1]
            for tool in (Tool.MEMCHECK, Tool.RACECHECK)
        }

    def answer(self, request: Request[Any]) -> Value:
        """Answer `Load` and `Sanitize`."""
        if isinstance(request, Load):
            assert isinstance(request.kernel, Kernel), "a GPU needs machine code"
            self._kernel = request.kernel
            return Ready()
        assert isinstance(request, Sanitize) and self._kernel is not None
        waiting, self._waiting = self._waiting, {}
        can_wait = self._kernel.signature.kernel == SIGNATURE.kernel
        try:
            return sanitize(self._kernel, request, waiting if can_wait else {})
        finally:
            for process in waiting.values():
                process.kill()


def sanitize(
    kernel: Kernel, request: Sanitize, waiting: Mapping[Tool, _Process] = MappingProxyType({})
) -> Sanitized | Fault:
    """Run all tools at the same time, each over all launches in one process.

    What then has no result runs again: alone, for the tools together may have taken too much
    memory, and under the next compute-sanitizer that is installed, for this one may not start.

    waiting: tools that have been started.
    """
    deadline = time.monotonic() + request.seconds
    todo: Sequence[Tool] = request.tools
    name = kernel.signature.kernel
    done: list[_Found] = []
    why = "it is not installed: pip install nvidia-cuda-sanitizer-api"
    version = f"{_PROGRAM} (missing)"
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        watched.write_job(kernel, request.launches, folder)
        for path, alone in product(programs(), (False, True)):
            if not todo:
                break
            results = Path(mkdtemp(dir=folder))
            for together in [[tool] for tool in todo] if alone else [todo]:
                processes = [
                    (not alone and _waits(waiting.get(tool), path))
                    or _Process(path, tool, name, newest=not alone, results=results)
                    for tool in together
                ]
                found = _run(processes, request.launches, folder, deadline)
                if isinstance(found, Fault):
                    return found
                ended = [each for each in found if each.unavailable is None]
                done += ended
                todo = [tool for tool in todo if tool not in {each.tool for each in ended}]
                why = next((each.unavailable for each in found if each.unavailable), why)
            version = _version(path)
    missing = [ToolRun(tool=tool, status="unavailable", seconds=0, message=why) for tool in todo]
    by_tool = {run.tool: run for run in (*missing, *(each.run for each in done))}
    return Sanitized(
        program=version,
        runs=tuple(by_tool[tool] for tool in request.tools),
        findings=tuple(finding for each in done for finding in each.findings),
        products=tuple(left for each in done for left in each.products),
        stopped=tuple(each.stopped for each in done if each.stopped),
    )


def _waits(process: _Process | None, path: str) -> _Process | None:
    """Return the process if it is of this program and still waits for launches."""
    return process if process is not None and process.path == path and process.waits else None


@dataclass
class _Found:
    """The result of one tool."""

    tool: Tool
    seconds: float
    findings: tuple[Finding, ...] = ()
    products: list[Product] = field(default_factory=list)
    stopped: Stopped | None = None
    unavailable: str | None = None

    @property
    def run(self) -> ToolRun:
        status = "found" if self.findings or self.stopped else "clean"
        return ToolRun(tool=self.tool, status=status, seconds=self.seconds)  # type: ignore[arg-type]


def _run(
    processes: Sequence[_Process],
    launches: Sequence[LaunchInputs],
    folder: Path,
    deadline: float,
) -> list[_Found] | Fault:
    """Run these tools at the same time, on the job in the folder."""
    try:
        for process in processes:
            process.begin(folder)
        for process in processes:
            if not process.wait(deadline - time.monotonic()):
                message = f"{process.tool} did not end in time"
                return Fault(cause="time-limit", message=message)
    finally:
        for process in processes:
            process.kill()
    return [process.read(launches) for process in processes]


class _Process:
    """The process of one tool. newest: with options that only newer releases know."""

    def __init__(self, path: str, tool: Tool, kernel: str, *, newest: bool, results: Path) -> None:
        self.path = path
        self.tool = tool
        self._results = Path(mkdtemp(dir=results, prefix=tool))
        self._xml = self._results / "findings.xml"
        self._log = self._results / "log.txt"
        self._began = self._ended = time.monotonic()
        self._at_work: Thread | None = None
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [
                    path,
                    f"--tool={tool}",
                    "--xml",
                    f"--save={self._xml}",
                    f"--kernel-name=kernel_substring={kernel}",
                    f"--print-limit={_MAX_RECORDS}",
                    "--show-backtrace=no",
                    f"--error-exitcode={_FOUND}",
                    *(_NEWEST.get(tool, ()) if newest else ()),
                    *watched.command(self._results),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"TMPDIR": str(self._results)},
                process_group=0,
            )

    @property
    def waits(self) -> bool:
        return self._at_work is None and self._process.poll() is None

    def begin(self, job: Path) -> None:
        """Give it the job."""
        self._began = time.monotonic()
        watched.give_job(job, self._results)
        self._at_work = Thread(target=self._note_the_end, daemon=True)
        self._at_work.start()

    def _note_the_end(self) -> None:
        self._process.wait()
        self._ended = time.monotonic()

    def wait(self, seconds: float) -> bool:
        assert self._at_work is not None, "begin first"
        self._at_work.join(max(seconds, 0.001))
        return not self._at_work.is_alive()

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def read(self, launches: Sequence[LaunchInputs]) -> _Found:
        found = _Found(self.tool, self._ended - self._began)
        placements = _lines(self._results / watched.PLACEMENTS)
        places = [Placement.model_validate_json(line) for line in placements]
        try:
            found.findings = read_xml(self._xml.read_bytes(), self.tool, places)
        except (OSError, ValueError):
            if self._process.returncode == 0:
                found.unavailable = "its XML cannot be read"
                return found
        found.products = [
            left
            for number, launch in enumerate(launches)
            if (left := self._product(number, launch)) is not None
        ]
        fault = self._fault()
        if found.findings or (self._process.returncode == 0 and len(found.products) == len(places)):
            return found
        if fault is not None and fault.cause in ("trap", "memory"):
            found.stopped = Stopped(launch=max(len(places) - 1, 0), fault=fault)
        else:  # the tool failed, or took what the launch needed
            found.unavailable = f"the launch did not end well under it: {self._why(fault)}"
        return found

    def _product(self, number: int, launch: LaunchInputs) -> Product | None:
        """Return the results of a launch, if it finished."""
        try:
            *inputs, output = (
                self._matrix(buffer.name, number) for buffer in launch.arguments.buffers
            )
        except (OSError, ValueError, EOFError):
            return None
        changed = changed_inputs(inputs, launch)
        return Product(launch=number, tool=self.tool, output=output, changed_inputs=changed)

    def _matrix(self, name: str, number: int) -> Matrix:
        matrix: Matrix = np.load(watched.file(self._results, name, number), allow_pickle=False)
        return matrix

    def _fault(self) -> Fault | None:
        try:
            return Fault.model_validate_json((self._results / watched.FAULT).read_bytes())
        except (OSError, ValueError):
            return None

    def _why(self, fault: Fault | None) -> str:
        """Return CUDA's error, the program's last exception, or the tool's last line."""
        if fault is not None:
            return fault.message
        lines = self._log.read_text(errors="replace").strip().splitlines()
        own = [line for line in lines if "Error" in line and not line.startswith("=")]
        return without_paths((own or lines or ["it printed nothing"])[-1].strip("= ")[:300])


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


@functools.cache
def _version(path: str) -> str:
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    words = [line for line in printed.stdout.splitlines() if line.startswith("Version")]
    return f"{_PROGRAM} {words[0].split()[1]}" if words else _PROGRAM
