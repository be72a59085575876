"""The ranking in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness import figures
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Board, Edition, Standing, standing


def screen(boards: Sequence[Board], entries: Iterable[Entry]) -> RenderableType:
    """Every board, and a sentence about the entries that are on none."""
    parts: list[RenderableType] = []
    for board in boards:
        parts.append(Text(board.gpu, "bold"))
        parts.append(Text(f"Score: t(cuBLAS SGEMM) / t(kernel). {board.edition}.", "dim"))
        parts.append(_table(board))
    if not boards:
        parts.append("No scored result matches: nothing to rank.")
    parts += [Text(sentence, "dim") for sentence in _off_the_board(entries, Edition.current())]
    return Group(*parts)


def _off_the_board(entries: Iterable[Entry], edition: Edition) -> list[str]:
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


def _table(board: Board) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Rank", justify="right", no_wrap=True)
    table.add_column("Kernel", overflow="fold")
    for heading in ("Score", "95 % interval", "ms", "TFLOP/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in (*board.rows, *board.regrade):
        entry = line.entry
        name = Text(entry.name, "bold")
        name.append(f" by {entry.author}", "not bold")
        if line.twins:
            name.append(f"\nsame source as {', '.join(line.twins)}", "not bold yellow")
        name.append(f"\n{' · '.join(_provenance(entry))}", "not bold dim")
        table.add_row(
            Text("regrade", "yellow") if line.rank is None else str(line.rank),
            name,
            Text(figures.ratio(entry.score), "bold"),
            figures.interval(entry.low, entry.high),
            figures.milliseconds(entry.kernel_ms),
            figures.tflops(entry.tflops),
        )
    return table


def _provenance(entry: Entry) -> list[str]:
    """Where a score comes from, in short phrases; the GPU is the board's."""

    def or_dash(value: object | None) -> str:
        return "–" if value is None else str(value)

    return [
        *sorted(entry.badges),
        figures.minute(entry.created),
        f"{or_dash(entry.clock_mhz)} MHz",
        f"driver {or_dash(entry.driver)}",
        f"CUDA {or_dash(entry.cuda)}",
        f"judge {entry.judge}",
        f"seed {entry.seed}",
        entry.id[:8],
    ]
