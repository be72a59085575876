"""The screen of the tuner: a line for each variant, then a table, best score first."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.cli.views.console import SafeConsole
from harness.cli.views.grading import verdict_style
from harness.cli.views.progress import TerminalProgress
from harness.judge.tune.tunable import Setting, as_written
from harness.judge.tune.tune import Tuning, Variant
from harness.protocol.report import Accepted, DeviceKind, Score, Stage, Unscored

_TIMES = ("score", "95 %", "ms")
_RESOURCES = ("regs", "spilled", "shared", "occ.")
_KEPT_TABLE = re.compile(r"\n// Tuned by [^\n]*(\n//[^\n]*)*\n?\Z")


class TuningProgress(TerminalProgress):
    """The bar of the current variant, with a line above it for each earlier one."""

    def __init__(self, console: SafeConsole, name: str) -> None:
        super().__init__(console, name)
        self._console = console
        self._number = self._planned = 0
        self._setting = ""

    def plan(self, planned: int, possible: int, seed: int) -> None:
        self._planned = planned
        more = "" if planned == possible else f" with seed {seed}; --limit {possible} tries all"
        self._console.print(_extent(planned, possible) + more)

    def trying(self, number: int, setting: Setting) -> None:
        self._number, self._setting = number, describe(setting)

    def begin(self, stage: Stage, total: int | None) -> None:
        super().begin(stage, total)
        if self._planned and total is None:
            self.step(self._setting)

    def step(self, text: str) -> None:
        super().step(f"{self._number}/{self._planned} {text}")

    def found(self, sentences: Iterable[str]) -> None:
        """Show nothing: the line of each variant says it."""

    def tried(self, number: int, variant: Variant) -> None:
        line = Text.assemble(
            (f"{number:{len(str(self._planned))}}/{self._planned}  ", "dim"),
            describe(variant.setting),
            "  ",
            _verdict(variant),
        )
        if variant.score:
            line.append(f"  {_score(variant.score)}", "bold")
        self._console.print(line, no_wrap=True, overflow="ellipsis")


def describe(setting: Setting) -> str:
    return " ".join(f"{name}={as_written(value)}" for name, value in setting.items())


def screen(tuning: Tuning) -> RenderableType:
    """Return the table and the sentences under it."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in _titles(tuning):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict")
    for variant in _best_first(tuning):
        table.add_row(*_cells(tuning, variant), _verdict(variant))
    return Group(Text(), table, Text(), *_closing(tuning))


def kept(tuning: Tuning) -> str | None:
    """Return the best variant's file, with the table as a comment at its end; None if there is
    none.

    A table that an earlier tuning left there is replaced.
    """
    source = tuning.best_source
    if source is None:
        return None
    source = _KEPT_TABLE.sub("", source)
    return source + ("" if source.endswith("\n") else "\n") + "\n" + _comment(tuning)


def _comment(tuning: Tuning) -> str:
    device = tuning.device
    rows = [[*_titles(tuning), "verdict"]]
    for variant in _best_first(tuning):
        rows.append([*_cells(tuning, variant), variant.outcome.verdict.value])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"Tuned by matmul-arena {tuning.judge} on {device.name}"
        + (f" (CUDA {device.driver})" if device.driver else "")
        + f", {tuning.created:%Y-%m-%d}, seed {tuning.seed}:",
        f"{_tried(tuning)}; quick cases and quick rounds at the ranked size.",
        "",
    ]
    for *values, verdict in rows:
        padded = [value.rjust(width) for value, width in zip(values, widths, strict=False)]
        lines.append("  ".join([*padded, verdict]))
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _titles(tuning: Tuning) -> list[str]:
    names = list(tuning.variants[0].setting) if tuning.variants else []
    return [*names, *(_TIMES if _timed(tuning) else ()), *_RESOURCES]


def _cells(tuning: Tuning, variant: Variant) -> list[str]:
    score, kernel = variant.score, variant.kernel
    cells = [as_written(value) for value in variant.setting.values()]
    if _timed(tuning):
        cells += (
            [f"{score.ratio:.3f}", f"{score.low:.3f}–{score.high:.3f}", f"{score.kernel_ms:.3f}"]
            if score
            else [""] * len(_TIMES)
        )
    if kernel is None:
        return cells + [""] * len(_RESOURCES)
    used = kernel.resources
    return [
        *cells,
        str(used.registers),
        str(used.spill_store_bytes + used.spill_load_bytes),
        str(used.shared_bytes),
        f"{kernel.occupancy.fraction:.0%}",
    ]


def _verdict(variant: Variant) -> Text:
    outcome = variant.outcome
    shown = Text.assemble((outcome.verdict.value, verdict_style(outcome.verdict)))
    if not isinstance(outcome, Accepted):
        shown.append("  " + outcome.message.partition("\n")[0])
    elif isinstance(outcome.score, Unscored) and outcome.score.reason != "device":
        shown.append(f"  no score: {outcome.score.message}")
    shown.no_wrap, shown.overflow = True, "ellipsis"
    return shown


def _score(score: Score) -> str:
    return f"{score.ratio:.3f} × cuBLAS (95 %: {score.low:.3f} to {score.high:.3f})"


def _best_first(tuning: Tuning) -> list[Variant]:
    def order(variant: Variant) -> tuple[float, bool]:
        ratio = variant.score.ratio if variant.score else 0.0
        return -ratio, not isinstance(variant.outcome, Accepted)

    return sorted(tuning.variants, key=order)


def _timed(tuning: Tuning) -> bool:
    return tuning.device.kind is DeviceKind.CUDA


def _extent(planned: int, possible: int) -> str:
    if planned == possible:
        return f"{planned} variants"
    return f"{planned} of {possible} variants, drawn at random"


def _tried(tuning: Tuning) -> str:
    extent = _extent(tuning.planned, tuning.possible)
    tried = len(tuning.variants)
    return extent if tried == tuning.planned else f"{extent}, interrupted after {tried}"


def _closing(tuning: Tuning) -> list[Text]:
    lines = [Text(f"{tuning.device.name}; {_tried(tuning)}; seed {tuning.seed}", "dim")]
    best, before = tuning.best, tuning.as_it_stands
    if not _timed(tuning):
        return [*lines, Text("no times without a GPU: resources and verdicts only", "bold")]
    if best is None or best.score is None:
        return [*lines, Text("no variant has a score", "bold red")]
    rivals = sum(
        1
        for variant in tuning.variants
        if variant is not best and variant.score and variant.score.high >= best.score.low
    )
    if rivals:
        lines.append(Text(f"{rivals} more within its interval: grade them to tell which", "dim"))
    line = Text.assemble(("best: ", "bold"), describe(best.setting), "  ")
    line.append(_score(best.score), "bold")
    if best is before:
        line.append("; the file as it stands")
    elif before is not None and before.score:
        line.append(f"; {best.score.ratio / before.score.ratio:.3f} × the file as it stands")
    return [*lines, line]
