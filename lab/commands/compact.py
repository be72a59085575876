"""Write reports small enough to be committed: without spaces, defaults and needless digits.

Scores keep all digits, and times of launches as many as a GPU's clock has. Data
that no reader of a committed report uses is removed. That is the signature,
times of verified launches, times by the host and in cycles, and loops other
than the one that `explain` examines. Rounds keep whether the clocks disagreed.

example:
  python3 -m lab compact reports/h200/*.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.judge.explain.counts import hot_loop
from harness.protocol.files import write_whole
from harness.protocol.report import DisassembledKernel, Report

DIGITS = 3
LAUNCH_DIGITS = 8
"""The GPU's events have times in single precision."""
LAUNCHES = ("kernel_ms", "baseline_ms")
ROUND_EXTRAS = {"kernel_host_ms", "baseline_host_ms", "kernel_cycles", "baseline_cycles"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="REPORT.json")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    before = after = 0
    for path in arguments.files:
        text = path.read_text(encoding="utf-8")
        small = compact(Report.model_validate_json(text))
        write_whole(path, small + "\n")
        before, after = before + len(text), after + len(small)
    terminal.show(f"{len(arguments.files)} reports: {before >> 10} KiB before, {after >> 10} after")
    return Exit.YES


def compact(report: Report) -> str:
    """Return the report as JSON on one line, without values that a reader sets by default."""
    data = report.model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={
            "signature": True,
            "environment": {"isolation"},
            "kernel": {"loops": _unread_loops(report)},
            "verification": {"cases": {"__all__": {"seconds"}}},
            "measurement": {"rounds": {"__all__": ROUND_EXTRAS}},
        },
    )
    data["outcome"]["verdict"] = report.verdict.value  # identifies the type of the outcome
    text = json.dumps(_rounded(data), separators=(",", ":"), ensure_ascii=False)
    Report.model_validate_json(text)
    return text


def _unread_loops(report: Report) -> set[int]:
    """Return the indices of the loops that `explain` does not examine."""
    kernel = report.kernel
    if not isinstance(kernel, DisassembledKernel):
        return set()
    followed = hot_loop(kernel, report.counters)
    return {index for index, loop in enumerate(kernel.loops) if loop is not followed}


def _rounded(value: Any, digits: int = DIGITS) -> Any:
    if isinstance(value, dict):
        return {
            name: each
            if name == "score"
            else _rounded(each, LAUNCH_DIGITS if name in LAUNCHES else DIGITS)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
