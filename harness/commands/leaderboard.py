"""Show the ranking, and write it as a site."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.commands._arguments import add_filters, add_store, chosen
from harness.commands._command import Exit
from harness.errors import UsageError
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Edition, as_data, rank
from harness.leaderboard.store import Document, Store
from harness.views.console import Terminal

HELP = """\
example:
  python3 -m harness leaderboard --badge cuda-cores --site site
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
    from harness.views.leaderboard import screen

    with _source(arguments) as (entries, document):
        boards = rank(entries, Edition.current(), chosen(arguments))
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
    arguments: argparse.Namespace,
) -> Iterator[tuple[list[Entry], Callable[[str], Document]]]:
    """The entries to rank, and how to get the report of one by its id."""
    if arguments.reports:
        from harness.leaderboard import committed  # a parser would slow every command

        reports = {one.document.id: one for one in committed.read(arguments.reports)}
        yield [one.entry for one in reports.values()], lambda id: reports[id].document
    else:
        with Store(arguments.store) as store:
            yield store.entries(), store.document


def _write_readme(arguments: argparse.Namespace) -> None:
    from harness.leaderboard import committed

    if not arguments.reports:
        raise UsageError("--readme needs --reports: its table is made from committed reports.")
    reports = committed.read(arguments.reports)
    problems = committed.misfits(reports, arguments.solutions)
    if problems:
        raise UsageError("the README was not written.\n" + "\n".join(problems))
    committed.write(
        arguments.readme, committed.markdown(reports, arguments.solutions, arguments.readme)
    )


def _write_site(
    arguments: argparse.Namespace,
    entries: list[Entry],
    document: Callable[[str], Document],
    terminal: Terminal,
) -> None:
    from harness.leaderboard.site import Site  # its template engine would slow every command

    site = Site(arguments.site, entries, Edition.current(), chosen(arguments))
    site.write_boards()
    pages = site.write_entries(document)
    written = sum(1 for _ in terminal.track(pages, "Pages", len(site.entries)))
    terminal.note(
        f"{arguments.site / 'index.html'}: "
        f"submissions: {len(site.entries)}, pages written: {written}."
    )
