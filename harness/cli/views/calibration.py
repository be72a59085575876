"""The screen of a calibration: cuBLAS against itself, and the errors of three arithmetics."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from harness.judge.calibrate import Calibration
from harness.protocol.report import Score
from problem.reference import MAX_ERROR


def screen(found: Calibration) -> RenderableType:
    """Return a table of the score and the errors."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("device", found.device.name)
    score = found.score
    if isinstance(score, Score):
        interval = f"{score.ratio:.4f} (95 %: {score.low:.4f} to {score.high:.4f}), should be 1"
        table.add_row("cuBLAS beside itself", interval)
        table.add_row("time", f"{score.kernel_ms:.3f} ms, {score.tflops:.1f} TFLOP/s")
    else:
        table.add_row("cuBLAS beside itself", score.message)
    for precision in found.precision:
        times = precision.worst_block / MAX_ERROR
        verdict = "accepted" if times <= 1 else "rejected"
        table.add_row(
            f"worst block, {precision.arithmetic}",
            f"{precision.worst_block:.2g}, {times:.2g} times the limit: {verdict}",
        )
    return table
