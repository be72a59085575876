"""Sanitize: memcheck, racecheck, initcheck and synccheck on secret shapes with partial tiles.

On a GPU, compute-sanitizer and, in a full grading, the CPU device check the same cases at the same
time. On the CPU device one launch is enough for all tools. Both run next to the verification.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from harness.devices.guards import merged
from harness.judge.grading import Compared, Failure, Grading, launch_inputs
from harness.judge.stages.compile import loading
from harness.judge.stages.counterexample import wrong_answer
from harness.judge.stages.outcomes import Ended, launch_outcome, touched
from harness.judge.steps import Executor, Step, Steps
from harness.protocol.device import Sanitize, Sanitized
from harness.protocol.report import (
    Counterexample,
    Finding,
    Hazard,
    JudgeError,
    MemoryFault,
    Outcome,
    Race,
    Sanitizing,
    Stage,
    TimeLimit,
    Tool,
    ToolRun,
    Unsupported,
    WrongAnswer,
)
from harness.protocol.request import Fault
from problem.cases import Case, Shape

SECONDS = 120.0
"""Time limit of each program: all tools, all shapes."""

SAMPLE_SECONDS = 35.0
SAMPLE_SECONDS_NEXT_TO_GPU = 2.5
"""The time limit for checking some blocks of the ranked size and the bounds of all. A large kernel
takes ten seconds for that, which would lengthen a grading on a GPU by half."""

SAMPLED_CLUSTERS = 4096
"""The most clusters of the ranked size that the CPU device may check."""

SMALL_FLOP = 1 << 26
"""The largest case, in operations, that is sanitized. A larger one takes the CPU device minutes."""

EXTRA_FLOP = 1 << 23
"""The largest case of verification, in operations, that is sanitized in addition to the cases
around the tiles of the launch."""

MAX_EDGE = 512
"""The largest tile for which shapes are chosen. A kernel with a larger tile uses it only to get few
blocks, and distributes the work among them itself."""

HANG_SECONDS = 2.0
"""The time limit with which the reason of a hang is found, such as a barrier that some threads do
not reach."""

KILLED = "SIGKILL"
"""The signal of a worker that another process killed. Its grading is repeated, since the worker
might have explained why a kernel is wrong. A kernel that crashes its worker causes another
signal."""

CPU_DEVICE = "the CPU device"

DISMISSED = "it knows barriers only; the CPU device found no race"

_RACES = (Hazard.RACE, Hazard.DIVERGENT_BARRIER, Hazard.DEADLOCK)


@dataclass(frozen=True, slots=True)
class Sample:
    """Some blocks of a launch that is too large to be checked completely."""

    shape: Shape
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """A program's launches under each tool: cases, in this order, then a sample of a large one.

    many_blocks: a case that only the CPU device runs, for kernels whose blocks depend on one
        another.
    """

    executor: Executor
    cases: tuple[Case, ...]
    many_blocks: Case | None = None
    sample: Sample | None = None
    tools: tuple[Tool, ...] = tuple(Tool)
    seconds: float = SECONDS
    sample_seconds: float = SAMPLE_SECONDS


def _step(grading: Grading, watched: Watched) -> Step[Sanitized | Unsupported | Fault]:
    """Return the step that runs these cases. A device that verifies has the kernel already."""
    executor, problem, seed = watched.executor, grading.problem, grading.seed
    load = None if executor is Executor.DEVICE else loading(executor, grading.loadable)
    sample, many = watched.sample, watched.many_blocks

    def run(steps: Steps) -> Sanitized | Unsupported | Fault:
        if load is not None:
            ready = steps.get(load)
            if isinstance(ready, Unsupported | Fault):
                return ready
        launches = [
            launch_inputs(problem, case, problem.draw(case, seed)) for case in watched.cases
        ]
        if sample is not None:
            inputs = problem.counting_inputs(seed)
            launches.append(launch_inputs(problem, Case(sample.shape), inputs, sample.blocks))
        request = Sanitize(
            launches=tuple(launches),
            tools=watched.tools,
            many_blocks=launch_inputs(problem, many, problem.draw(many, seed)) if many else None,
            seconds=watched.seconds,
            sample_seconds=watched.sample_seconds,
        )
        return steps.device(executor).ask(request)

    return Step(executor, watched, run)


def _result(grading: Grading, watched: Watched) -> Sanitized | Unsupported | Fault:
    return grading.steps.get(_step(grading, watched))


# ---------------------------------------------------------------------------------------- stages


def start_cpu_sanitizer(grading: Grading) -> None:
    """Start to sanitize on the CPU device next to a GPU. A quick grading uses it only where
    something went wrong."""
    if grading.session.cpu_sanitizer is not None and not grading.quick:
        grading.steps.start(_step(grading, _on_cpu(grading)))


def start_sanitizer(grading: Grading) -> None:
    """Start to sanitize while the kernel is verified. A kernel that is only explained is translated
    once, and sanitized by the process that verifies it."""
    watched = _on_device(grading)
    if watched.executor is Executor.SANITIZER:
        grading.steps.start(_step(grading, watched))


def sanitize_on_device(grading: Grading) -> None:
    """Sanitize where the kernel was verified; the case at which verification failed comes first."""
    failure, steps = grading.failure, grading.steps
    if failure is not None and isinstance(failure.outcome, TimeLimit):
        raise Ended(_diagnosed_hang(grading, failure) or failure.outcome)
    watched = _on_device(grading)
    grading.progress.begin(Stage.SANITIZE, None)
    grading.progress.step(", ".join(watched.tools))
    if failure is not None and grading.session.cpu_sanitizer is not None:
        steps.start_instead(_step(grading, _on_cpu(grading)))
    if watched.executor is Executor.SANITIZER:
        steps.start_instead(_step(grading, watched))
    answer = _result(grading, watched)
    if isinstance(answer, Fault):
        if failure is not None and answer.signal != KILLED:
            raise Ended(failure.outcome)
        raise Ended(launch_outcome(answer, watched.cases[0].shape, SECONDS, Stage.SANITIZE))
    _store(grading, answer, watched)


def conclude_sanitizing(grading: Grading) -> None:
    """Wait for the CPU device, and raise Ended if a sanitizer of any device has found something.

    An unsafe kernel gets that verdict even if it is also wrong, since that is usually the cause. In
    a quick grading on a GPU the CPU device replaces a tool of the GPU that does not work.
    """
    wrong = grading.failure.outcome if grading.failure else None
    if grading.session.cpu_sanitizer is not None:
        watched = _on_cpu(grading)
        doubtful = bool(grading.findings) and all(
            each.tool is Tool.RACECHECK and each.hazard is Hazard.RACE for each in grading.findings
        )
        if not grading.quick or wrong is not None or doubtful or _missing(grading):
            grading.progress.step(CPU_DEVICE)
            _store(grading, _result(grading, watched), watched)
            if doubtful and wrong is None and _ruled_out(grading, watched):
                _dismiss_races(grading)
    seen = wrong.counterexample if isinstance(wrong, WrongAnswer) else None
    outcome = unsafe(merged(grading.findings), seen) or wrong or grading.sanitizer_outcome
    if outcome is not None:
        raise Ended(outcome)
    missing = _missing(grading)
    if missing:
        reasons = (
            f"{program.program} says {run.message}"
            for program in grading.sanitizing
            for run in program.tools
            if run.tool is missing[0] and run.message
        )
        why = "; ".join(reasons) or "it was not started"
        message = f"no sanitizer could run {missing[0]}: {why}"
        raise Ended(JudgeError(stage=Stage.SANITIZE, message=message))


def _ruled_out(grading: Grading, watched: Watched) -> bool:
    """Return whether the CPU device rules out the races that the GPU's racecheck has reported. It
    does if it ran the same cases without a finding, and some blocks of the case that is too large
    for it."""
    every = [watched]
    if not grading.quick:
        sample = sample_of(grading, grading.problem.mid_size_case(grading.seed).shape)
        every.append(replace(watched, cases=(), sample=sample))
    return all(_is_clean(_result(grading, each), each) for each in every)


def _is_clean(answer: Sanitized | Unsupported | Fault, watched: Watched) -> bool:
    """Return whether every tool ran in all cases and the sample, and found nothing."""
    return (
        isinstance(answer, Sanitized)
        and not (answer.findings or answer.stopped)
        and all(run.status == "clean" for run in answer.runs)
        and (watched.sample is None or bool(answer.sampled and answer.sampled.watched))
    )


def _dismiss_races(grading: Grading) -> None:
    """Drop the findings of the GPU's racecheck, and say so in its run.

    racecheck considers barriers only, and reports races of threads that another mechanism orders,
    such as cuda::latch. The CPU device follows PTX's memory model.
    """
    grading.findings.clear()
    first, *others = grading.sanitizing
    tools = tuple(
        run.model_copy(update={"status": "dismissed", "message": DISMISSED})
        if run.tool is Tool.RACECHECK
        else run
        for run in first.tools
    )
    grading.sanitizing[:] = [first.model_copy(update={"tools": tools}), *others]


def _on_device(grading: Grading) -> Watched:
    """Return what the verifying device runs. On a GPU the smallest case comes first. The first
    error ends a tool, and memcheck takes a minute for an error of many threads."""
    tools, cases = _tools(grading), _cases(grading)
    if not grading.has_gpu:
        return Watched(grading.watched_by, cases, _many_blocks(grading), _sample(grading), tools)
    every = cases if grading.quick else (*cases, grading.problem.mid_size_case(grading.seed))
    ordered = tuple(sorted(every, key=lambda case: case.shape.flop))
    return Watched(Executor.SANITIZER, ordered, tools=tools)


def _on_cpu(grading: Grading) -> Watched:
    """Return what the CPU device next to a GPU runs."""
    return Watched(
        Executor.CPU_SANITIZER,
        _cases(grading),
        _many_blocks(grading),
        _sample(grading),
        _tools(grading),
        sample_seconds=SAMPLE_SECONDS_NEXT_TO_GPU,
    )


def _cases(grading: Grading) -> tuple[Case, ...]:
    cases = sanitizer_cases(grading)
    failed = grading.failure.case if grading.failure else None
    return (failed, *cases) if failed and failed.shape.flop <= SMALL_FLOP else cases


def _sample(grading: Grading) -> Sample | None:
    ranked = grading.problem.ranked.shape
    if grading.quick or (grading.failure is not None and grading.failure.case.shape != ranked):
        return None
    return sample_of(grading, ranked)


def _store(grading: Grading, answer: Sanitized | Unsupported | Fault, watched: Watched) -> None:
    """Store the findings of one program; other programs may find more."""
    if not isinstance(answer, Sanitized):
        grading.sanitizing.append(_unavailable(watched.tools, answer.message))
        return
    shapes = tuple(case.shape for case in watched.cases)
    program = Sanitizing(
        program=answer.program, shapes=shapes, tools=answer.runs, ranked=answer.sampled
    )
    grading.progress.found(_about(program, merged(answer.findings)))
    grading.sanitizing.append(program)
    grading.findings += answer.findings
    if grading.sanitizer_outcome is None:
        grading.sanitizer_outcome = _outcome(grading, answer, watched)


def _about(program: Sanitizing, findings: Sequence[Finding]) -> Iterator[str]:
    """Describe what one program found for a view that follows the grading."""
    clean = [run.tool.value for run in program.tools if run.status == "clean"]
    if clean:
        yield f"{program.program}: nothing found by {', '.join(clean)}"
    for finding in findings:
        more = f" ({finding.occurrences} times)" if finding.occurrences > 1 else ""
        yield f"{finding.tool.value}: {finding.message}{more}"


def _outcome(grading: Grading, answer: Sanitized, watched: Watched) -> Outcome | None:
    """Return the verdict for the launches if no finding explains the error: the output and the
    inputs are compared as in verification."""
    problem, seed = grading.problem, grading.seed
    for product in answer.products:
        case = watched.cases[product.launch]
        wrote = touched(product, f"at {case}", case.shape, Stage.SANITIZE)
        if wrote is not None:
            return wrote
        inputs = problem.draw(case, seed)
        comparison = problem.compare(case, inputs, product.output)
        if not comparison.passed:
            compared = Compared(case, inputs, product.output, comparison)
            return wrong_answer(problem, Stage.SANITIZE, seed, compared)
    for stopped in answer.stopped:
        shape = watched.cases[stopped.launch].shape
        return launch_outcome(stopped.fault, shape, watched.seconds, Stage.SANITIZE)
    return None


def _missing(grading: Grading) -> list[Tool]:
    """Return the tools that no program has run to the end; none if something was found anyway."""
    if grading.findings:
        return []
    ran = {
        run.tool
        for program in grading.sanitizing
        for run in program.tools
        if run.status != "unavailable"
    }
    return [tool for tool in _tools(grading) if tool not in ran]


def sanitizers_may_say_more(grading: Grading, failure: Failure) -> bool:
    """Return whether the sanitizers may say more of a failure than verification did."""
    match failure.outcome:
        case WrongAnswer():
            return True
        case MemoryFault(findings=findings):
            return all(finding.at.line is None for finding in findings)
        case Race():  # threads that wait without end; an earlier mistake may be the cause
            return failure.case.shape.flop <= SMALL_FLOP
        case TimeLimit():
            return grading.watched_by is not Executor.DEVICE
        case _:
            return False


def _diagnosed_hang(grading: Grading, failure: Failure) -> MemoryFault | Race | None:
    """Return why a launch does not end, such as a barrier that only some threads reach. Only the
    CPU device can find this, since it observes each thread. In place of a large case it runs small
    ones, which may have the same mistake."""
    small = failure.case.shape.flop <= SMALL_FLOP
    cases = (failure.case,) if small else sanitizer_cases(grading)
    watched = Watched(grading.watched_by, cases, seconds=HANG_SECONDS)
    grading.steps.start_instead(_step(grading, watched))
    answer = _result(grading, watched)
    return unsafe(answer.findings, None) if isinstance(answer, Sanitized) else None


def _unavailable(tools: Sequence[Tool], message: str) -> Sanitizing:
    return Sanitizing(
        program=CPU_DEVICE,
        shapes=(),
        tools=tuple(
            ToolRun(tool=tool, status="unavailable", seconds=0, message=message) for tool in tools
        ),
    )


def unsafe(
    findings: Sequence[Finding], counterexample: Counterexample | None
) -> MemoryFault | Race | None:
    """Return the verdict for findings. Memory errors come first, then mbarriers that may be used
    before they are initialised, then barriers, then races: later ones may follow from earlier.
    """
    memory = [f for f in findings if f.hazard not in (*_RACES, Hazard.EARLY_RETURN)]
    races = [finding for finding in findings if finding.hazard in _RACES]
    races.sort(key=_comes_last)
    first = [f for f in memory if f.hazard is not Hazard.UNINITIALISED] or races or memory
    if not first:
        return None
    kind = Race if first is races else MemoryFault
    others = [finding for finding in findings if finding not in first]
    return kind(
        stage=Stage.SANITIZE,
        message=first[0].message,
        findings=(*first, *others),
        counterexample=counterexample,
    )


def _comes_last(finding: Finding) -> bool:
    """Return whether it is a race, but not about an mbarrier that another thread initialises."""
    return finding.hazard is Hazard.RACE and " uses what " not in finding.message


# ----------------------------------------------------------------------------------------- cases


def _tools(grading: Grading) -> tuple[Tool, ...]:
    """Return the tools of a grading. Without a GPU one launch serves all of them."""
    few = grading.quick and grading.has_gpu
    return (Tool.MEMCHECK, Tool.RACECHECK) if few else tuple(Tool)


def sanitizer_cases(grading: Grading) -> tuple[Case, ...]:
    """Return the cases around the tiles of the launch."""
    rows, columns = _tile(grading)
    seed, quick = grading.seed, grading.quick
    return grading.problem.watched_cases(rows, columns, seed, quick=quick, max_work=EXTRA_FLOP)


def _many_blocks(grading: Grading) -> Case:
    return grading.problem.many_blocks_case(*_tile(grading), grading.seed, SMALL_FLOP)


def _tile(grading: Grading) -> tuple[int, int]:
    launch = grading.launch
    rows, columns = (max(16, size) for size in (launch.tile_rows, launch.tile_columns))
    return min(rows, MAX_EDGE), min(columns, MAX_EDGE)


def sample_of(grading: Grading, shape: Shape) -> Sample:
    """Return the first blocks of a large launch, then secret others: a kernel may forget a barrier
    only there. It is for the CPU device, which runs as many of them as it has time for."""
    problem, launch = grading.problem, grading.launch
    generator = np.random.default_rng([grading.seed, problem.version, 7])
    output = problem.arguments(shape).output
    clusters = prod(launch.clusters(output.rows, output.columns))
    others = generator.choice(clusters, min(clusters, SAMPLED_CLUSTERS), replace=False)
    chosen = [*dict.fromkeys([0, *others.tolist()])]
    return Sample(shape, launch.blocks_of(chosen, output.rows, output.columns))
