"""Measure the kernels of a folder with the judge on this machine's GPU, and write their times.

Each is graded quickly. The hardware counters are read, too, where the driver
permits it.

A kernel takes some seconds. Kernels that the file names already and that are
not measured again keep their times.

examples:
  python3 -m lab measure --out tests/judge/explain/kernels/measured.json
  python3 -m lab measure --out measured.json my_kernel.cu
"""

import argparse
from datetime import date
from pathlib import Path

from pydantic import PositiveFloat

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.judge.explain.explanation import Unit
from harness.judge.grade import grade
from harness.judge.grading import GradingOptions
from harness.judge.session import Session
from harness.judge.stages.compile import compile_kernel
from harness.judge.stages.outcomes import Ended
from harness.judge.submission import read_kernel
from harness.judge.workers.session import open_session
from harness.protocol.compiler import Compile
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Value
from lab.profiler import NoProfile, Profile, profile
from problem.cases import Shape

KERNELS = Path(__file__).resolve().parents[2] / "tests" / "judge" / "explain" / "kernels"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="kernels (default: those of the tests)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="MEASURED.json")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    files = arguments.files or sorted(KERNELS.glob("*.cu"))
    exit_code, counters = Exit.YES, True
    with open_session("cuda") as session:
        for file in terminal.track(files, "measuring", len(files)):
            try:
                measured, why = measure(file, session, counters=counters)
            except UsageError as error:
                terminal.note(str(error))
                exit_code = Exit.NO
                continue
            if counters and why:
                terminal.note(f"no hardware counters: {why}")
                counters = False
            add(arguments.out, session.info.name, file.stem, measured)
            terminal.show(f"{file.stem}: {measured.ms:.4g} ms {measured.stall}".strip())
    return exit_code


PROFILED_SHAPE, PROFILE_SECONDS = Shape(2048, 1536, 1024), 60.0
"""A 64th of the ranked size, since `ncu` repeats a launch for each group of counters."""


class Measured(Value):
    """One kernel on a GPU.

    ms: the judge's time at the ranked size. stall: the largest stall reason of warps, as `ncu`
    names it. busy: the utilisation of each unit. Both are empty without counters.
    """

    ms: PositiveFloat
    stall: str = ""
    busy: dict[Unit, float] = {}  # noqa: RUF012 - pydantic copies it


_SHARED = frozenset({"mio_throttle", "short_scoreboard"})
_LOADS = frozenset({"long_scoreboard", "lg_throttle", *_SHARED})

AGREES: dict[str, tuple[Unit | None, frozenset[str]]] = {
    **dict.fromkeys(("few-products-per-load", "bank-conflicts", "fences"), (Unit.L1, _SHARED)),
    **dict.fromkeys(("uncoalesced", "read-again", "spills"), (Unit.L1, _LOADS)),
    "stores": (Unit.L1, frozenset({"lg_throttle", "mio_throttle"})),
    **dict.fromkeys(("fp64", "special-functions"), (None, _SHARED)),
    **dict.fromkeys(("waits",), (None, frozenset({"long_scoreboard", "barrier"}))),
    **dict.fromkeys(("latency",), (None, frozenset({"barrier", "wait", *_LOADS}))),
    **dict.fromkeys(("overhead", "tensor-issue", "narrow-loads"), (Unit.ISSUE, frozenset())),
    "integer-division": (Unit.ISSUE, frozenset({"math_pipe_throttle"})),
    "divergence": (Unit.L1, _SHARED | {"branch_resolving"}),
    "large-loop": (None, frozenset({"no_instruction"})),
    "mma-sync": (None, frozenset({"wait", "math_pipe_throttle", "short_scoreboard"})),
}
"""For each rule, the unit that should be the busiest of those that `ncu` counted, and the stall
reasons that may be the largest. They are by the Nsight Compute documentation ("Warp Stall
Reasons"). Conversions, special functions and shared memory use the MIO queue."""


def agrees(rule: str, measured: Measured) -> bool | None:
    """Return whether a first finding agrees with the busiest unit or the largest stall reason; None
    if these were not counted."""
    if not measured.busy:
        return None
    unit, stalls = AGREES.get(rule, (None, frozenset()))
    return unit is max(measured.busy, key=lambda each: measured.busy[each]) or (
        measured.stall in stalls
    )


class Measurements(Value):
    """The measured kernels of a folder. day: the day of the last measurement."""

    gpu: str
    day: date
    kernels: dict[str, Measured]


def read_measurements(path: Path) -> Measurements | None:
    """Return the earlier measurements in the file, if there are any."""
    return Measurements.model_validate_json(path.read_bytes()) if path.is_file() else None


def measure(file: Path, session: Session, *, counters: bool) -> tuple[Measured, str]:
    """Grade a kernel quickly, and read its hardware counters if they are asked for.

    Return the measurement, and the reason if counters could not be read. Raises UsageError if the
    kernel has no score.
    """
    submission = read_kernel(file)
    report = grade(submission, session, GradingOptions(quick=True))
    if report.score is None:
        outcome = report.outcome
        raise UsageError(f"{file.stem} has no score: {outcome.verdict} {outcome.message}".strip())
    ms = report.score.kernel_ms
    if not counters:
        return Measured(ms=ms), ""
    try:
        counted = _profile(submission.source, session)
    except NoProfile as why:
        return Measured(ms=ms), str(why)
    stall = max(counted.stalls, key=lambda each: counted.stalls[each], default="")
    return Measured(ms=ms, stall=stall, busy=counted.busy), ""


def _profile(source: str, session: Session) -> Profile:
    try:
        compiled = compile_kernel(session.compiler, Compile(source=source, arch=session.arch))
    except Ended:
        raise NoProfile("it was not compiled again") from None
    finally:
        session.compiler.close()
    return profile(compiled.kernel, PROFILED_SHAPE, PROFILE_SECONDS)


def add(path: Path, gpu: str, name: str, measured: Measured) -> None:
    """Add a kernel to the file. This replaces its earlier measurement on the same GPU."""
    known = read_measurements(path)
    if known is not None and known.gpu != gpu:
        raise UsageError(f"{path} holds times of an {known.gpu}, and this is an {gpu}")
    kernels = {**(known.kernels if known else {}), name: measured}
    text = Measurements(
        gpu=gpu, day=date.today(), kernels=dict(sorted(kernels.items()))
    ).model_dump_json(indent=1, exclude_defaults=True)
    write_whole(path, text + "\n")
