"""Add small errors to correct kernels, and report those that the judge accepts.

An oracle, which knows where each mutant may be wrong, checks it; if it is wrong, it is graded.
Accepted ones are listed with the seed that repeats the grading.
"""

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from harness import __version__
from harness.cli.commands._command import Exit
from harness.cli.commands.grade import SOLUTIONS
from harness.cli.views.console import Terminal
from harness.judge.submission import read_kernel
from harness.judge.workers.session import open_session
from harness.protocol.files import write_whole
from lab.fuzz import Record, Tried, fuzz, until
from problem.cases import CASES_VERSION

HELP = """\
examples:
  nox -s fuzz -- --minutes 10
  nox -s fuzz -- --minutes 60 --json reports/fuzz.json solutions/0*.cu
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE.cu",
        help="correct kernels (default: 01 to 08 of solutions/)",
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="how long (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="repeats the mutants of another run")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all that was tried")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    paths = arguments.files or sorted(SOLUTIONS.glob("0[1-8]*.cu"))
    kernels = [*map(read_kernel, paths)]
    seed = random.SystemRandom().getrandbits(40) if arguments.seed is None else arguments.seed
    started = time.monotonic()
    tried: list[Tried] = []
    with open_session("cpu") as session:
        try:
            for each in until(started + 60 * arguments.minutes, fuzz(session, kernels, seed)):
                tried.append(each)
                words = f"{each.kernel}:{each.line} {each.change}, {each.guard}"
                found = f"{each.verdict or 'not wrong'}{', MISSED' if each.missed else ''}"
                terminal.show(f"{len(tried)}  {words}: {found}")
        finally:
            record = Record(
                seed=seed,
                seconds=time.monotonic() - started,
                judge=__version__,
                cases=CASES_VERSION,
                device=session.info.name,
                tried=tuple(tried),
            )
            if arguments.json:
                write_whole(arguments.json, record.model_dump_json(indent=1))
    wrong = Counter((each.change, each.guard) for each in tried if each.wrong)
    missed = Counter((each.change, each.guard) for each in tried if each.missed)
    for kind, count in sorted(wrong.items()):
        terminal.show(f"{', '.join(kind)}: {count} wrong, {missed[kind]} of them accepted")
    total = f"{wrong.total()} wrong, {missed.total()} of them accepted"
    terminal.show(f"{len(tried)} mutants, {total}; seed {seed}")
    return Exit.NO if missed else Exit.YES
