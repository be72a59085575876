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
from lab.studies.job import StudyResults

REPORTS = SOLUTIONS.parent / "reports"

HELP = """\
It writes results.json, study.md with the tables and study.html with the plots.
A study launches its own kernels in other blocks than 16x16; the judge does not.

examples:
  python3 -m lab study --out study
  python3 -m lab study --from study/results.json --out page
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(out_is_folder=True)
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


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
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

    found = tuple(chapters(results, _reports("h100/*.json")))
    write_whole(arguments.out / "study.md", markdown(results, found))
    write_whole(arguments.out / "study.html", page(results, found))
    terminal.show(f"written to {arguments.out}: results.json, study.md, study.html")
    return Exit.YES


def _reports(pattern: str) -> list[Report]:
    """Return the repository's own reports, from files with one report each or one a line."""
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
