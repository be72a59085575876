"""One sentence that says how to cure a mistake that beginners make."""

import re

from harness.cli.views.advice_on_memory import misaligned, outside_of_memory, uninitialised
from harness.cli.views.advice_on_races import MBARRIERS, VOLATILE, of_barrier, of_race
from harness.cli.views.source_mistakes import (
    line_at,
    of_state,
    one_dimensional,
    order_of_matrices,
    order_of_sizes,
    plain_polling,
    sum_without_start,
    two_dynamic_arrays,
)
from harness.compiling.lexical import without_comments, without_text
from harness.protocol.report import (
    Counterexample,
    DeviceKind,
    Finding,
    Hazard,
    MemoryFault,
    Race,
    Report,
    Rule,
    RuleViolation,
    RuntimeFault,
    TimeLimit,
    WrongAnswer,
)

_TINY_FLOP = 1 << 20
_HAS_VOLATILE_DATA = re.compile(r"\bvolatile\b(?!\s*\()")
_WAITS_FOR_A_PHASE = re.compile(r"\b(?:test|try)_wait")


def advice(report: Report) -> str | None:
    """Return what to do about the verdict; None if the messages say it already."""
    outcome, source = report.outcome, report.submission.source
    if isinstance(outcome, RuleViolation) and outcome.rule is Rule.INPUTS_CHANGED:
        return order_of_matrices(source)
    if not isinstance(outcome, MemoryFault | Race | RuntimeFault | TimeLimit | WrongAnswer):
        return None
    if isinstance(outcome, RuntimeFault):
        if "bytes of shared memory per block" in outcome.message:
            return "Use smaller tiles or fewer of them at a time; each float takes 4 bytes."
        if "assertion" in outcome.message and "blockDim" in line_at(outcome.at, source):
            return (
                "A block has 16×16 threads: `blockDim.x` and `blockDim.y` are 16. Number the "
                "threads by `threadIdx.y * 16 + threadIdx.x`."
            )
        if "trap" in outcome.message and "this_grid()" in source:
            return (
                "`this_grid().sync()` needs a cooperative launch, and the judge makes ordinary "
                "ones: the blocks of a launch cannot all wait for each other."
            )
        return None
    in_source = (
        *(
            one_dimensional(source),
            order_of_sizes(source),
            sum_without_start(without_text(source)),
        ),
        two_dynamic_arrays(source),
    )
    if causes := [*filter(None, in_source)]:
        return " ".join(causes)
    if isinstance(outcome, MemoryFault | Race) and outcome.findings:
        return _of_finding(outcome.findings[0], report)
    if isinstance(outcome, TimeLimit):
        return _of_time(outcome, report)
    if isinstance(outcome, WrongAnswer):
        return _of_output(outcome.counterexample, report) or of_state(source)
    return of_state(source)


def _of_output(found: Counterexample, report: Report) -> str | None:
    pattern, many = found.pattern, 4 * found.wrong_blocks >= found.blocks
    if "low precision" in pattern:
        return (
            "TF32, FP16 and BF16 keep fewer bits than a float. Split each float into several such "
            "parts and add their products, as `solutions/30_mma_tf32x3.cu` does."
        )
    if "never written" in pattern and many and report.kernel is not None:
        launch = report.kernel.launch
        if (launch.tile_rows, launch.tile_columns) != (16, 16):
            return (
                f"The launch line declares a tile of {launch.tile_rows}×{launch.tile_columns}. "
                "If a block computes fewer elements, the launch has too few blocks: write the "
                "block's own tile there."
            )
    is_unexplained = "not finite" in pattern and "overflow" not in pattern
    if is_unexplained and "__shfl" in without_comments(report.submission.source):
        return "A shuffle may read only lanes that its mask names and that execute it, too."
    if any(
        words in pattern for words in ("far from the right", "are off by")
    ) and _HAS_VOLATILE_DATA.search(without_text(report.submission.source)):
        return VOLATILE
    return None


def _of_time(outcome: TimeLimit, report: Report) -> str | None:
    """Return why a kernel may not end in time; the messages say where it was."""
    if polled := plain_polling(report.submission.source):
        return polled.advice
    causes = []
    is_tiny = outcome.shape is not None and outcome.shape.flop <= _TINY_FLOP
    if state := of_state(report.submission.source):
        causes.append(state)
        causes.append(
            "A block may wait only for blocks that run at the same time: if a GPU has no room for "
            "more, the others begin when it ends."
        )
    if _WAITS_FOR_A_PHASE.search(line_at(outcome.at, report.submission.source)):
        causes.append(MBARRIERS)
    elif is_tiny:
        causes.append(
            "At this size any other kernel ends within a second, even here: the loop has no end. "
            "If it waits for a value, the thread that stores it may wait at a barrier."
        )
    elif report.device is not None and report.device.kind is DeviceKind.CPU:
        causes.append(
            "This device is much slower than a GPU, so a slow kernel may reach the limit here only."
        )
    return " ".join(causes) or None


def _of_finding(found: Finding, report: Report) -> str | None:
    match found.hazard:
        case Hazard.OUT_OF_BOUNDS:
            return outside_of_memory(found, report)
        case Hazard.MISALIGNED:
            return misaligned(found, report)
        case Hazard.UNINITIALISED:
            return uninitialised(found, report)
        case Hazard.RACE:
            return of_race(found, report)
        case _:
            return of_barrier(found, report)
