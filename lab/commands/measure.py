"""Measure the kernels of a folder with the judge on this machine's GPU, and write their times.

Each is graded quickly. The hardware counters are read, too, where the driver permits it.
"""

import argparse
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from harness.judge.workers.session import open_session
from harness.protocol.errors import UsageError
from lab.measured import add, measure

KERNELS = Path(__file__).resolve().parents[2] / "tests" / "judge" / "explain" / "kernels"

HELP = """\
A kernel takes some seconds. Kernels that the file names already and that are
not measured again keep their times.

examples:
  python3 -m lab measure --out tests/judge/explain/kernels/measured.json
  python3 -m lab measure --out measured.json my_kernel.cu
"""


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
