"""Measure: first launch, host memory, then the steady state next to the baseline.

The outputs of two launches are compared with products of the CPU in the background. `audit` waits
for that, while others have the GPU.
"""

import secrets
from collections.abc import Sequence

from harness.judge.grading import Compared, Grading, Measured
from harness.judge.stages import accuracy
from harness.judge.stages.counterexample import wrong_answer
from harness.judge.stages.outcomes import Ended, finished
from harness.judge.stages.rounds import (
    FULL,
    OTHER_SIZE,
    QUICK,
    Measuring,
    check_near_sizes,
    load_kernel,
    timed_rounds,
)
from harness.judge.stages.score import possible_tflops, score
from harness.judge.stages.verify import prepare, run_cases
from harness.judge.steps import Executor, Step, Steps
from harness.protocol.report import (
    DeviceInfo,
    DisassembledKernel,
    HostMemory,
    HostMemoryKind,
    JudgeError,
    Measurement,
    Rule,
    RuleViolation,
    Score,
    SizeScore,
    Stage,
    Unscored,
)
from harness.protocol.timing import (
    Fetched,
    FirstLaunches,
    MeasureFirstLaunch,
    MeasureHostMemory,
    TimingWorkers,
)
from problem.cases import UNIFORM, Case
from problem.problem import Problem
from problem.reference import MAX_ERROR

MAX_LAUNCH_SECONDS = 5.0
"""Time limit of a launch at the ranked size on a GPU. The naive kernel takes 0.4 s on an H100; a
kernel at this limit would hold the GPU for minutes."""


def measure(grading: Grading) -> None:
    """Measure at the ranked size, and for information at other sizes."""
    problem, progress, workers = grading.problem, grading.progress, grading.session.timing
    assert workers is not None
    progress.begin(Stage.MEASURE, None)
    shape, info = problem.ranked.shape, grading.session.info
    seconds = min(grading.options.seconds, MAX_LAUNCH_SECONDS)
    first = _first_launches(grading, workers, seconds)
    memories = () if grading.quick else _host_memory(grading, workers, seconds)
    load_kernel(workers, grading.kernel)
    parts = problem.first_inputs(grading.seed)
    compared = Step(
        Executor.JUDGE, "first launch", lambda _: problem.compare_first(parts, first.output)
    )
    grading.steps.start(compared)
    timed = timed_rounds(
        Measuring(workers, problem, shape, seconds),
        QUICK if grading.quick else FULL,
        progress,
        quiet=lambda: grading.steps.get(compared),
    )
    audited = None
    if timed.audited is not None:
        audited = _comparing(problem, timed.audited)
        grading.steps.start(audited)
    if not grading.quick:
        wrong = check_near_sizes(workers, problem, seconds, progress)
        if wrong is not None:  # verification runs the case again, and says what is wrong with C
            failure = run_cases(grading, [prepare(problem, wrong.case, grading.seed)], [])
            raise Ended(failure.outcome if failure else wrong.outcome)
    others = []
    for size in problem.other_sizes if grading.options.sizes else ():
        progress.step(f"{size}")
        found = timed_rounds(Measuring(workers, problem, size, seconds), OTHER_SIZE, progress)
        others.append(SizeScore(shape=size, score=score(found.rounds, info, size)))
    measurement = Measurement(
        rounds=timed.rounds,
        stopped_by=timed.stopped_by,
        audit_error=None,
        first_launch=first.times,
        host_memory=memories,
        pinning_pays_after=_pinning_pays_after(memories),
        sizes=tuple(others),
        by_inputs=timed.by_inputs,
        sustained=timed.sustained,
    )
    if timed.accuracy:
        accuracy.add(grading, shape, problem.baseline, timed.accuracy)
    grading.measured = Measured(score(timed.rounds, info, shape), measurement, compared, audited)


def _first_launches(grading: Grading, workers: TimingWorkers, seconds: float) -> FirstLaunches:
    """Measure the costs that a program has once, in a process that has not used the GPU."""
    arguments = grading.problem.arguments(grading.problem.ranked.shape)
    grading.progress.step("first launch")
    compiling = sum(each.seconds for each in grading.times if each.stage is Stage.COMPILE)
    request = MeasureFirstLaunch(
        kernel=grading.kernel,
        arguments=arguments,
        parts=grading.problem.first_inputs(grading.seed),
        compile_ms=compiling * 1e3,
        fetch=1 + secrets.randbelow(2),  # type: ignore[arg-type]
        seconds=seconds,
    )
    first = finished(workers.kernel.ask(request), arguments.shape, seconds, Stage.MEASURE)
    if first.output.shape != (arguments.output.rows, arguments.output.columns):
        message = f"{arguments.output.name} of the first launch has another shape"
        raise Ended(JudgeError(stage=Stage.MEASURE, message=message))
    times = first.times
    sentence = (
        f"first launch {times.first_launch_ms:.1f} ms, second {times.second_launch_ms:.1f} ms"
    )
    grading.progress.found([sentence])
    return first


def _host_memory(
    grading: Grading, workers: TimingWorkers, seconds: float
) -> tuple[HostMemory, ...]:
    """Measure each kind of host memory."""
    arguments = grading.problem.arguments(grading.problem.ranked.shape)
    found = []
    for kind in HostMemoryKind:
        grading.progress.step(f"{kind} host memory")
        memory = workers.kernel.ask(MeasureHostMemory(memory=kind, arguments=arguments))
        found.append(finished(memory, arguments.shape, seconds, Stage.MEASURE))
    return tuple(found)


def audit(grading: Grading) -> None:
    """Check that the GPU can reach the score, and compare the launches that were kept with the
    product of the CPU."""
    measured, disassembled = grading.measured, grading.disassembled
    assert measured is not None and disassembled is not None
    too_fast = impossible(measured.score, grading.session.info, disassembled.kernel)
    if too_fast is not None:
        raise Ended(too_fast)
    grading.progress.step("product of the first launch on the CPU")
    first = grading.steps.get(measured.first)
    if not first.passed:
        message = (
            "right when verified, wrong in the first launches of a process: the error is "
            f"{first.worst / MAX_ERROR:.3g} times the limit"
        )
        raise Ended(RuleViolation(stage=Stage.MEASURE, rule=Rule.STALE_RESULT, message=message))
    error = None
    if measured.audit is not None:
        grading.progress.step("full product of a timed launch on the CPU")
        timed = grading.steps.get(measured.audit)
        if not timed.comparison.passed:
            raise Ended(wrong_answer(grading.problem, Stage.MEASURE, grading.seed, timed))
        error = timed.comparison.worst
    grading.measurement = measured.measurement.model_copy(update={"audit_error": error})


def _comparing(problem: Problem, fetched: Fetched) -> Step[Compared]:
    """Return the step that compares the output of a timed launch with the full product."""

    def run(_: Steps) -> Compared:
        case, output = Case(problem.ranked.shape, UNIFORM), fetched.output
        inputs = problem.draw(case, fetched.seed)
        return Compared(case, inputs, output, problem.compare(case, inputs, output))

    return Step(Executor.JUDGE, "timed launch", run)


def impossible(
    result: Score | Unscored, info: DeviceInfo, kernel: DisassembledKernel
) -> RuleViolation | None:
    """Return the verdict for a score that the GPU cannot reach; None for other scores."""
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
    """Return the round trips after which pinned memory has saved the time of its allocation."""
    if not memories:
        return None
    by_kind = {memory.kind: memory for memory in memories}
    pinned, pageable = by_kind[HostMemoryKind.PINNED], by_kind[HostMemoryKind.PAGEABLE]

    def once(memory: HostMemory) -> float:
        return memory.allocate_ms + memory.fill_ms

    def each(memory: HostMemory) -> float:
        return memory.to_device_ms + memory.to_host_ms

    saved = each(pageable) - each(pinned)
    return max(0.0, (once(pinned) - once(pageable)) / saved) if saved > 0 else None
