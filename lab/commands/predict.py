"""Predict what each step of the ladder is worth, beside what the judge measured.

Every file of solutions/ is explained on the CPU device; the times are those of the reports.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.commands.grade import SOLUTIONS
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Report

REPORTS = SOLUTIONS.parent / "reports" / "h200"

LONG_SECONDS = 600.0
"""The limit of counting one kernel: a busy machine must not leave one out."""

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
    from harness.judge.examine import examine
    from harness.judge.explain.examined import Examined
    from harness.judge.explain.gpu import gpu_of
    from harness.judge.explain.rules import Evidence
    from harness.judge.grading import GradingOptions
    from harness.judge.submission import read
    from harness.judge.workers.session import open_session
    from lab.predictions import markdown, predict

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
    evidence: dict[str, Evidence] = {}
    options = GradingOptions(quick=True, counting_seconds=LONG_SECONDS)
    with open_session("cpu") as session:
        for name in terminal.track(sorted(measured), "explaining", len(measured)):
            examined = examine(read(SOLUTIONS / f"{name}.cu"), session, options)
            if isinstance(examined, Examined) and examined.counters is not None:
                evidence[name] = Evidence(
                    examined.kernel, examined.counters, gpu, examined.blocks_share_work
                )
            else:
                terminal.note(f"{name} could not be explained")
    predictions = predict(gpu.name, evidence, measured)
    text = markdown(predictions)
    if arguments.out is not None:
        write_whole(arguments.out, text)
    if arguments.json is not None:
        write_whole(arguments.json, predictions.model_dump_json(indent=1) + "\n")
    terminal.show(text)
    return Exit.YES
