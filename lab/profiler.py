"""Hardware counters of a launch, which NVIDIA's ncu reads."""

import re
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import ncu_report
from cuda import pathfinder

from harness.devices.cuda import watched_job as watched
from harness.judge.explain.explanation import Unit
from harness.protocol.compiler import Kernel
from harness.protocol.device import LaunchInputs
from problem.cases import Case, Shape
from problem.problem import MATRIX_MULTIPLICATION

_FORBIDDEN = "ERR_NVGPUCTRPERM"
"""The error of ncu if the driver lets only administrators read counters."""

_PERMIT = (
    "the driver lets only administrators read hardware counters; to permit it, load the nvidia "
    "module with NVreg_RestrictProfilingToAdminUsers=0 (a container needs --cap-add SYS_ADMIN)"
)

_BUSY = {
    Unit.FMA: "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    Unit.TENSOR: "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    Unit.ISSUE: "smsp__issue_active.avg.pct_of_peak_sustained_active",
    Unit.L1: "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
}
"""The tensor pipe's metric of hmma counts HGMMA, too, but no products of integers: of
solutions/36_wgmma_one_accumulator.cu it sees 26 of 51 %."""

_STATE = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_ISSUING = ("selected", "not_selected")
"""These are not stalls: a warp that issues, and one that could issue while another one does."""


class NoProfile(Exception):
    """Counters could not be read. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Hardware counters of one launch.

    busy: the share of the time in which each unit was busy, from 0 to 1. stalls: for each reason,
    the warps of a scheduler that wait when it issues, in the mean.
    """

    busy: dict[Unit, float]
    stalls: dict[str, float]


def profile(kernel: Kernel, shape: Shape, seconds: float) -> Profile:
    """Return the counters of a launch, which took at most so long. Raises NoProfile."""
    program = pathfinder.find_nvidia_binary_utility("ncu")
    if program is None:
        raise NoProfile("ncu is not installed: it comes with the CUDA toolkit")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        results = folder / "results"
        results.mkdir()
        inputs = Case(shape).draw(secrets.randbits(48))
        arguments = MATRIX_MULTIPLICATION.arguments(shape)
        launch = LaunchInputs(arguments=arguments, matrices=inputs)
        watched.write_job(kernel, [launch], folder)
        watched.give_job(folder, results)
        report = folder / "counters.ncu-rep"
        try:
            done = subprocess.run(
                (program, *_options(report, kernel), *watched.command(results)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoProfile(f"ncu did not end within {seconds:g} s") from None
        output = done.stdout.decode(errors="replace")
        if _FORBIDDEN in output:
            raise NoProfile(_PERMIT)
        if done.returncode or not report.is_file():
            last = (output.strip().splitlines() or ["it printed nothing"])[-1]
            raise NoProfile(f"ncu wrote no report: {last[:200]}")
        return read(report)


def _options(report: Path, kernel: Kernel) -> tuple[str, ...]:
    """Return the options of ncu, which does not change the clocks of the GPU."""
    return (
        f"--export={report}",
        "--force-overwrite",
        "--clock-control=none",
        "--kernel-name-base=function",
        f"--kernel-name={kernel.signature.kernel}",
        "--launch-count=1",
        "--section=WarpStateStats",
        f"--metrics={','.join(_BUSY.values())}",
    )


def read(path: Path) -> Profile:
    """Return the counters of the first launch in a report. Raises NoProfile."""
    context = ncu_report.load_report(str(path))
    launches = list(context.range_by_idx(0)) if context.num_ranges() else []
    if not launches:
        raise NoProfile("ncu saw no launch of the kernel")
    action = launches[0]
    known = sorted(action.metric_names())

    def value(metric: str) -> float:
        return float(action.metric_by_name(metric).as_double())

    return Profile(
        busy={unit: value(metric) / 100 for unit, metric in _BUSY.items() if metric in known},
        stalls={
            found[1]: value(found[0])
            for found in filter(None, map(_STATE.fullmatch, known))
            if found[1] not in _ISSUING
        },
    )
