"""Measure what the reports on this problem measured, and write its tables and plots.

Throughput over width and block, outputs a thread, the usual optimisations one at a time, pinned
memory, clusters of blocks, the ladder over sizes, the error of each arithmetic. Needs a GPU, and
takes minutes.
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
from lab.studies.job import Scatter, StudyResults

REPORTS = SOLUTIONS.parent / "reports"
SCATTERED = SOLUTIONS / "17_split_tail.cu"

HELP = """\
It writes results.json, study.md with the tables and study.html with the plots.
A study launches its own kernels in other blocks than 16x16; the judge does not.

examples:
  python3 -m lab study --out study
  python3 -m lab study --from reports/h100-study.json --out page
  python3 -m lab study --scatter 5 --out study
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("study"), metavar="FOLDER", help="default: %(default)s"
    )
    parser.add_argument(
        "--from",
        dest="results",
        type=Path,
        metavar="RESULTS.json",
        help="write the tables and plots of an earlier study; needs no GPU",
    )
    parser.add_argument(
        "--scatter",
        type=int,
        metavar="TIMES",
        help="instead, grade one file so often on each GPU: alone, on all at once, and beside busy "
        "cores; writes scatter.json",
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    if arguments.scatter is not None:
        return _scatter(arguments, terminal)
    if arguments.results is not None:
        try:
            results = StudyResults.model_validate_json(arguments.results.read_bytes())
        except ValueError:
            raise UsageError(f"{arguments.results} holds no results of a study") from None
    else:
        results = _measured(terminal)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_whole(arguments.out / "results.json", results.model_dump_json(indent=1) + "\n")
    from lab.studies.page import chapters, markdown, page  # the results are kept without it

    clusters = _reports("h100-clusters.jsonl")
    found = tuple(chapters(results, _reports("h100/*.json"), _scattered(), clusters))
    write_whole(arguments.out / "study.md", markdown(results, found))
    write_whole(arguments.out / "study.html", page(results, found))
    terminal.show(f"written to {arguments.out}: results.json, study.md, study.html")
    return Exit.YES


def _scatter(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.devices import available
    from lab.studies.scatter import scatter

    missing = available.why_no_cuda()
    if missing is not None:
        raise UsageError(f"gradings scatter on GPUs, and here {missing}")
    if arguments.scatter < 2:
        raise UsageError("--scatter takes two gradings or more")
    found = scatter(SCATTERED, available.gpus(), arguments.scatter)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_whole(arguments.out / "scatter.json", found.model_dump_json(indent=1) + "\n")
    terminal.show(f"written to {arguments.out}: scatter.json")
    return Exit.YES


def _scattered() -> list[Scatter]:
    """What is on record: reports of one file five times in a row, and scatters of several GPUs."""
    from lab.studies.scatter import summary

    alone = summary([("alone", _reports("h100-five-in-a-row.jsonl"))])
    others = sorted(REPORTS.glob("*-scatter.json"))
    return [alone, *(Scatter.model_validate_json(path.read_bytes()) for path in others)]


def _reports(pattern: str) -> list[Report]:
    """Of the repository's own: a report a file, or a report a line."""
    found = []
    for path in sorted(REPORTS.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        pieces = text.splitlines() if path.suffix == ".jsonl" else [text]
        found += [Report.model_validate_json(piece) for piece in pieces]
    return found


def _measured(terminal: Terminal) -> StudyResults:
    from harness.judge.workers.session import open_session
    from lab.compilers import compile_all
    from lab.studies.plan import plan, sources
    from lab.studies.run import measure

    with open_session("cuda") as session:
        kernels = compile_all(sources(SOLUTIONS), session.arch)
    terminal.note("measuring; this takes one to three minutes")
    return measure(plan(kernels))
