"""Measure: first launch, host memory, then the steady state against the baseline; and what may wait
until others have the GPU."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace

from harness.judge.progress import Progress
from harness.judge.stages import interim
from harness.judge.stages.audit import Kept, audit, begin
from harness.judge.stages.outcomes import launch_outcome, load_outcome
from harness.judge.stages.rounds import FULL, OTHER_SIZE, QUICK, Timed, timed_rounds
from harness.judge.stages.score import possible_tflops, score
from harness.protocol.compiler import Kernel
from harness.protocol.device import Load, Refusal
from harness.protocol.report import (
    DeviceInfo,
    DisassembledKernel,
    HostMemory,
    HostMemoryKind,
    JudgeError,
    Measurement,
    Outcome,
    Rule,
    RuleViolation,
    Score,
    SizeScore,
    Stage,
    Unscored,
)
from harness.protocol.request import Fault
from harness.protocol.timing import (
    MeasureFirstLaunch,
    MeasureHostMemory,
    TimingWorkers,
)
from problem.cases import RANKED, Case, Shape

FEW_ROWS = 256
"""Rows of A and columns of B that the first launches have, repeated; one of them, chosen then, is
checked."""

MAX_LAUNCH_SECONDS = 5.0
"""Time limit of a launch at the ranked size on a GPU: the naive kernel takes 0.4 s on an H100. What
takes longer would hold the GPU for minutes and tell nothing."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known once the GPU is done; `audited` knows the rest."""

    score: Score | Unscored
    measurement: Measurement
    kept: Kept


def measure(
    workers: TimingWorkers,
    info: DeviceInfo,
    kernel: Kernel,
    disassembled: Callable[[], DisassembledKernel | Outcome],
    *,
    compile_seconds: float,
    host_memory: Sequence[HostMemoryKind],
    quick: bool,
    sizes: Sequence[Shape],
    seed: int,
    seconds: float,
    progress: Progress,
) -> Measured | Outcome:
    """Measure at the ranked size, and for information at other sizes.

    disassembled: waits for what the disassembler is at. seconds: time limit of one launch.
    """
    shape, device = RANKED.shape, workers.kernel
    progress.begin(Stage.MEASURE, None)
    progress.step("first launch")
    seconds = min(seconds, MAX_LAUNCH_SECONDS)
    rows, columns = Case(Shape(FEW_ROWS, shape.N, FEW_ROWS)).draw(seed)
    first = device.ask(
        MeasureFirstLaunch(
            kernel=kernel,
            shape=shape,
            rows=rows,
            columns=columns,
            compile_ms=compile_seconds * 1e3,
            fetch=1 + secrets.randbelow(2),  # type: ignore[arg-type]
            seconds=seconds,
        )
    )
    if isinstance(first, Fault):
        return launch_outcome(first, shape, seconds, Stage.MEASURE)
    if first.C.shape != (shape.M, shape.K):
        return JudgeError(stage=Stage.MEASURE, message="C of the first launch has another shape")
    progress.found(interim.of_first_launch(first.times))
    memories: list[HostMemory] = []
    for kind in host_memory:
        progress.step(f"{kind} host memory")
        memory = device.ask(MeasureHostMemory(memory=kind, shape=shape))
        if isinstance(memory, Fault):
            return launch_outcome(memory, shape, seconds, Stage.MEASURE)
        memories.append(memory)
    ready = device.ask(Load(kernel=kernel))
    if isinstance(ready, Fault):
        return load_outcome(ready, seconds)
    if isinstance(ready, Refusal):
        return JudgeError(stage=Stage.MEASURE, message=f"loaded once, then not: {ready.message}")
    first_product = begin(rows, columns, first.C)
    timed = timed_rounds(
        workers,
        QUICK if quick else FULL,
        baseline=False,
        seconds=seconds,
        progress=progress,
        audit=not quick,
        quiet=lambda: (wait([first_product]), disassembled()),
    )
    if not isinstance(timed, Timed):
        return timed
    others: list[SizeScore] = []
    for size in sizes:
        progress.step(f"{size}")
        other = timed_rounds(
            workers,
            OTHER_SIZE,
            baseline=False,
            seconds=seconds,
            progress=progress,
            shape=size,
            audit=False,
        )
        if not isinstance(other, Timed):
            return other
        others.append(SizeScore(shape=size, score=score(other.rounds, info, size)))
    measurement = Measurement(
        rounds=timed.rounds,
        warm_up_launches=timed.warm_up.launches,
        warm_up_seconds=timed.warm_up.seconds,
        stopped_by=timed.stopped_by,
        audit_error=None,
        first_launch=first.times,
        host_memory=tuple(memories),
        pinning_pays_after=_pinning_pays_after(memories),
        sizes=tuple(others),
    )
    known = disassembled()
    if not isinstance(known, DisassembledKernel):
        return known
    result = score(timed.rounds, info)
    violation = impossible(result, info, known)
    if violation is not None:
        return violation
    return Measured(result, measurement, Kept(first_product, timed.audited))


def audited(measured: Measured, seed: int, progress: Progress) -> Measured | Outcome:
    """With what the audit makes of the launches that were kept, for which no GPU is needed."""
    error = audit(measured.kept, seed, progress)
    if not isinstance(error, float | None):
        return error
    measurement = measured.measurement.model_copy(update={"audit_error": error})
    return replace(measured, measurement=measurement)


def impossible(
    result: Score | Unscored, info: DeviceInfo, kernel: DisassembledKernel
) -> RuleViolation | None:
    """The verdict for a score beyond what the GPU can do."""
    possible = possible_tflops(info, kernel)
    if isinstance(result, Unscored) or result.tflops <= possible:
        return None
    return RuleViolation(
        stage=Stage.MEASURE,
        rule=Rule.IMPOSSIBLE_SCORE,
        message=(
            f"{result.tflops:.1f} TFLOP/s is more than the GPU can do with this kernel's "
            f"machine code ({possible:.1f}); flagged for manual review"
        ),
    )


def _pinning_pays_after(memories: Sequence[HostMemory]) -> float | None:
    """Round trips after which the dearer allocation of pinned memory is paid for."""
    by_kind = {memory.kind: memory for memory in memories}
    pinned = by_kind.get(HostMemoryKind.PINNED)
    pageable = by_kind.get(HostMemoryKind.PAGEABLE)
    if pinned is None or pageable is None:
        return None

    def once(memory: HostMemory) -> float:
        return memory.allocate_ms + memory.fill_ms

    def each(memory: HostMemory) -> float:
        return memory.to_device_ms + memory.to_host_ms

    saved = each(pageable) - each(pinned)
    if saved <= 0:
        return None
    return max(0.0, (once(pinned) - once(pageable)) / saved)
