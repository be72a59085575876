"""The ranking in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.leaderboard import words
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Board, Edition, Row, Standing, standing


def show(console: Console, boards: Sequence[Board], entries: Iterable[Entry]) -> None:
    """Every board, and a sentence about the entries that are on none."""
    for board in boards:
        console.print(Text(words.one_line(board.gpu), "bold"))
        console.print(
            f"Score: t(cuBLAS SGEMM) / t(kernel). {board.edition}.", style="dim", highlight=False
        )
        console.print(_table(board))
    if not boards:
        console.print("No scored result matches: nothing to rank.")
    for sentence in off_the_board(entries, Edition.current()):
        console.print(sentence, style="dim", highlight=False)


def off_the_board(entries: Iterable[Entry], edition: Edition) -> list[str]:
    """What else the store holds, one sentence a reason."""
    counts = Counter(standing(entry, edition) for entry in entries)
    sentences = {
        Standing.UNSCORED: "accepted without a score (no GPU, or no steady clock)",
        Standing.QUICK: "quick",
        Standing.NOT_ACCEPTED: "not accepted",
        Standing.REGRADE: f'of another edition than {edition}: "regrade" grades them again',
    }
    return [
        f"{counts[reason]} not ranked: {sentence}."
        for reason, sentence in sentences.items()
        if counts[reason]
    ]


def as_data(board: Board) -> dict[str, Any]:
    """A board for programs."""

    def row(line: Row) -> dict[str, Any]:
        return {
            "rank": line.rank,
            "standing": Standing.REGRADE if line.rank is None else Standing.RANKED,
            "runs": line.runs,
            "same_source_as": list(line.twins),
            **line.entry._asdict(),
        }

    return {
        "gpu": board.gpu,
        "judge": board.edition.judge,
        "cases": board.edition.cases,
        "rows": [row(line) for line in (*board.rows, *board.regrade)],
    }


def _table(board: Board) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Rank", justify="right", no_wrap=True)
    table.add_column("Kernel", overflow="fold")
    for heading in ("Score", "95 % interval", "ms", "TFLOP/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in (*board.rows, *board.regrade):
        entry = line.entry
        name = Text(words.one_line(entry.name), "bold")
        name.append(f" by {words.one_line(entry.author)}", "not bold")
        if line.twins:
            name.append(f"\n{words.twins(line.twins)}", "not bold yellow")
        name.append(f"\n{' · '.join(words.provenance(entry))}", "not bold dim")
        table.add_row(
            Text("regrade", "yellow") if line.rank is None else str(line.rank),
            name,
            Text(words.ratio(entry.score), "bold"),
            words.interval(entry),
            words.milliseconds(entry.kernel_ms),
            words.tflops(entry.tflops),
        )
    return table
