"""Profile a launch of a kernel with NVIDIA's ncu."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from cuda import pathfinder

from harness.compiling.compiler import FILE_NAME
from harness.compiling.disassembly import disassemble
from harness.devices.cuda import hardware_counters
from harness.devices.cuda import watched_job as watched
from harness.protocol.compiler import Kernel
from harness.protocol.device import LaunchInputs, NoProfile, Profile
from problem.cases import Case, Matrix, Shape
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import MAX_ERROR, compare
from problem.signature import SIGNATURE

_FORBIDDEN = "ERR_NVGPUCTRPERM"
"""The error of ncu if the driver lets only administrators read counters."""

_PERMIT = (
    "the driver lets only administrators read hardware counters; to permit it, load the nvidia "
    "module with NVreg_RestrictProfilingToAdminUsers=0 (a container needs --cap-add SYS_ADMIN)"
)


def profile(kernel: Kernel, shape: Shape, seconds: float) -> Profile | NoProfile:
    """Return the counters of a launch, by source line. There are none if its result was wrong."""
    program = pathfinder.find_nvidia_binary_utility("ncu")
    if program is None:
        return NoProfile(why="ncu is not installed: it comes with the CUDA toolkit")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        results = folder / "results"
        results.mkdir()
        launch = _inputs(shape)
        watched.write_job(kernel, [launch], folder)
        watched.give_job(folder, results)
        report = folder / "counters.ncu-rep"
        try:
            done = subprocess.run(
                (program, *options(report), *watched.command(results)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return NoProfile(why=f"ncu did not end within {seconds:g} s")
        output = done.stdout.decode(errors="replace")
        if _FORBIDDEN in output:
            return NoProfile(why=_PERMIT)
        if not report.is_file():
            last = (output.strip().splitlines() or ["it printed nothing"])[-1]
            return NoProfile(why=f"ncu wrote no report: {last[:200]}")
        wrong = _wrong(launch, results)
        if wrong is not None:
            return NoProfile(why=wrong)
        functions = disassemble(kernel.cubin, FILE_NAME)
        try:
            return hardware_counters.read(report, functions, kernel.entry, shape)
        except ValueError as error:
            return NoProfile(why=str(error))


def _inputs(shape: Shape) -> LaunchInputs:
    inputs = Case(shape).draw(secrets.randbits(48))
    return LaunchInputs(arguments=MATRIX_MULTIPLICATION.arguments(shape), matrices=inputs)


def _wrong(launch: LaunchInputs, results: Path) -> str | None:
    """Return why the counters of the launch cannot be used, if they cannot."""
    try:
        C: Matrix = np.load(watched.file(results, "C", 0), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return f"the launch at {launch.shape} did not come to its end under ncu"
    A, B = launch.matrices
    found = compare(A, B, C)
    if found.passed:
        return None
    return (
        f"the launch at {launch.shape} that ncu counted has a wrong result "
        f"(error {found.worst:.3g}, at most {MAX_ERROR:g} allowed)"
    )


def options(report: Path) -> tuple[str, ...]:
    """Return the options of ncu, which does not change the clocks of the GPU."""
    return (
        f"--export={report}",
        "--force-overwrite",
        "--clock-control=none",
        "--kernel-name-base=function",
        f"--kernel-name={SIGNATURE.kernel}",
        "--launch-count=1",
        *(f"--section={section}" for section in hardware_counters.SECTIONS),
        f"--metrics={','.join(hardware_counters.METRICS)}",
    )
