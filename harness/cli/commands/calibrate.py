"""Check the judge itself: cuBLAS must score 1 against cuBLAS.

It also measures the error of cuBLAS in FP32, TF32 and FP16: only FP32 may pass. It needs a GPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.commands._arguments import add_seed
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.protocol.files import write_whole

HELP = """\
example:
  python3 -m harness calibrate --json calibration.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write what was found; - for standard output"
    )
    add_seed(parser, "draw the inputs of that seed")
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.cli.views.calibration import screen
    from harness.cli.views.progress import TerminalProgress
    from harness.judge.calibrate import calibrate
    from harness.judge.workers.session import open_session

    to_output = str(arguments.json) == "-"
    if to_output:
        terminal.leave_output_to_programs()
    with (
        open_session("cuda") as session,
        TerminalProgress(terminal.results, "cuBLAS") as progress,
    ):
        found = calibrate(session, arguments.seed, progress)
    terminal.show(screen(found))
    if to_output:
        terminal.json(found.model_dump_json(indent=2))
    elif arguments.json is not None:
        write_whole(arguments.json, found.model_dump_json(indent=2) + "\n")
    return Exit.YES
