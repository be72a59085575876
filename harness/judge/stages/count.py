"""Count the work of the memory system at the ranked size, which only the CPU device can do."""

from collections.abc import Iterator

from harness.judge.grading import Grading, launch_inputs
from harness.judge.stages.compile import disassembling, loading
from harness.judge.stages.outcomes import Ended
from harness.judge.steps import Step, Steps
from harness.protocol.device import BranchesDiffer, Count, MergeLoads, Ready
from harness.protocol.report import Counters, Unsupported
from harness.protocol.request import Fault, Process
from problem.cases import Case, Shape
from problem.launcher import LaunchLine
from problem.problem import Problem

COUNTED_ELEMENTS, COUNTED_BLOCKS = 4096, 4
"""The sample of the ranked size: blocks that compute this many elements of C together, but at least
one block and at most this many."""

ALL_BLOCKS = 1 << 30

SECTOR_ELEMENTS = 8

IDLE = 0.5
"""The least share of its outputs that a sample must store; otherwise its blocks do too little
work."""

Answer = Counters | BranchesDiffer | Unsupported | Fault


def count_on(
    device: Process,
    launch: LaunchLine,
    ready: Ready,
    *,
    problem: Problem,
    chosen: Shape | None = None,
    seed: int,
    seconds: float,
) -> Answer:
    """Count blocks of the ranked size, or all blocks of a smaller launch whose branches are the
    same. That launch has the first of the problem's sizes, or the last on tensor cores, which are
    counted quickly.

    chosen: a size that replaces all these sizes.
    """
    answer: Answer
    ranked, inputs = problem.arguments(problem.ranked.shape), problem.counting_inputs(seed)
    for shape, blocks in _launches(launch, ready, problem, chosen):
        request = Count(
            inputs=launch_inputs(problem, Case(shape), inputs),
            max_blocks=blocks,
            like=ranked,
            seconds=seconds,
        )
        answer = device.ask(request)
        smaller_follow = shape == problem.ranked.shape and chosen is None
        slow = isinstance(answer, Fault) and answer.cause == "time-limit"
        if not (slow and smaller_follow) and not _is_useless(answer, request):
            break
    return answer


def _launches(
    launch: LaunchLine, ready: Ready, problem: Problem, chosen: Shape | None
) -> Iterator[tuple[Shape, int]]:
    """Yield the shapes to try in this order, each with the most blocks to count there."""
    if not ready.blocks_depend:
        tile = launch.tile_rows * launch.tile_columns
        blocks = max(1, min(COUNTED_BLOCKS, COUNTED_ELEMENTS // tile))
        yield chosen or problem.ranked.shape, blocks
        if chosen is None:  # a long loop without a barrier is more than the device can follow
            yield problem.counted_shapes[0], blocks
    sizes = problem.counted_shapes[:: -1 if ready.multiplies_matrices else 1]
    for shape in (chosen,) if chosen else sizes:
        yield shape, ALL_BLOCKS


def _is_useless(answer: Answer, request: Count) -> bool:
    """Return whether blocks could not be counted, or the sampled blocks leave the work to
    others."""
    if isinstance(answer, Fault):
        return answer.cause == "judge"
    if not isinstance(answer, Counters):
        return isinstance(answer, BranchesDiffer)
    output = request.inputs.arguments.output
    share = answer.counted_blocks / answer.blocks
    stored = answer.global_store_sectors * SECTOR_ELEMENTS
    return share < 1 and stored < IDLE * share * output.rows * output.columns


def start_counting(grading: Grading) -> None:
    """Start to count the accesses of a full grading of a kernel that has not failed."""
    if not grading.quick and grading.failure is None:
        grading.steps.start(_counting(grading))


def count_accesses(grading: Grading) -> None:
    """Count the accesses of a full grading."""
    if not grading.quick:
        count(grading)


def count(grading: Grading) -> None:
    """Count the accesses, without a check of the output of these blocks."""
    grading.progress.step("counting accesses")
    counted = grading.steps.get(_counting(grading))
    if isinstance(counted, Counters):
        grading.counters = counted
    elif isinstance(counted, BranchesDiffer):
        ranked = grading.problem.ranked.shape
        grading.why_uncounted = (
            f"its accesses were not counted: a branch in line {counted.line} depends on the size, "
            f"and at {ranked} it goes another way than at any size that can be executed here"
        )
    else:
        grading.why_uncounted = f"its accesses could not be counted: {counted.message}"


def _counting(grading: Grading) -> Step[Answer]:
    """Return the step that counts the accesses of the kernel."""
    executor = grading.watched_by
    load = loading(executor, grading.loadable)

    def run(steps: Steps) -> Answer:
        ready = steps.get(load)
        if not isinstance(ready, Ready):
            return ready
        device = steps.device(executor)
        counted = count_on(
            device,
            grading.launch,
            ready,
            problem=grading.problem,
            chosen=grading.options.counted_shape,
            seed=grading.seed,
            seconds=grading.options.counting_seconds,
        )
        if not isinstance(counted, Counters) or not ready.has_mergeable_loads:
            return counted
        try:
            known = steps.get(disassembling(grading))
        except Ended:
            return counted
        return device.ask(MergeLoads(shape=counted.shape, code=known.kernel.lines))

    return Step(executor, "count", run)
