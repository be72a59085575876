"""Verify: is the output correct in every case, and was nothing else written?"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from harness.devices.guards import unwritten
from harness.judge import figures
from harness.judge.grading import Compared, Failure, Grading, launch_inputs
from harness.judge.stages.compile import await_machine_code, take_machine_code
from harness.judge.stages.counterexample import wrong_answer
from harness.judge.stages.outcomes import Ended, finished, touched
from harness.judge.stages.sanitize import sanitizers_may_say_more
from harness.judge.steps import Executor, Step
from harness.protocol.device import Finished, Run
from harness.protocol.report import CaseResult, Stage, TimeLimit, Verification, WrongAnswer
from problem.cases import Case
from problem.inputs import Matrix, Tolerance
from problem.launcher import LaunchLine
from problem.problem import Comparable, Inputs, Problem

SAMPLED_BLOCKS = 32
"""The most blocks of the ranked size that the CPU device runs in each of two launches, chosen
afresh each time. SAMPLED_ELEMENTS allows fewer if the tile of a block is large."""

SAMPLED_ELEMENTS = 100_000
"""Elements of the output that the blocks of one launch may compute together."""

MAX_BLOCKS = 1 << 18
"""The most blocks that the CPU device runs of a case. Unknown cases have up to 2^24 elements, which
are more blocks than it runs in the time limit if the tile of a block is a single element. It then
runs some of them."""

EXPLAINED_FLOP = 1 << 26
"""The largest case when a kernel is only explained, without a GPU: every access is checked."""

MAX_LAUNCH_LIMITS = 10
"""The time limit of all launches together, as a multiple of the limit of one. A kernel just below
the limit in each of eighty cases would take half an hour."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case as it is launched. expected: None if only parts of the output will be compared."""

    case: Case
    inputs: Inputs
    expected: Comparable | None


def prepare(problem: Problem, case: Case, seed: int, *, whole: bool = True) -> Prepared:
    """Draw the inputs of a case, and compute the expected output if all of it will be compared."""
    inputs = problem.draw(case, seed)
    return Prepared(case, inputs, problem.expected(case, inputs) if whole else None)


def _preparing(grading: Grading, case: Case, *, whole: bool = True) -> Step[Prepared]:
    problem, seed = grading.problem, grading.seed
    return Step(Executor.JUDGE, case, lambda _: prepare(problem, case, seed, whole=whole))


def start_references(grading: Grading) -> None:
    """Start to compute the expected output of each case."""
    grading.steps.start(*_all_cases(grading))


def verify(grading: Grading) -> None:
    """Run every case until one fails, the ranked size last. Raises Ended unless the sanitizers may
    say more of the failure.

    A device without a GPU runs only some blocks of the ranked size. If these depend on one another,
    a sample would not end, so a smaller size is run whole instead.
    """
    steps, seconds = grading.steps, grading.options.seconds
    smaller = _runs_smaller(grading)
    steps_of_cases = _all_cases(grading)
    results: list[CaseResult] = []

    def prepared() -> Iterator[Prepared]:
        yield from map(steps.take, steps_of_cases)
        if smaller:
            # It should take a quarter of the limit, at the speed of the slowest case.
            slowest = max(results, key=lambda result: result.seconds)
            flop = slowest.case.shape.flop / slowest.seconds * seconds / 4
            largest = grading.problem.ranked_case(grading.seed, grading.problem.smaller(flop))
            yield steps.take(_preparing(grading, largest))

    count = len(steps_of_cases) + smaller + grading.grades_accuracy
    grading.progress.begin(Stage.VERIFY, count)
    failure = run_cases(grading, prepared(), results)
    if failure is not None:
        steps.stop(Executor.JUDGE)
        grading.progress.found([f"{failure.outcome.verdict.value}: {failure.outcome.message}"])
        grading.failure = failure
        if not sanitizers_may_say_more(grading, failure):
            await_machine_code(grading)  # an error of the compiler comes first
            raise Ended(failure.outcome)
        return
    grading.verification = Verification(
        cases=tuple(results),
        worst_error=max(
            (r.error for r in results if r.case.tolerance is Tolerance.RANDOM), default=0.0
        ),
        note=(
            "the kernel's blocks depend on one another, so no sample of "
            f"{grading.problem.ranked.shape} can be run here; {results[-1].case.shape} was run "
            "whole"
            if smaller
            else None
        ),
    )
    found = grading.verification
    grading.progress.found(filter(None, [figures.verification(found), found.note]))


def _all_cases(grading: Grading) -> list[Step[Prepared]]:
    """Return the steps that prepare the cases, in the order in which they are launched."""
    quick, sampled, seed = grading.quick, not grading.has_gpu, grading.seed
    max_flop = EXPLAINED_FLOP if grading.few_cases and sampled else inf
    chosen = grading.problem.cases(seed, quick=quick, sampled=sampled)
    depend = grading.ready is not None and grading.ready.blocks_depend
    is_compiled = grading.compiled is not None or grading.program is not None

    def whole(case: Case) -> bool:
        few = not (sampled and is_compiled) or _blocks(grading, case) <= MAX_BLOCKS
        return few or depend

    found = [
        _preparing(grading, case, whole=whole(case))
        for case in chosen
        if case.shape.flop <= max_flop
    ]
    if not quick and not _runs_smaller(grading):
        found.append(_preparing(grading, grading.problem.ranked_case(seed), whole=not sampled))
    return found


def _blocks(grading: Grading, case: Case) -> int:
    output = grading.problem.arguments(case.shape).output
    return prod(grading.launch.grid(output.rows, output.columns))


def _runs_smaller(grading: Grading) -> bool:
    """Return whether a smaller size surely replaces the ranked one."""
    depend = grading.ready is not None and grading.ready.blocks_depend
    return depend and not grading.has_gpu and not grading.quick


def run_cases(
    grading: Grading, prepared: Iterable[Prepared], results: list[CaseResult]
) -> Failure | None:
    """Run cases until one fails. results: gets the result of each case that is correct."""
    limit = MAX_LAUNCH_LIMITS * grading.options.seconds
    for each in prepared:
        take_machine_code(grading)
        grading.progress.step(str(each.case))
        try:
            results.append(_result(grading, each))
        except Ended as ended:
            return Failure(each.case, ended.outcome)
        if sum(result.seconds for result in results) > limit:
            message = f"the launches of verification together took more than {limit:g} s"
            late = TimeLimit(stage=Stage.VERIFY, message=message, seconds=limit)
            return Failure(each.case, late)
    return None


def _result(grading: Grading, prepared: Prepared) -> CaseResult:
    """Run one case. Raises Ended if the output is wrong."""
    if prepared.expected is None:
        return _sample(grading, prepared)
    launched = launch(grading, prepared.case, prepared.inputs)
    comparison = prepared.expected.compare(launched.output)
    if not comparison.passed:
        compared = Compared(prepared.case, prepared.inputs, launched.output, comparison)
        raise Ended(wrong_answer(grading.problem, Stage.VERIFY, grading.seed, compared))
    return CaseResult(case=prepared.case, error=comparison.worst, seconds=launched.seconds)


def _sample(grading: Grading, prepared: Prepared) -> CaseResult:
    """Run two launches of some blocks each, and compare what they computed. Independent blocks
    share no element of the output; if two do, others are left out."""
    output = grading.problem.arguments(prepared.case.shape).output
    samples = sampled_blocks(grading.launch, output.rows, output.columns)
    worst = seconds = 0.0
    written = np.zeros((output.rows, output.columns), np.bool_)
    for blocks in samples:
        launched = launch(grading, prepared.case, prepared.inputs, blocks)
        error, own, now = check_blocks(grading, prepared, launched.output, blocks)
        twice = sorted(_tiles(written & now, grading.launch))
        missing = sorted(own - _tiles(now, grading.launch))
        if twice and missing:
            raise Ended(_left_out(grading, prepared, launched.output, missing[0], twice[0]))
        written |= now
        worst, seconds = max(worst, error), seconds + launched.seconds
    return CaseResult(
        case=prepared.case,
        error=worst,
        seconds=seconds,
        sampled_blocks=sum(len(blocks) for blocks in samples),
        blocks=_blocks(grading, prepared.case),
    )


def launch(
    grading: Grading, case: Case, inputs: Inputs, blocks: tuple[int, ...] | None = None
) -> Finished:
    """Launch the kernel, or some blocks of it. Raises Ended if it does not finish, or writes to
    anything but the output."""
    seconds = grading.options.seconds
    given = launch_inputs(grading.problem, case, inputs, blocks)
    answer = grading.session.device.ask(Run(inputs=given, seconds=seconds))
    grading.printed.append(answer.printed)
    launched = finished(answer, case.shape, seconds, Stage.VERIFY)
    wrote = touched(launched, f"at {case}", case.shape, Stage.VERIFY)
    if wrote is not None:
        raise Ended(wrote)
    return launched


def _left_out(
    grading: Grading, prepared: Prepared, output: Matrix, missing: Tile, twice: Tile
) -> WrongAnswer:
    """Return the verdict if two samples wrote one tile; it shows a missing tile."""
    problem = grading.problem
    compared = _compared_part(grading, prepared, output, *_extent(missing, grading.launch))
    found = wrong_answer(problem, Stage.VERIFY, grading.seed, compared)
    message = (
        f"wrong at {prepared.case}: different blocks wrote the same tile of "
        f"{problem.signature.output} (row "
        f"{twice[0]}, column {twice[1]} of tiles), so other tiles are left out"
    )
    return found.model_copy(update={"message": message})


Tile = tuple[int, int]
"""Row and column, in tiles of the launch."""

Written = NDArray[np.bool_]
"""For each element of the output, or of a part of it, whether it was written."""


def sampled_blocks(
    launch: LaunchLine, rows: int, columns: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two disjoint samples of the blocks for an output of this size, in whole clusters: all
    four corners, and others at random."""
    across, down, _ = launch.clusters(rows, columns)
    last = across * down - 1
    corners = {0, across - 1, last - (across - 1), last}
    each = SAMPLED_ELEMENTS // (launch.tile_rows * launch.tile_columns)
    count = 2 * max(4, min(SAMPLED_BLOCKS, each) // prod(launch.cluster))
    chosen = {secrets.randbelow(last + 1) for _ in range(2 * count)} - corners
    mixed = [*corners, *chosen][:count]
    secrets.SystemRandom().shuffle(mixed)
    half = -(-len(mixed) // 2)

    def blocks(numbers: list[int]) -> tuple[int, ...]:
        return tuple(sorted(launch.blocks_of(numbers, rows, columns)))

    return blocks(mixed[:half]), blocks(mixed[half:])


def check_blocks(
    grading: Grading, prepared: Prepared, output: Matrix, blocks: tuple[int, ...]
) -> tuple[float, set[Tile], Written]:
    """Compare only what these blocks of a launch computed. Raises Ended if it is wrong.

    Return the worst error, the tiles that belong to the blocks by their numbers, and the elements
    that were written. A kernel may assign its elements to blocks in any order, so the written ones
    tell which these are. Tiles in which something was written must be written completely, unless
    the blocks wrote as many elements as their own tiles have. Only if the blocks wrote in no other
    tiles must all their own be written.
    """
    launch = grading.launch
    columns, rows, _ = launch.grid(*output.shape)
    places = ((block // columns % rows, block % columns) for block in blocks)
    own = {
        (down, across)
        for down, across in places
        if down * launch.tile_rows < output.shape[0]
        and across * launch.tile_columns < output.shape[1]
    }
    written = ~unwritten(output)
    tiles = _tiles(written, launch)
    mine = sum(written[_extent(tile, launch)].size for tile in own)
    in_parts = not tiles <= own and int(written.sum()) >= mine
    worst = 0.0
    for tile in sorted(own if tiles <= own else tiles):
        extent = _extent(tile, launch)
        for part in _parts(written, *extent) if in_parts else [extent]:
            compared = _compared_part(grading, prepared, output, *part)
            if not compared.comparison.passed:
                raise Ended(wrong_answer(grading.problem, Stage.VERIFY, grading.seed, compared))
            worst = max(worst, compared.comparison.worst)
    return worst, own, written


def _extent(tile: Tile, launch: LaunchLine) -> tuple[slice, slice]:
    """Return the rows and columns of a tile."""
    top, left = tile[0] * launch.tile_rows, tile[1] * launch.tile_columns
    return slice(top, top + launch.tile_rows), slice(left, left + launch.tile_columns)


def _parts(written: Written, rows: slice, columns: slice) -> Iterator[tuple[slice, slice]]:
    """Yield adjacent rows and columns of a tile in which something was written."""
    inside = written[rows, columns]
    for down in _runs(np.any(inside, axis=1), rows.start):
        for across in _runs(np.any(inside, axis=0), columns.start):
            yield down, across


def _runs(chosen: Written, start: int) -> list[slice]:
    """Return the ranges of adjacent true values, the first of which has this index."""
    ends = np.flatnonzero(np.diff(chosen, prepend=False, append=False)) + start
    return [slice(int(first), int(end)) for first, end in ends.reshape(-1, 2)]


def _compared_part(
    grading: Grading, prepared: Prepared, output: Matrix, rows: slice, columns: slice
) -> Compared:
    problem, case = grading.problem, prepared.case
    part = np.ascontiguousarray(output[rows, columns])
    inputs = problem.part(prepared.inputs, rows, columns)
    corner = rows.start, columns.start
    return Compared(case, inputs, part, problem.compare(case, inputs, part), corner)


def _tiles(written: Written, launch: LaunchLine) -> set[Tile]:
    """Return the tiles in which something was written."""
    rows = np.logical_or.reduceat(written, range(0, written.shape[0], launch.tile_rows), axis=0)
    both = np.logical_or.reduceat(rows, range(0, written.shape[1], launch.tile_columns), axis=1)
    return {(int(row), int(column)) for row, column in np.argwhere(both)}
