"""Show the ranking, and write it as a site.

Until a score is entered, it shows the reports that came with the judge.

examples:
  python3 -m harness leaderboard --badge cuda-cores --site site
  python3 -m harness leaderboard --reports reports

exit codes:
  0  There is a ranking.
  1  Nothing to rank.
  2  Wrong usage.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.board.document import Document, read_folder
from harness.board.entry import Entry, Facts, Version, own_facts, usual_facts
from harness.board.ranking import Board, Row, Status, as_data, rank, status
from harness.board.site import Site
from harness.cli.commands._arguments import add_filters, add_json, add_store, chosen, write_json
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import DEFAULT_STORE, open_store
from harness.cli.views.console import Terminal
from harness.judge import figures
from harness.protocol.errors import UsageError
from harness.protocol.report import Badge

REPORTS = Path(__file__).resolve().parents[3] / "reports"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_filters(parser, "rank only these results, among themselves")
    parser.add_argument(
        "--reports",
        type=Path,
        metavar="DIR",
        help="rank the files DIR/GPU/KERNEL.json instead of a store; they count without signatures",
    )
    parser.add_argument("--site", type=Path, metavar="DIR", help="write a static site there")
    add_json(parser, "the boards")
    add_store(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    with _source(arguments, terminal) as (entries, document):
        boards = rank(entries, chosen(arguments))
        if arguments.site:
            _write_site(arguments, entries, document, terminal)
    terminal.show(screen(boards, entries))
    write_json(arguments, terminal, [as_data(board) for board in boards])
    return Exit.YES if boards else Exit.NO


@contextmanager
def _source(
    arguments: argparse.Namespace, terminal: Terminal
) -> Iterator[tuple[list[Entry], Callable[[str], Document]]]:
    """Give the entries to rank, and a function that returns the report of one by its id."""
    folder, store = arguments.reports, arguments.store
    bundled = REPORTS if store == DEFAULT_STORE and REPORTS.is_dir() else None
    entries: list[Entry] = []
    if folder is None and not (bundled and not store.path.exists()):
        with open_store(store, key=arguments.key) as opened:
            entries = opened.entries()
            if bundled is None or rank(entries):
                yield entries, opened.document
                return
    if folder is not None and not folder.is_dir():
        raise UsageError(f"--reports: there is no folder {folder}.")
    if folder is None:
        folder = bundled
        terminal.note(
            "No score has been entered here yet: these are the reports that came with the judge. "
            "Enter your own with `grade my_kernel.cu --submit --author NAME`."
        )
        for sentence in _off_the_board((), entries):
            terminal.note(f"Entered here, {sentence}")
    reports = {one.document.id: one for one in read_folder(folder)}
    yield [one.entry for one in reports.values()], lambda id: reports[id].document


def _write_site(
    arguments: argparse.Namespace,
    entries: list[Entry],
    document: Callable[[str], Document],
    terminal: Terminal,
) -> None:
    site = Site(arguments.site, entries, chosen(arguments))
    site.write_boards()
    pages = list(terminal.track(site.write_entries(document), "Pages", len(site.entries)))
    for why in filter(None, pages):
        terminal.note(f"leaderboard: no page for {why}")
    terminal.note(
        f"{arguments.site / 'index.html'}: "
        f"submissions: {len(site.entries)}, pages written: {len(pages)}."
    )


_SHORT: dict[str | None, str] = {
    Badge.CUDA_CORES: "CUDA",
    Badge.TENSOR_CORES: "tensor",
    Badge.DEFAULT_LAUNCH: "default",
    Badge.DECLARED_LAUNCH: "declared",
}


def screen(boards: Sequence[Board], entries: Iterable[Entry]) -> RenderableType:
    """Return every board, and a sentence about the entries that are on none."""
    parts: list[RenderableType] = []
    for board in boards:
        parts.append(Text.assemble((board.gpu, "bold"), "  score = t(cuBLAS SGEMM) / t(kernel)"))
        rows = (*board.rows, *board.unranked)
        if rows:
            common = usual_facts(row.entry for row in rows)
            parts.append(_table(rows, common))
            parts.append(Text(f"Unless a row says otherwise: {', '.join(common.values())}.", "dim"))
        if board.scope:
            parts.append(Text(board.scope, "dim"))
        if board.unverified:
            parts += ["", *_unverified(board.unverified)]
        parts.append("")
    if not boards:
        parts.append("No score matches: nothing to rank.")
    parts += [Text(sentence, "dim") for sentence in _off_the_board(boards, entries)]
    return Group(*parts)


def _unverified(rows: Sequence[Row]) -> Iterator[RenderableType]:
    yield Text("Unverified results: no trusted key signed them, so they have no rank", "yellow")
    yield _table(rows, usual_facts(row.entry for row in rows))
    yield Text("`regrade` grades them here; `keys --trust KEY` trusts who signed them.", "dim")


def _table(rows: Sequence[Row], common: Facts) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Kernel", overflow="fold")
    for heading in ("Score", "95 % interval", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    graded = any(row.entry.accuracy for row in rows)
    for heading in ("Cores", "Launch", "Grade")[: 3 if graded else 2]:
        table.add_column(heading, no_wrap=True)
    for row in rows:
        entry = row.entry
        name = Text(entry.name, "bold")
        if row.rank is None and row.status is not Status.UNVERIFIED:
            name.append(f"\n{row.status}", "not bold yellow")
        differing = own_facts(entry, common)
        if differing:
            name.append(f"\n{', '.join(differing.values())}", "not bold dim")
        if row.variants > 1:
            name.append(f"\nbest of {row.variants} variants", "not bold dim")
        if row.duplicates:
            name.append(f"\nsame program as {', '.join(row.duplicates)}", "not bold yellow")
        if row.runs > 1:
            on = f" on {row.gpus} GPUs" if row.gpus > 1 else ""
            name.append(f"\nmedian of {row.runs} runs{on}", "not bold dim")
        table.add_row(
            "–" if row.rank is None else str(row.rank),
            name,
            Text(figures.ratio(entry.score), "bold"),
            figures.interval(row.low, row.high),
            figures.milliseconds(entry.kernel_ms),
            _SHORT.get(entry.cores, "–"),
            _SHORT.get(entry.launch, "–"),
            *([entry.accuracy or "–"] if graded else []),
        )
    return table


def _off_the_board(boards: Iterable[Board], entries: Iterable[Entry]) -> list[str]:
    """Return a sentence for each reason for which entries of the store are not ranked."""
    versions = {board.gpu: board.version for board in boards}
    counts = Counter(
        status(entry, versions.get(entry.device or "", Version.current())) for entry in entries
    )
    sentences = {
        Status.UNSCORED: "accepted without a score (no GPU, or no steady clock)",
        Status.QUICK: "quick",
        Status.UNSTEADY: "unsteady, with a wide interval",
        Status.NOT_ACCEPTED: "not accepted",
        Status.OTHER_VERSION: 'of another version of the judge; "regrade" grades them again',
    }
    return [
        f"{counts[reason]} not ranked: {sentence}."
        for reason, sentence in sentences.items()
        if counts[reason]
    ]
