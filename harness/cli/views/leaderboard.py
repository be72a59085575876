"""The ranking in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.board import provenance
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.ranking import Board, Row, Standing, standing
from harness.judge import figures
from harness.protocol.report import Badge

_SHORT: dict[str | None, str] = {
    Badge.CUDA_CORES: "CUDA",
    Badge.TENSOR_CORES: "tensor",
    Badge.DEFAULT_LAUNCH: "default",
    Badge.DECLARED_LAUNCH: "declared",
}


def screen(boards: Sequence[Board], entries: Iterable[Entry]) -> RenderableType:
    """Every board, and a sentence about the entries that are on none."""
    parts: list[RenderableType] = []
    for board in boards:
        parts.append(Text.assemble((board.gpu, "bold"), "  score = t(cuBLAS SGEMM) / t(kernel)"))
        parts.append(_table(board))
        parts += [Text(sentence, "dim") for sentence in _below(board)]
        parts.append("")
    if not boards:
        parts.append("No scored result matches: nothing to rank.")
    parts += [Text(sentence, "dim") for sentence in _off_the_board(entries, Edition.current())]
    return Group(*parts)


def _rows(board: Board) -> tuple[Row, ...]:
    return (*board.rows, *board.unranked)


def _table(board: Board) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Kernel", overflow="fold")
    for heading in ("Score", "95 % interval", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("Cores", "Launch"):
        table.add_column(heading, no_wrap=True)
    common = provenance.shared(row.entry for row in _rows(board))
    mixed = len({row.entry.own for row in _rows(board)}) > 1
    for row in _rows(board):
        entry = row.entry
        name = Text(entry.name, "bold")
        differing = provenance.own(entry, common)
        if differing:
            name.append(f"\n{', '.join(differing.values())}", "not bold dim")
        if row.twins:
            name.append(f"\nsame source as {', '.join(row.twins)}", "not bold yellow")
        if row.gpus > 1:
            name.append(f"\nmean of {row.gpus} GPUs", "not bold dim")
        if mixed and not entry.own:
            name.append("\nclaim", "not bold yellow")
        table.add_row(
            Text(row.standing, "yellow") if row.rank is None else str(row.rank),
            name,
            Text(figures.ratio(row.score), "bold"),
            figures.interval(row.low, row.high),
            figures.milliseconds(entry.kernel_ms),
            _SHORT.get(entry.cores, "–"),
            _SHORT.get(entry.launch, "–"),
        )
    return table


def _below(board: Board) -> Iterator[str]:
    """What is the same for all rows, once; and what the board itself vouches for."""
    common = provenance.shared(row.entry for row in _rows(board))
    yield f"All {', '.join(common.values())}."
    if board.said_of_gpus:
        yield board.said_of_gpus
    own = [row.entry.own for row in _rows(board)]
    if not any(own):
        yield "None of these was graded and signed by this board's own judge: all are claims."
    elif not all(own):
        count = own.count(False)
        yield (
            f"{count} {'claim was' if count == 1 else 'claims were'} not graded and signed by this "
            "board's own judge; `regrade --claims` does that."
        )


def _off_the_board(entries: Iterable[Entry], edition: Edition) -> list[str]:
    """What else the store holds, one sentence a reason."""
    counts = Counter(standing(entry, edition) for entry in entries)
    sentences = {
        Standing.UNSCORED: "accepted without a score (no GPU, or no steady clock)",
        Standing.QUICK: "quick",
        Standing.UNSTEADY: "unsteady, with an interval too wide to tell it from others",
        Standing.NOT_ACCEPTED: "not accepted",
        Standing.REGRADE: f'of another edition than {edition}: "regrade" grades them again',
    }
    return [
        f"{counts[reason]} not ranked: {sentence}."
        for reason, sentence in sentences.items()
        if counts[reason]
    ]
