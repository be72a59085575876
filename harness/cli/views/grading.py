"""The screen of a grading: its verdict, and what limits the kernel; and a table of many."""

import statistics
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.cli.views.advice import advice
from harness.cli.views.explanation import facts, first_finding
from harness.cli.views.findings import (
    brief_message,
    counterexample,
    diagnostics,
    findings,
    source_line,
)
from harness.judge import figures
from harness.judge.explain.examination import from_report
from harness.judge.explain.explain import explain
from harness.judge.stages import accuracy
from harness.judge.stages.score import CLOCKS_AGREE
from harness.protocol.report import (
    Accepted,
    CompileError,
    Counterexample,
    Counters,
    DisassembledKernel,
    JudgeError,
    KernelFacts,
    Measurement,
    MemoryFault,
    Race,
    Report,
    Round,
    Score,
    Sustained,
    Verdict,
    WatchedBlocks,
)

_STYLES = {
    Verdict.ACCEPTED: "bold green",
    Verdict.UNSUPPORTED: "bold yellow",
    Verdict.JUDGE_ERROR: "bold magenta",
}


def verdict_style(verdict: Verdict) -> str:
    return _STYLES.get(verdict, "bold red")


def screen(report: Report) -> RenderableType:
    """Return one screen for one report.

    It ends with the verdict and, if the kernel is right, with what limits it.
    """
    parts = [*_parts(report), verdict_line(report, brief=True)]
    examined = from_report(report)
    if isinstance(report.outcome, Accepted) and examined is not None and examined.counters:
        parts.append(first_finding(explain(examined)))
    return Group(*parts)


def verdict_line(report: Report, brief: bool = False) -> Text:
    """Return the one line that matters.

    brief: the lines above it say already what is wrong.
    """
    verdict = report.verdict
    line = Text.assemble(
        (report.submission.name, "bold"), "  ", (verdict.value, verdict_style(verdict))
    )
    outcome = report.outcome
    if isinstance(outcome, Accepted):
        if isinstance(outcome.score, Score):
            score = outcome.score
            line.append(f"  {score.ratio:.3f} × cuBLAS", "bold")
            line.append(f"  (95 %: {score.low:.3f} to {score.high:.3f})")
            line.append("  quick" if report.quick else "")
        else:
            line.append(f"  no score: {outcome.score.message}")
    elif brief:
        line.append(brief_message(outcome))
    else:
        line.append(f"  {outcome.message}")
    return line


def _parts(report: Report) -> Iterable[RenderableType]:
    outcome = report.outcome
    yield facts(_rows(report))
    warnings = [found for found in report.diagnostics if found.severity != "error"]
    if warnings:
        yield from diagnostics(warnings, report.submission)
    if isinstance(outcome, CompileError):
        yield from diagnostics(outcome.diagnostics, report.submission)
    if isinstance(outcome, MemoryFault | Race):
        yield from findings(outcome.findings, report.submission)
    shown = getattr(outcome, "counterexample", None)
    if isinstance(shown, Counterexample):
        explained = isinstance(outcome, MemoryFault | Race) and bool(outcome.findings)
        yield from counterexample(shown, report.seed, explained)
    at = getattr(outcome, "at", None)
    if at is not None and at.line:
        yield Text(f"{report.submission.name}.cu:{at.line}", "bold")
        yield from source_line(report.submission, at.line, None)
    cure = advice(report)
    if cure is not None:
        yield Text(cure, "bold")
    if isinstance(outcome, JudgeError):
        yield Text("This is the judge's fault, not the submission's. Please report it:", "magenta")
        yield Text(outcome.details.strip()[-1500:] or outcome.message)
    if report.printed:
        yield Text("The kernel printed:", "dim")
        yield Text(report.printed[:400])


def _rows(report: Report) -> Iterable[tuple[str, str]]:
    if report.device is not None:
        device = report.device
        more = f", CUDA {device.driver}" if device.driver else ""
        yield "device", f"{device.name} ({device.arch}{more})"
        yield from (("", note) for note in device.notes)
    if report.kernel is not None:
        kernel = report.kernel
        yield "resources", figures.resources(kernel.resources)
        yield "occupancy", figures.occupancy(kernel.occupancy)
        launch, badges = kernel.launch, ""
        if isinstance(kernel, DisassembledKernel):
            badges = f"  [{', '.join(badge.value for badge in kernel.badges)}]"
        yield "launch", f"16×16 threads, tile {launch.tile_rows}×{launch.tile_columns}{badges}"
    if report.verification is not None:
        passed = report.verification
        yield "verify", figures.verification(passed)
        for result in passed.cases:
            if result.sampled_blocks and result.blocks:
                share = figures.share(result.sampled_blocks, result.blocks)
                is_ranked = result == passed.cases[-1] and not report.quick
                yield "", f"{'ranked size' if is_ranked else result.case.shape}: {share}"
        if passed.note:
            yield "", passed.note
    if report.accuracy is not None:
        yield "accuracy", accuracy.sentence(report.accuracy).removeprefix("accuracy ")
    for program in report.sanitizing:
        words = [
            tool.tool.value + ("" if tool.status == "clean" else f" {tool.status}")
            for tool in program.tools
        ]
        yield "sanitize", f"{program.program}: {', '.join(words)}"
        if program.ranked is not None:
            yield "", f"ranked size: {_watched(program.ranked)}"
        for tool in program.tools:
            if tool.status in ("unavailable", "dismissed") and tool.message:
                yield "", f"{tool.tool.value}: {tool.message}"
                break
    if report.counters is not None:
        yield "memory", _traffic(report.counters)
    if report.measurement is not None:
        yield from _measurement(report.measurement, report)
    if report.stages:
        spent = ", ".join(f"{time.stage.value} {time.seconds:.1f}" for time in report.stages)
        yield "seconds", spent
    yield "seed", f"{report.seed} (replay with --seed {report.seed})"


def _watched(ran: WatchedBlocks) -> str:
    """Return how many blocks were watched, and in how many only bounds were checked."""
    watched = figures.share(ran.watched, ran.blocks) if ran.watched else "no block ended in time"
    if ran.bounded == ran.blocks:
        return f"{watched}, bounds checked in all"
    return watched


def _traffic(counted: Counters) -> str:
    """Return the memory traffic per warp instruction: the minimum is 4 sectors and 1 wavefront."""
    words = []
    for name, cost, requests in (
        ("sectors per global load", counted.global_load_sectors, counted.global_load_requests),
        ("sectors per store", counted.global_store_sectors, counted.global_store_requests),
        (
            "wavefronts per shared load",
            counted.shared_load_wavefronts,
            counted.shared_load_requests,
        ),
    ):
        if requests:
            words.append(f"{cost / requests:.3g} {name}")
    words.append(f"{counted.bank_conflicts} bank conflicts")
    words.append(f"{counted.flop_per_global_byte:.3g} FLOP/byte")
    return ", ".join(words)


def _measurement(measured: Measurement, report: Report) -> Iterable[tuple[str, str]]:
    score = report.score
    if score is not None:
        share = f", {score.peak_share:.0%} of FP32 peak" if score.peak_share else ""
        yield (
            "time",
            f"{score.kernel_ms:.3f} ms, cuBLAS {score.baseline_ms:.3f} ms; "
            f"{score.tflops:.1f} TFLOP/s{share}",
        )
        at = _clocks(measured.rounds)
        if at:
            yield "", at
    if measured.sustained is not None:
        yield "back to back", _sustained(measured.sustained)
    if measured.by_inputs:
        slowest = measured.by_inputs[0]
        more = "" if slowest.scored else ", not scored"
        yield "slowest on", f"{slowest.inputs}: {slowest.ratio:.2f} × cuBLAS{more}"
    kept = [timed for timed in measured.rounds if not timed.dropped]
    clocks = [timed.clock_mhz for timed in kept] or [0]
    power = [timed.power_w for timed in kept] or [0]
    checked = measured.audit_error
    yield (
        "rounds",
        f"{len(measured.rounds)} ({len(measured.rounds) - len(kept)} dropped), "
        f"{min(clocks)} to {max(clocks)} MHz, {max(power):.0f} W"
        + (f"; full check {figures.error(checked)}" if checked is not None else ""),
    )
    for other in measured.sizes:
        shown = other.score
        words = (
            f"{shown.ratio:.3f} × cuBLAS ({shown.low:.3f} to {shown.high:.3f}), "
            f"{shown.kernel_ms:.3f} ms, {shown.tflops:.1f} TFLOP/s"
            if isinstance(shown, Score)
            else shown.message
        )
        yield f"{other.shape}", words
    first = measured.first_launch
    yield (
        "first launch",
        f"{first.first_launch_ms:.1f} ms, second {first.second_launch_ms:.1f}; before it: context "
        f"{first.context_ms:.0f}, compile {first.compile_ms:.0f}, load "
        f"{first.module_load_ms:.1f}, allocate {first.first_allocation_ms:.1f}",
    )
    for memory in measured.host_memory:
        yield (
            memory.kind.value,
            f"allocate {memory.allocate_ms:.1f} ms, fill {memory.fill_ms:.0f}, "
            f"to GPU {memory.to_device_ms:.1f} ({memory.to_device_gb_per_s:.0f} GB/s), "
            f"back {memory.to_host_ms:.1f}",
        )
    if len(measured.host_memory) == 2:
        pays = measured.pinning_pays_after
        yield (
            "",
            "pinned memory never pays off here"
            if pays is None
            else f"pinned memory pays off after {pays:.1f} round trips",
        )


def _clocks(rounds: Sequence[Round]) -> str:
    """Return the clocks of kernel and baseline if they differ, else an empty text."""
    kept = [each for each in rounds if not each.dropped]
    both = [
        statistics.median(cycles / ms / 1e3 for cycles, ms in found)
        for found in (
            [(each.kernel_cycles, each.kernel_ms) for each in kept if each.kernel_cycles],
            [(each.baseline_cycles, each.baseline_ms) for each in kept if each.baseline_cycles],
        )
        if found
    ]
    if len(both) < 2 or abs(both[0] / both[1] - 1) <= CLOCKS_AGREE:
        return ""
    return f"at {both[0]:.0f} MHz; cuBLAS at {both[1]:.0f} MHz"


def _sustained(found: Sustained) -> str:
    words = f"{found.ratio:.3f} × cuBLAS, {found.kernel_ms:.3f} ms"
    if found.kernel_joules is None or found.baseline_joules is None:
        return words
    return (
        f"{words}; {found.kernel_watts:.0f} W, {found.kernel_joules:.2f} J per product "
        f"(cuBLAS {found.baseline_watts:.0f} W, {found.baseline_joules:.2f} J)"
    )


def summary(reports: Sequence[Report]) -> Table:
    """Return a table of many gradings, best score first."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("submission", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for title in (*TIMES, *RESOURCES):
        table.add_column(title, justify="right", no_wrap=True)
    for report in sorted(reports, key=_order):
        table.add_row(
            report.submission.name,
            Text(report.verdict.value, verdict_style(report.verdict)),
            *time_cells(report.score),
            *resource_cells(report.kernel),
        )
    return table


TIMES = ("score", "95 %", "ms")
RESOURCES = ("regs", "spilled", "shared", "occ.")
"""Columns of a table of kernels."""


def time_cells(score: Score | None) -> list[str]:
    if score is None:
        return [""] * len(TIMES)
    return [f"{score.ratio:.3f}", f"{score.low:.3f}–{score.high:.3f}", f"{score.kernel_ms:.3f}"]


def resource_cells(kernel: KernelFacts | None) -> list[str]:
    if kernel is None:
        return [""] * len(RESOURCES)
    used = kernel.resources
    spilled = used.spill_store_bytes + used.spill_load_bytes
    counts = (used.registers, spilled, used.shared_bytes)
    return [*map(str, counts), f"{kernel.occupancy.fraction:.0%}"]


def _order(report: Report) -> tuple[float, str]:
    return (-report.score.ratio if report.score else 0.0, report.submission.name)
