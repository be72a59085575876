"""Compare predictions of `explain` with the times that the judge measured.

Every file of solutions/ is explained on the CPU device; the measured times are those of the
reports. The kernels of tests/judge/explain/kernels are explained, too; `lab measure` wrote their
times and counters.
"""

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.commands.grade import SOLUTIONS
from harness.cli.views.console import Terminal
from harness.judge.examine import examine
from harness.judge.explain.evidence import Evidence
from harness.judge.explain.examination import Examination
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Explanation
from harness.judge.explain.gpu import gpu_named, gpu_of
from harness.judge.grading import GradingOptions
from harness.judge.submission import read
from harness.judge.workers.session import open_session
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Report
from lab.commands.measure import KERNELS
from lab.measured import read_measurements
from lab.predictions import markdown, of_kernel, predict

REPORTS = SOLUTIONS.parent / "reports" / "h100"

LONG_SECONDS = 600.0
"""The time limit for counting one kernel, long enough for a busy machine."""

HELP = """\
It takes some minutes: large kernels take long to compile and to translate.

example:
  python3 -m lab predict --out predictions.md
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reports",
        type=Path,
        default=REPORTS,
        metavar="FOLDER",
        help="accepted reports of the ladder on one GPU (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, metavar="TABLE.md", help="write the tables")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write them as JSON")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    reports = {path.stem: path for path in sorted(arguments.reports.glob("*.json"))}
    measured: dict[str, float] = {}
    gpu = None
    for name, path in reports.items():
        report = Report.model_validate_json(path.read_bytes())
        if report.score is not None:
            measured[name] = report.score.kernel_ms
            gpu = gpu_of(report.device) or gpu
    if gpu is None:
        raise UsageError(f"{arguments.reports} has no accepted reports of a GPU")
    kernels = read_measurements(KERNELS / "measured.json")
    slow = kernels.kernels if kernels is not None else {}
    files = [SOLUTIONS / f"{name}.cu" for name in sorted(measured)]
    files += [KERNELS / f"{name}.cu" for name in slow]
    evidence: dict[str, Evidence] = {}
    explained: dict[str, Explanation] = {}
    options = GradingOptions(quick=True, counting_seconds=LONG_SECONDS)
    with open_session("cpu") as session:
        for file in terminal.track(files, "explaining", len(files)):
            examined = examine(read(file), session, options)
            if not isinstance(examined, Examination):
                terminal.note(f"{file.stem} could not be explained")
                continue
            there = gpu if kernels is None or file.stem in measured else gpu_named(kernels.gpu)
            explained[file.stem] = explain(examined, there)
            if examined.counters is not None:
                evidence[file.stem] = Evidence.of(examined.kernel, examined.counters, gpu)
    predictions = predict(gpu.name, evidence, measured, explained)
    others = tuple(of_kernel(explained[name], slow[name]) for name in slow if name in explained)
    if kernels is not None:
        update = {"kernels": others, "kernels_gpu": kernels.gpu}
        predictions = predictions.model_copy(update=update)
    text = markdown(predictions)
    if arguments.out is not None:
        write_whole(arguments.out, text)
    if arguments.json is not None:
        write_whole(arguments.json, predictions.model_dump_json(indent=1) + "\n")
    terminal.show(text)
    return Exit.YES
