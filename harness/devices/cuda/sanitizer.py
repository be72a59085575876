"""compute-sanitizer: its four tools on a kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from cuda import pathfinder

from harness.compiling.signature import KERNEL_NAME
from harness.devices.cuda.findings import Placement, read_xml
from harness.devices.cuda.sanitizer_target import Job
from harness.protocol.compiler import Kernel
from harness.protocol.device import Sanitize, Sanitized
from harness.protocol.request import Fault
from harness.report import Finding, Tool, ToolRun
from problem.cases import Shape

_MAX_RECORDS = 50
_FOUND = 86
"""Exit code that compute-sanitizer is told to use when it finds something."""


def program() -> str | None:
    """Where compute-sanitizer is: NVIDIA's wheel, a CUDA toolkit, or nowhere."""
    found: str | None = pathfinder.find_nvidia_binary_utility("compute-sanitizer")
    if found:
        return found
    for directory in sys.path:
        for candidate in Path(directory).glob("nvidia/*/bin/compute-sanitizer"):
            return str(candidate)
    return None


def sanitize(kernel: Kernel, request: Sanitize) -> Sanitized | Fault:
    """Run the tools side by side, each over all shapes in one process."""
    path = program()
    if path is None:
        message = "compute-sanitizer is not installed: pip install nvidia-cuda-sanitizer-api"
        return Sanitized(
            program="compute-sanitizer (missing)",
            runs=tuple(
                ToolRun(tool=tool, status="unavailable", seconds=0, message=message)
                for tool in request.tools
            ),
            findings=(),
        )
    runs: list[ToolRun] = []
    findings: list[Finding] = []
    with TemporaryDirectory() as scratch:
        processes = [
            _Process(path, tool, kernel, request.shapes, Path(scratch) / tool)
            for tool in request.tools
        ]
        deadline = time.monotonic() + request.seconds
        try:
            for process in processes:
                if not process.wait(deadline - time.monotonic()):
                    return Fault(
                        cause="time-limit",
                        message=f"{process.tool} did not end within {request.seconds:g} s",
                    )
        finally:
            for process in processes:
                process.kill()
        for process in processes:
            run, found = process.read()
            runs.append(run)
            findings += found
    return Sanitized(program=_version(path), runs=tuple(runs), findings=tuple(findings))


class _Process:
    """One tool at work."""

    def __init__(
        self, path: str, tool: Tool, kernel: Kernel, shapes: tuple[Shape, ...], folder: Path
    ) -> None:
        folder.mkdir()
        self.tool = tool
        self._xml = folder / "findings.xml"
        self._placements = folder / "placements.jsonl"
        job = folder / "job.json"
        job.write_text(
            Job(kernel=kernel, shapes=shapes, placements=self._placements).model_dump_json()
        )
        self._log = folder / "log.txt"
        self._started = time.monotonic()
        self._seconds = 0.0
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [
                    path,
                    f"--tool={tool}",
                    "--xml",
                    f"--save={self._xml}",
                    f"--kernel-name=kernel_substring={KERNEL_NAME}",
                    f"--print-limit={_MAX_RECORDS}",
                    "--show-backtrace=no",
                    f"--error-exitcode={_FOUND}",
                    sys.executable,
                    "-m",
                    "harness.devices.cuda.sanitizer_target",
                    str(job),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"TMPDIR": str(folder)},
                process_group=0,
            )

    def wait(self, seconds: float) -> bool:
        try:
            self._process.wait(max(seconds, 0.001))
        except subprocess.TimeoutExpired:
            return False
        self._seconds = time.monotonic() - self._started
        return True

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def read(self) -> tuple[ToolRun, tuple[Finding, ...]]:
        places = [Placement.model_validate_json(line) for line in _lines(self._placements)]
        try:
            findings = read_xml(self._xml.read_bytes(), self.tool, places)
        except (OSError, ValueError):
            findings = ()
            if self._process.returncode == 0:
                return self._unavailable("its XML cannot be read"), ()
        if findings:
            return ToolRun(tool=self.tool, status="found", seconds=self._seconds), findings
        if self._process.returncode != 0:
            # The kernel failed under this tool, and another tool says why; or the tool failed.
            return self._unavailable(f"the launch did not end well under it: {self._why()}"), ()
        return ToolRun(tool=self.tool, status="clean", seconds=self._seconds), ()

    def _why(self) -> str:
        """The last exception that the watched program reported, or the tool's last word."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        own = [line for line in lines if "Error" in line and not line.startswith("=")]
        return (own or lines or ["it printed nothing"])[-1].strip("= ")[:300]

    def _unavailable(self, message: str) -> ToolRun:
        return ToolRun(tool=self.tool, status="unavailable", seconds=self._seconds, message=message)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def _version(path: str) -> str:
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    words = [line for line in printed.stdout.splitlines() if line.startswith("Version")]
    return f"compute-sanitizer {words[0].split()[1]}" if words else "compute-sanitizer"
