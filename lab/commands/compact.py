"""Write reports small enough to be committed: without spaces, defaults and needless digits.

Times that scores are computed from keep all digits. Rounds lose the times of the host, but keep
whether the two clocks disagreed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.files import write_whole
from harness.protocol.report import Report

HELP = """\
example:
  python3 -m lab compact reports/h200/*.json
"""

DIGITS = 3
EXACT = ("kernel_ms", "baseline_ms", "score", "sizes")


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
    """Return the report as JSON on one line, without what a reader of it fills in."""
    data = report.model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={
            "signature": True,
            "environment": {"isolation"},
            "measurement": {"rounds": {"__all__": {"kernel_host_ms", "baseline_host_ms"}}},
        },
    )
    data["outcome"]["verdict"] = report.verdict.value  # tells which kind of outcome it is
    text = json.dumps(_rounded(data), separators=(",", ":"), ensure_ascii=False)
    Report.model_validate_json(text)
    return text


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: each if name in EXACT else _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
