"""Show the ranking, and write it as a site.

Until a score is entered, it shows the reports that came with the judge.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.ranking import as_data, rank
from harness.cli.commands._arguments import add_filters, add_store, chosen
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import DEFAULT_STORE, open_store
from harness.cli.views.console import Terminal
from harness.protocol.errors import UsageError

REPORTS = Path(__file__).resolve().parents[3] / "reports"

HELP = """\
examples:
  python3 -m harness leaderboard --badge cuda-cores --site site
  python3 -m harness leaderboard --reports reports --readme reports/README.md

exit codes:
  0  there is a ranking
  1  nothing to rank
  2  wrong usage
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_filters(parser)
    parser.add_argument(
        "--reports",
        type=Path,
        metavar="DIR",
        help="rank the files DIR/GPU/KERNEL.json instead of a store",
    )
    parser.add_argument(
        "--readme",
        type=Path,
        metavar="FILE",
        help="with --reports: write the table between FILE's board markers",
    )
    parser.add_argument(
        "--solutions",
        type=Path,
        default=Path("solutions"),
        metavar="DIR",
        help="with --readme: the kernels that the reports are of (default: %(default)s)",
    )
    parser.add_argument("--site", type=Path, metavar="DIR", help="write a static site there")
    parser.add_argument("--json", action="store_true", help="print the boards as JSON")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.cli.views.leaderboard import screen

    with _source(arguments, terminal) as (entries, document):
        boards = rank(entries, chosen(arguments))
        if arguments.site:
            _write_site(arguments, entries, document, terminal)
    if arguments.readme:
        _write_readme(arguments)
    if arguments.json:
        terminal.json([as_data(board) for board in boards])
    else:
        terminal.show(screen(boards, entries))
    return Exit.YES if boards else Exit.NO


@contextmanager
def _source(
    arguments: argparse.Namespace, terminal: Terminal
) -> Iterator[tuple[list[Entry], Callable[[str], Document]]]:
    """Give the entries to rank, and a function that returns the report of one by its id."""
    folder, store = arguments.reports, arguments.store
    bundled = REPORTS if store == DEFAULT_STORE and REPORTS.is_dir() else None
    if folder is None and not (bundled and not store.path.exists()):
        with open_store(store, key=arguments.key) as opened:
            entries = opened.entries()
            if bundled is None or rank(entries):
                yield entries, opened.document
                return
    if folder is None:
        folder = bundled
        terminal.note(
            "No score has been entered here yet: these are the reports that came with the judge. "
            "Enter your own with `grade my_kernel.cu --submit --author NAME`."
        )
    from harness.board import committed

    reports = {one.document.id: one for one in committed.read(folder)}
    yield [one.entry for one in reports.values()], lambda id: reports[id].document


def _write_readme(arguments: argparse.Namespace) -> None:
    from harness.board import committed, readme

    if not arguments.reports:
        raise UsageError("--readme needs --reports: its table is made from committed reports.")
    reports = committed.read(arguments.reports)
    problems = committed.mismatches(reports, arguments.solutions)
    if problems:
        raise UsageError("the README was not written.\n" + "\n".join(problems))
    board = readme.markdown(reports, arguments.solutions, arguments.readme)
    readme.write(arguments.readme, board)


def _write_site(
    arguments: argparse.Namespace,
    entries: list[Entry],
    document: Callable[[str], Document],
    terminal: Terminal,
) -> None:
    from harness.board.site import Site  # its template engine would slow every command

    site = Site(arguments.site, entries, chosen(arguments))
    site.write_boards()
    pages = list(terminal.track(site.write_entries(document), "Pages", len(site.entries)))
    for why in filter(None, pages):
        terminal.note(f"leaderboard: no page for {why}")
    terminal.note(
        f"{arguments.site / 'index.html'}: "
        f"submissions: {len(site.entries)}, pages written: {len(pages)}."
    )
