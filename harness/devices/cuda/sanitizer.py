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
from harness.protocol.device import LaunchInputs, Load, Product, Ready, Sanitize, Sanitized, Stopped
from harness.protocol.errors import without_paths
from harness.protocol.report import Finding, Tool, ToolRun, Value
from harness.protocol.request import Fault, Request
from problem.inputs import Matrix
from problem.signature import SIGNATURE

_MAX_RECORDS = 50
_FOUND = 86
"""The exit code of compute-sanitizer if it finds something."""

_PROGRAM = "compute-sanitizer"

_ALL_MEMORY = "--initcheck-address-space"
"""The option by which initcheck includes shared memory. Older releases do not know it."""


def program() -> str | None:
    """Find compute-sanitizer: NVIDIA's wheel, or else a toolkit of this machine."""
    wheels = (Path(entry).glob(f"nvidia/*/bin/{_PROGRAM}") for entry in sys.path)
    wheel = next((str(path) for found in wheels for path in found), None)
    return wheel or pathfinder.find_nvidia_binary_utility(_PROGRAM) or shutil.which(_PROGRAM)


class CudaSanitizer:
    """A device that runs a kernel under compute-sanitizer. It needs no context of its own.

    The tools of a quick grading start at once and wait for their launches, since a tool takes
    longer to start than the launches take. They check kernels of one name, so only problems with
    this name.
    """

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._folder = TemporaryDirectory()
        path, tools = program(), (Tool.MEMCHECK, Tool.RACECHECK)
        self._waiting = {
            tool: _Process(path, tool, SIGNATURE.kernel, Path(self._folder.name))
            for tool in tools
            if path is not None
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

    waiting: tools that have been started.
    """
    path, name = program(), kernel.signature.kernel
    if path is None:
        why = "it is not installed: pip install nvidia-cuda-sanitizer-api"
        runs = tuple(_Found(tool, 0, unavailable=why).run for tool in request.tools)
        return Sanitized(program=f"{_PROGRAM} (missing)", runs=runs, findings=(), products=())
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        watched.write_job(kernel, request.launches, folder)
        processes = [
            process
            if (process := waiting.get(tool)) is not None and process.waits
            else _Process(path, tool, name, folder)
            for tool in request.tools
        ]
        found = _run(processes, request.launches, folder, request.seconds)
    if isinstance(found, Fault):
        return found
    return Sanitized(
        program=_version(path),
        runs=tuple(each.run for each in found),
        findings=tuple(finding for each in found for finding in each.findings),
        products=tuple(left for each in found for left in each.products),
        stopped=tuple(each.stopped for each in found if each.stopped),
    )


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
        if self.unavailable is not None:
            status = "unavailable"
        message = self.unavailable
        return ToolRun(tool=self.tool, status=status, seconds=self.seconds, message=message)  # type: ignore[arg-type]


def _run(
    processes: Sequence[_Process], launches: Sequence[LaunchInputs], folder: Path, seconds: float
) -> list[_Found] | Fault:
    """Run these tools at the same time, on the job in the folder."""
    deadline = time.monotonic() + seconds
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
    def __init__(self, path: str, tool: Tool, kernel: str, results: Path) -> None:
        self.tool = tool
        self._results = Path(mkdtemp(dir=results, prefix=tool))
        self._xml = self._results / "findings.xml"
        self._log = self._results / "log.txt"
        self._began = self._ended = time.monotonic()
        self._at_work: Thread | None = None
        everywhere = tool is Tool.INITCHECK and _ALL_MEMORY in _printed(path, "--help")
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
                    *([f"{_ALL_MEMORY}=all"] if everywhere else []),
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
        written = self._results / watched.PLACEMENTS
        lines = written.read_text(encoding="utf-8").splitlines() if written.is_file() else []
        places = [Placement.model_validate_json(line) for line in lines]
        try:
            found.findings = read_xml(self._xml.read_bytes(), self.tool, places)
        except (OSError, ValueError):
            if self._process.returncode == 0:
                found.unavailable = "its XML cannot be read"
                return found
        products = [
            left
            for number, launch in enumerate(launches)
            if (left := self._product(number, launch)) is not None
        ]
        fault = self._fault()
        finished = self._process.returncode == 0 and len(products) == len(places)
        if not (found.findings or finished):
            if fault is None or fault.cause not in ("trap", "memory"):
                # The tool failed, or took what the launch needed.
                found.unavailable = f"the launch did not end well under it: {self._why(fault)}"
                return found
            found.stopped = Stopped(launch=max(len(places) - 1, 0), fault=fault)
        found.products = products
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


def _version(path: str) -> str:
    lines = _printed(path, "--version").splitlines()
    words = [line for line in lines if line.startswith("Version")]
    return f"{_PROGRAM} {words[0].split()[1]}" if words else _PROGRAM


@functools.cache
def _printed(path: str, option: str) -> str:
    return subprocess.run([path, option], capture_output=True, text=True, check=False).stdout
