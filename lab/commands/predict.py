"""Compare predictions of `explain` with the times that the judge measured.

Every file of solutions/ is explained on the CPU device; the measured times are
those of the reports. The kernels of tests/judge/explain/kernels are explained,
too; `lab measure` wrote their times and counters.

It takes some minutes: large kernels take long to compile and to translate.

example:
  python3 -m lab predict --out predictions.md
"""

import argparse
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.commands.grade import SOLUTIONS
from harness.cli.views.console import Terminal
from harness.judge.examine import examine
from harness.judge.explain.evidence import Evidence
from harness.judge.explain.examination import Examination
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Explanation
from harness.judge.explain.gpu import gpu_named, gpu_of
from harness.judge.explain.rules import RULES, advice
from harness.judge.grading import GradingOptions
from harness.judge.submission import read
from harness.judge.workers.session import open_session
from harness.protocol.errors import UsageError
from harness.protocol.files import write_whole
from harness.protocol.report import Report, Value
from lab.commands.measure import KERNELS, Measured, agrees, read_measurements

REPORTS = SOLUTIONS.parent / "reports" / "h200"

LONG_SECONDS = 600.0
"""The time limit for counting one kernel, long enough for a busy machine."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reports",
        type=Path,
        default=REPORTS,
        metavar="FOLDER",
        help="accepted reports of the solutions on one GPU (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, metavar="TABLE.md", help="write the tables")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write them as JSON")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    reports = {path.stem: path for path in sorted(arguments.reports.glob("*.json"))}
    measured: dict[str, float] = {}
    gpu = None
    for name, path in reports.items():
        report = Report.model_validate_json(path.read_bytes())
        if report.score is not None:
            measured[name] = report.score.kernel_ms
            gpu = gpu_of(report.device) or gpu
    if gpu is None:
        raise UsageError(f"{arguments.reports} has no accepted reports of a GPU")
    kernels = read_measurements(KERNELS / "measured.json")
    slow = kernels.kernels if kernels is not None else {}
    files = [SOLUTIONS / f"{name}.cu" for name in sorted(measured)]
    files += [KERNELS / f"{name}.cu" for name in slow]
    evidence: dict[str, Evidence] = {}
    explained: dict[str, Explanation] = {}
    options = GradingOptions(quick=True, counting_seconds=LONG_SECONDS)
    with open_session("cpu") as session:
        for file in terminal.track(files, "explaining", len(files)):
            examined = examine(read(file), session, options)
            if not isinstance(examined, Examination):
                terminal.note(f"{file.stem} could not be explained")
                continue
            there = gpu if kernels is None or file.stem in measured else gpu_named(kernels.gpu)
            explained[file.stem] = explain(examined, there)
            if examined.counters is not None:
                evidence[file.stem] = Evidence.of(examined.kernel, examined.counters, gpu)
    predictions = predict(gpu.name, evidence, measured, explained)
    others = tuple(of_kernel(explained[name], slow[name]) for name in slow if name in explained)
    if kernels is not None:
        update = {"kernels": others, "kernels_gpu": kernels.gpu}
        predictions = predictions.model_copy(update=update)
    text = markdown(predictions)
    if arguments.out is not None:
        write_whole(arguments.out, text)
    if arguments.json is not None:
        write_whole(arguments.json, predictions.model_dump_json(indent=1) + "\n")
    terminal.show(text)
    return Exit.YES


@dataclass(frozen=True, slots=True)
class Step:
    """A step from one file to another. rule: the rule that recommends it, if there is one."""

    before: str
    after: str
    rule: str | None


STEPS = (
    Step("01_naive", "03_coalesced", "uncoalesced"),
    Step("01_naive", "02_shared_tile", "read-again"),
    Step("03_coalesced", "02_shared_tile", "read-again"),
    Step("02_shared_tile", "04_padded_tile", None),
    Step("02_shared_tile", "05_transposed_b", None),
    Step("02_shared_tile", "08_block_tile_2d", "few-products-per-load"),
    Step("06_outputs_per_thread", "07_block_tile_1d", None),
    Step("06_outputs_per_thread", "09_vector_loads", "few-products-per-load"),
    Step("07_block_tile_1d", "09_vector_loads", "few-products-per-load"),
    Step("08_block_tile_2d", "09_vector_loads", "narrow-loads"),
    Step("09_vector_loads", "10_no_bank_conflicts", "bank-conflicts"),
    Step("10_no_bank_conflicts", "11_double_buffering", "waits"),
    Step("11_double_buffering", "12_warp_tiling", None),
    Step("11_double_buffering", "15_thread_tile_16x8", "overhead"),
    Step("12_warp_tiling", "13_async_copies", None),
    Step("13_async_copies", "14_bulk_copies", None),
    Step("13_async_copies", "15_thread_tile_16x8", "overhead"),
    Step("15_thread_tile_16x8", "16_register_banks", "register-banks"),
    Step("16_register_banks", "17_split_tail", "last-wave"),
    Step("17_split_tail", "18_default_launch", None),
    Step("17_split_tail", "19_strassen_two_phases", None),
    Step("19_strassen_two_phases", "20_strassen_two_levels", None),
    Step("17_split_tail", "21_split_along_n", None),
    Step("16_register_banks", "33_wgmma_two_phase", "tensor-cores"),
    Step("30_mma_tf32x3", "31_mma_bf16x3", "tf32-products"),
    Step("31_mma_bf16x3", "32_wgmma_split_while_loading", "mma-sync"),
    Step("32_wgmma_split_while_loading", "33_wgmma_two_phase", "split-in-loop"),
    Step("33_wgmma_two_phase", "34_wgmma_fp16_scaled", None),
    Step("33_wgmma_two_phase", "36_wgmma_one_accumulator", "equal-products"),
    Step("34_wgmma_fp16_scaled", "36_wgmma_one_accumulator", "equal-products"),
)


class Prediction(Value):
    """The gain of a step: predicted by the rule or, without a rule, by the estimates of both
    files."""

    before: str
    after: str
    rule: str | None
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


class Estimate(Value):
    """The time of a file: estimated by the model, and measured by the judge."""

    name: str
    estimated_ms: float | None
    """None if accesses at the ranked size could not be counted."""
    measured_ms: float
    first: str = ""
    """The rule of the first finding."""
    agrees: bool | None = None
    """Whether hardware counters agree with it; None if they were not read."""

    @property
    def error(self) -> float | None:
        return self.estimated_ms / self.measured_ms - 1 if self.estimated_ms else None


class Predictions(Value):
    gpu: str
    steps: tuple[Prediction, ...]
    estimates: tuple[Estimate, ...]
    kernels: tuple[Estimate, ...] = ()
    """Estimates of kernels that are each slow for a different reason."""
    kernels_gpu: str = ""

    @property
    def typical_error(self) -> float:
        """The median factor between predicted and measured gains, less 1."""
        ratios = (step.predicted / step.measured for step in self.steps)
        return math.exp(statistics.median(abs(math.log(ratio)) for ratio in ratios)) - 1


def errors(estimates: Iterable[Estimate]) -> tuple[float, ...]:
    """Return the absolute errors of the files with an estimate, the smallest first."""
    return tuple(sorted(abs(each.error) for each in estimates if each.error is not None))


def predict(
    gpu: str,
    evidence: Mapping[str, Evidence],
    measured_ms: Mapping[str, float],
    explained: Mapping[str, Explanation],
) -> Predictions:
    """Predict all steps and files for which evidence and a measured time exist."""

    def predicted(step: Step) -> float | None:
        if step.rule is not None and step.before in evidence:
            chosen = tuple(each for each in RULES if each.name == step.rule)
            return next((found.gain for found in advice(evidence[step.before], chosen)), 1.0)
        before, after = (explained[name].estimated_ms for name in (step.before, step.after))
        return before / after if before and after else None

    known = explained.keys() & measured_ms.keys()
    return Predictions(
        gpu=gpu,
        steps=tuple(
            Prediction(
                before=step.before,
                after=step.after,
                rule=step.rule,
                predicted=gain,
                measured=measured_ms[step.before] / measured_ms[step.after],
            )
            for step in STEPS
            if {step.before, step.after} <= known and (gain := predicted(step)) is not None
        ),
        estimates=tuple(
            of_kernel(explained[name], Measured(ms=measured_ms[name]))
            for name in sorted(measured_ms.keys() & explained.keys())
        ),
    )


def of_kernel(explanation: Explanation, measured: Measured) -> Estimate:
    """Return the estimate of a kernel and its measured time."""
    first = explanation.findings[0].rule if explanation.findings else ""
    return Estimate(
        name=explanation.name,
        estimated_ms=explanation.estimated_ms,
        measured_ms=measured.ms,
        first=first,
        agrees=agrees(first, measured),
    )


def _typical(estimates: Iterable[Estimate]) -> str:
    known = errors(estimates)
    return f"The median error is {statistics.median(known):.0%}, the largest {known[-1]:.0%}."


def _table(estimates: Iterable[Estimate]) -> Iterable[str]:
    yield "| file | estimated, ms | measured, ms | error | first finding | `ncu` agrees |"
    yield "|---|---:|---:|---:|---|---|"
    for each in estimates:
        estimated, error = "–", "–"
        if each.estimated_ms is not None and each.error is not None:
            estimated, error = f"{each.estimated_ms:.2f}", f"{each.error:+.0%}"
        agrees = "–" if each.agrees is None else "yes" if each.agrees else "no"
        cells = (each.name, estimated, f"{each.measured_ms:.2f}", error, each.first or "–", agrees)
        yield f"| {' | '.join(cells)} |"


def markdown(predictions: Predictions) -> str:
    """Return all tables in Markdown."""
    lines = [
        "# Predictions compared with measurements",
        "",
        f"`explain` predicts gains and times for an {predictions.gpu} without using a GPU. This",
        "page compares them with measurements. `python3 -m lab predict --out` writes it.",
        "",
        "## The gain of each step",
        "",
        "The predicted gain is that of the step's rule in the explanation of the file before.",
        "For a step that no rule recommends, it is the ratio of the estimates of both files, as",
        f"`explain --against` shows it. The median error is {predictions.typical_error:.0%}.",
        "For comparison, the published advisor GPA reports a mean estimate of 1.21 and a mean",
        "measured gain of 1.19.",
        "",
        "| step | rule | predicted | measured | error |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| {step.before} → {step.after} | {step.rule or '–'} | {step.predicted:.2f}× | "
        f"{step.measured:.2f}× | {step.error:+.0%} |"
        for step in predictions.steps
    ]
    lines += [
        "",
        "## The time of each file",
        "",
        _typical(predictions.estimates),
        "The estimates of 19 and 20 use their machine code only: their branches depend on the",
        "sizes, so accesses cannot be counted.",
        "",
        *_table(predictions.estimates),
    ]
    if predictions.kernels:
        known = [each.agrees for each in predictions.kernels if each.agrees is not None]
        lines += [
            "",
            "## Kernels that are each slow for a different reason",
            "",
            "They are in `tests/judge/explain/kernels`, explained for the GPU on which they were",
            f"measured, an {predictions.kernels_gpu}. {_typical(predictions.kernels)}",
            "The first finding agrees with the busiest unit or the largest stall reason that `ncu`",
            f"measured, in {sum(known)} of {len(known)} kernels.",
            "",
            *_table(predictions.kernels),
        ]
    return "\n".join(lines).replace("+-", "-") + "\n"
