"""Find the best constants of a kernel file.

Compile, check and time every variant of a file, as a quick grading does.

A comment after a constant lists the values to try. The launch line may depend
on the file's constants:
  constexpr int BK = 16;  // tune: 8 16 32
  // tune: solve tile={BM}x{BN} shared_memory={4 * BK * (BM + BN)}

examples:
  Write the fastest variant to a file:
    python3 -m harness tune --out best.cu my_kernel.cu
  Try 20 variants, drawn at random:
    python3 -m harness tune --limit 20 my_kernel.cu
  Check all variants without a GPU, and so without times:
    python3 -m harness tune --device cpu my_kernel.cu

Ctrl-C ends the tuning and shows the table so far.

exit codes:
  0    A variant was accepted.
  1    None was.
  2    Wrong usage, or a fault of the judge.
  130  Interrupted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.cli.commands._arguments import add_json, add_seed, number, write_json
from harness.cli.commands._command import Exit, reason
from harness.cli.views.console import SafeConsole, Terminal
from harness.cli.views.grading import RESOURCES, TIMES, resource_cells, time_cells, verdict_style
from harness.cli.views.progress import TerminalProgress
from harness.devices.available import why_no_cuda
from harness.judge.grading import GradingOptions
from harness.judge.submission import read_kernel
from harness.judge.tune.tunable import Setting, as_written, find_tunables
from harness.judge.tune.tune import Tuning, Variant, tune
from harness.judge.workers import session as workers
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Accepted, DeviceKind, Score, Unscored


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a kernel file with `// tune:` comments"
    )
    parser.add_argument("--out", type=Path, metavar="BEST.cu", help="write the best variant")
    add_json(parser, "the table")
    parser.add_argument(
        "--limit",
        type=number("a limit is a whole number", 1, 10**9),
        default=100,
        metavar="N",
        help="the largest number of variants to try (default: %(default)s)",
    )
    add_seed(parser, "draw the same sample and inputs as the tuning with this seed")
    parser.add_argument(
        "--device",
        choices=("cuda", "cpu"),
        default="cuda",
        help="cpu: resources and verdicts without a GPU, but no times",
    )
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    submission, limit = read_kernel(arguments.file), arguments.limit
    _check_options(arguments)
    options = GradingOptions(quick=True, seed=arguments.seed)
    try:
        possible = find_tunables(submission.source).count
    except UsageError as error:
        raise UsageError(f"{arguments.file}: {error}") from None
    all_of_them = f"; --limit {possible} tries all" if possible > limit else ""
    terminal.show(_extent(min(limit, possible), possible) + all_of_them)
    with (
        workers.open_session(arguments.device) as session,
        TuningProgress(terminal.results, min(limit, possible)) as progress,
    ):
        tuning = tune(
            submission, session, progress, options, limit, progress.trying, progress.tried
        )
    terminal.show(screen(tuning))
    try:
        write_json(arguments, terminal, tuning)
        if arguments.out is not None and tuning.best_source is not None:
            write_whole(arguments.out, tuning.best_source)
            terminal.show(f"written to {arguments.out}; now grade it")
    except OSError as error:
        raise UsageError(f"the result was not kept: {reason(error)}") from None
    if len(tuning.variants) < tuning.planned:
        return Exit.INTERRUPTED
    accepted = any(isinstance(each.outcome, Accepted) for each in tuning.variants)
    return Exit.YES if accepted else Exit.NO


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options with which a tuning could not give a result."""
    if arguments.out is not None and arguments.device == "cpu":
        raise UsageError("--out keeps the fastest variant, which only a GPU can tell")
    missing = why_no_cuda() if arguments.device == "cuda" else None
    if missing is not None:
        raise UsageError(f"times need a GPU: {missing}; --device cpu shows all else")


class TuningProgress(TerminalProgress):
    """The bar of the current variant, with a line above it for each earlier one."""

    def __init__(self, console: SafeConsole, planned: int) -> None:
        super().__init__(console, "")
        self._console, self._planned, self._number = console, planned, 0

    def trying(self, setting: Setting) -> None:
        self._number += 1
        self.name = f"{self._number}/{self._planned} {describe(setting)}"

    def found(self, sentences: Iterable[str]) -> None:
        """Show nothing: the line of each variant says it."""

    def tried(self, variant: Variant) -> None:
        line = Text.assemble(
            (f"{self._number:{len(str(self._planned))}}/{self._planned}  ", "dim"),
            describe(variant.setting),
            "  ",
            _verdict(variant),
        )
        if variant.score:
            line.append(f"  {_score(variant.score)}", "bold")
        self._console.print(line, no_wrap=True, overflow="ellipsis")


def describe(setting: Setting) -> str:
    return " ".join(f"{name}={value}" for name, value in _values(setting).items())


def _values(setting: Setting) -> dict[str, str]:
    return {name: as_written(value) for name, value in setting.items()}


def screen(tuning: Tuning) -> RenderableType:
    """Return the table, best first, and the sentences under it."""
    timed = tuning.device.kind is DeviceKind.CUDA
    names = tuning.variants[0].setting if tuning.variants else ()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in (*names, *(TIMES if timed else ()), *RESOURCES):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict")

    def order(variant: Variant) -> tuple[float, bool]:
        ratio = variant.score.ratio if variant.score else 0.0
        return -ratio, not isinstance(variant.outcome, Accepted)

    for variant in sorted(tuning.variants, key=order):
        table.add_row(
            *_values(variant.setting).values(),
            *(time_cells(variant.score) if timed else ()),
            *resource_cells(variant.kernel),
            _verdict(variant),
        )
    return Group(Text(), table, Text(), *_closing(tuning, timed))


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


def _extent(planned: int, possible: int) -> str:
    if planned == possible:
        return f"{planned} variants"
    return f"{planned} of {possible} variants, drawn at random"


def _closing(tuning: Tuning, timed: bool) -> list[Text]:
    extent, tried = _extent(tuning.planned, tuning.possible), len(tuning.variants)
    if tried < tuning.planned:
        extent += f", interrupted after {tried}"
    lines = [Text(f"{tuning.device.name}; {extent}; seed {tuning.seed}", "dim")]
    best, before = tuning.best, tuning.original
    if not timed:
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
