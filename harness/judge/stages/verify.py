"""Verify: is C right in every case, and was nothing but C touched?"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from harness.devices.guards import unwritten
from harness.judge.progress import Progress
from harness.judge.stages.counterexample import counterexample
from harness.judge.stages.outcomes import launch_outcome, wrote_outside
from harness.judge.stages.preparation import Preparation, Prepared, prepared
from harness.protocol.device import Device, Finished, Run
from harness.protocol.report import (
    CaseResult,
    Outcome,
    Rule,
    RuleViolation,
    RunStage,
    Stage,
    TimeLimit,
    Verification,
    WrongAnswer,
)
from harness.protocol.request import Fault
from problem.cases import RANKED, Case, Matrix, Shape, cases, ranked_case
from problem.inputs import Tolerance
from problem.launcher import Clusters, LaunchLine
from problem.reference import Comparison, Expected, compare

SAMPLED_BLOCKS = 32
"""Blocks of the ranked size that a device without a GPU runs in each of two launches, chosen afresh
each time; fewer where a block computes more than one of 16×16 threads usually does."""

SAMPLED_ELEMENTS = 100_000
"""Elements of C that the blocks of one launch may compute together."""

AHEAD = 20
"""Cases made ready while one is launched: most kernels that are wrong do not come so far that the
ranked size is begun, which takes seconds."""

MAX_LAUNCH_LIMITS = 10
"""All launches together may take so many times what one may: a kernel that stays just below the
limit in each of eighty cases must not cost half an hour."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The case at which verification stopped, and why."""

    case: Case
    outcome: Outcome


def prepare(
    seed: int,
    *,
    quick: bool,
    sampled: bool,
    ranked: bool = True,
    ahead: int | None = AHEAD,
    max_flop: float = inf,
) -> Preparation:
    """Begin with what needs neither kernel nor device. ranked: with the ranked size, as long as
    the grading is not quick. ahead: cases; None for all. max_flop: larger cases are left out."""
    chosen, ranked = cases(seed, quick=quick, sampled=sampled), ranked and not quick
    given = [case for case in chosen if case.shape.flop <= max_flop]
    if ranked:
        given.append(ranked_case(RANKED.shape, seed))
    whole = not (ranked and sampled)
    return Preparation(given, seed, whole, len(given) if ahead is None else ahead)


def verify(
    device: Device,
    launch: LaunchLine,
    seed: int,
    *,
    quick: bool,
    sampled: bool,
    blocks_depend: bool,
    seconds: float,
    printed: list[str],
    progress: Progress,
    begun: Preparation | None = None,
) -> Verification | Failure:
    """Run every case until one goes wrong, the ranked size last.

    sampled: the device is slow: of the ranked size only some blocks are run. blocks_depend: they
    depend on one another, so that a sample of them would not end: a smaller size is run whole
    instead. seconds: limit of one launch. printed: gets what the launches print. begun: what
    `prepare` has begun.
    """
    smaller = sampled and blocks_depend and not quick
    preparation = begun or prepare(seed, quick=quick, sampled=sampled, ranked=not smaller)
    results: list[CaseResult] = []

    def all_cases() -> Iterator[Prepared]:
        yield from preparation
        if smaller:
            yield prepared(ranked_case(_largest(results, seconds), seed), seed, whole=True)

    progress.begin(Stage.VERIFY, len(preparation.cases) + smaller)
    with closing(preparation):
        for each in all_cases():
            progress.step(str(each.case))
            result = _Launching(device, launch, each, seed, seconds, printed).result()
            if not isinstance(result, CaseResult):
                return Failure(each.case, result)
            results.append(result)
            if sum(result.seconds for result in results) > MAX_LAUNCH_LIMITS * seconds:
                return Failure(each.case, _too_slow(MAX_LAUNCH_LIMITS * seconds))
    return Verification(
        cases=tuple(results),
        worst_error=max(r.error for r in results if r.case.tolerance is Tolerance.RANDOM),
        note=(
            f"the kernel's blocks depend on one another, so no sample of {RANKED.shape} can be "
            f"run here; {results[-1].case.shape} was run whole"
            if smaller
            else None
        ),
    )


def _largest(results: Sequence[CaseResult], seconds: float) -> Shape:
    """The ranked shape made smaller until it should take a quarter of the limit, at the speed of
    the case that took longest."""
    slowest = max(results, key=lambda result: result.seconds)
    flop = slowest.case.shape.flop / slowest.seconds * seconds / 4
    scale = min(1.0, (flop / RANKED.shape.flop) ** (1 / 3))
    sizes = (RANKED.shape.M, RANKED.shape.N, RANKED.shape.K)
    return Shape(*(max(1, int(size * scale)) for size in sizes))


def _too_slow(seconds: float) -> TimeLimit:
    return TimeLimit(
        stage=Stage.VERIFY,
        message=f"the launches of verification together took more than {seconds:g} s",
        seconds=seconds,
    )


@dataclass(frozen=True, slots=True)
class _Launching:
    """The launches of one case."""

    device: Device
    launch: LaunchLine
    prepared: Prepared
    seed: int
    seconds: float
    printed: list[str]

    @property
    def case(self) -> Case:
        return self.prepared.case

    def result(self) -> CaseResult | Outcome:
        expected = self.prepared.expected
        return self._sample() if expected is None else self._whole(expected)

    def _whole(self, expected: Expected) -> CaseResult | Outcome:
        """The whole grid, and all of C."""
        A, B = self.prepared.A, self.prepared.B
        started = time.perf_counter()
        finished = self._run(None)
        elapsed = time.perf_counter() - started
        if not isinstance(finished, Finished):
            return finished
        comparison = expected.compare(finished.C)
        if not comparison.passed:
            return wrong_answer(Stage.VERIFY, self.case, self.seed, A, B, finished.C, comparison)
        return CaseResult(case=self.case, error=comparison.worst, seconds=elapsed)

    def _sample(self) -> CaseResult | Outcome:
        """Two launches of some blocks each, and what they computed. The blocks of an independent
        launch share no tile of C: where two of them do, others are left out."""
        A, B = self.prepared.A, self.prepared.B
        started = time.perf_counter()
        samples = sampled_blocks(self.launch, self.case.shape)
        worst = 0.0
        written: set[Tile] = set()
        for blocks in samples:
            finished = self._run(blocks)
            if not isinstance(finished, Finished):
                return finished
            checked = check_blocks(
                self.case, self.seed, A, B, finished.C, self.launch, blocks, Stage.VERIFY
            )
            if isinstance(checked, WrongAnswer):
                return checked
            twice = sorted(written & checked.written)
            missing = sorted(checked.own - checked.written)
            if twice and missing:
                return self._left_out(finished.C, missing[0], twice[0])
            written |= checked.written
            worst = max(worst, checked.worst)
        return CaseResult(
            case=self.case,
            error=worst,
            seconds=time.perf_counter() - started,
            sampled_blocks=sum(len(blocks) for blocks in samples),
        )

    def _run(self, blocks: tuple[int, ...] | None) -> Finished | Outcome:
        A, B = self.prepared.A, self.prepared.B
        request = Run(shape=self.case.shape, A=A, B=B, blocks=blocks, seconds=self.seconds)
        finished = self.device.ask(request)
        self.printed.append(finished.printed)
        if isinstance(finished, Fault):
            return launch_outcome(finished, self.case.shape, self.seconds, Stage.VERIFY)
        return touched(finished, self.case) or finished

    def _left_out(self, C: Matrix, missing: Tile, twice: Tile) -> WrongAnswer:
        """The verdict where two samples wrote one tile; shown on a tile that was not written."""
        rows, columns = _slices(self.launch, missing)
        tile = np.ascontiguousarray(C[rows, columns])
        A, B = self.prepared.A[rows], self.prepared.B[:, columns]
        comparison = compare(A, B, tile, tolerance=self.case.tolerance)
        corner = (rows.start, columns.start)
        found = wrong_answer(Stage.VERIFY, self.case, self.seed, A, B, tile, comparison, corner)
        message = (
            f"wrong at {self.case}: different blocks wrote the same tile of C (row "
            f"{twice[0]}, column {twice[1]} of tiles), so other tiles are left out"
        )
        return found.model_copy(update={"message": message})


Tile = tuple[int, int]
"""Row and column, counted in tiles of the launch."""


def sampled_blocks(launch: LaunchLine, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two disjoint samples of the launch's blocks, in whole clusters: all four corners, the rest at
    random."""
    clusters = Clusters(launch.grid(shape.M, shape.K), launch.cluster)
    columns, rows, _ = clusters.sizes
    last = columns * rows - 1
    corners = {0, columns - 1, last - (columns - 1), last}
    each = SAMPLED_ELEMENTS // (launch.tile_rows * launch.tile_columns)
    count = 2 * max(4, min(SAMPLED_BLOCKS, each) // prod(launch.cluster))
    chosen = {secrets.randbelow(last + 1) for _ in range(2 * count)} - corners
    mixed = [*corners, *chosen][:count]
    secrets.SystemRandom().shuffle(mixed)
    half = -(-len(mixed) // 2)

    def blocks(numbers: list[int]) -> tuple[int, ...]:
        return tuple(sorted(block for number in numbers for block in clusters.blocks(number)))

    return blocks(mixed[:half]), blocks(mixed[half:])


@dataclass(frozen=True, slots=True)
class CheckedBlocks:
    """What some blocks of a launch computed, all of it right."""

    worst: float
    own: set[Tile]
    """The tiles of these blocks by their numbers."""
    written: set[Tile]


def check_blocks(
    case: Case,
    seed: int,
    A: Matrix,
    B: Matrix,
    C: Matrix,
    launch: LaunchLine,
    blocks: tuple[int, ...],
    stage: RunStage,
) -> CheckedBlocks | WrongAnswer:
    """Compare only what these blocks of the launch computed, each tile with its own reference.

    A kernel may compute its tiles in another order than that of its blocks, so what was written
    says which tiles those are. Only where they are all among the blocks' own is it known that
    every one of those had to be written.
    """
    columns, rows, _ = launch.grid(case.shape.M, case.shape.K)
    places = ((block // columns % rows, block % columns) for block in blocks)
    own = {
        (down, across)
        for down, across in places
        if down * launch.tile_rows < case.shape.M and across * launch.tile_columns < case.shape.K
    }
    written = _tiles(~unwritten(C), launch)
    chosen = own if written <= own else written
    worst = 0.0
    for tile in sorted(chosen):
        down, across = _slices(launch, tile)
        part = np.ascontiguousarray(C[down, across])
        comparison = compare(A[down], B[:, across], part, tolerance=case.tolerance)
        if not comparison.passed:
            corner = (down.start, across.start)
            return wrong_answer(stage, case, seed, A[down], B[:, across], part, comparison, corner)
        worst = max(worst, comparison.worst)
    return CheckedBlocks(worst, own, written)


def _slices(launch: LaunchLine, tile: Tile) -> tuple[slice, slice]:
    """The rows and the columns of C in a tile."""
    top, left = tile[0] * launch.tile_rows, tile[1] * launch.tile_columns
    return slice(top, top + launch.tile_rows), slice(left, left + launch.tile_columns)


def _tiles(written: NDArray[np.bool_], launch: LaunchLine) -> set[Tile]:
    """Rows and columns, counted in tiles of the launch, of the tiles with something in them."""
    rows = np.logical_or.reduceat(written, range(0, written.shape[0], launch.tile_rows), axis=0)
    both = np.logical_or.reduceat(rows, range(0, written.shape[1], launch.tile_columns), axis=1)
    return {(int(row), int(column)) for row, column in np.argwhere(both)}


def wrong_answer(
    stage: RunStage,
    case: Case,
    seed: int,
    A: Matrix,
    B: Matrix,
    C: Matrix,
    comparison: Comparison,
    corner: tuple[int, int] = (0, 0),
) -> WrongAnswer:
    """The verdict for a C that is too far from A·B. corner: where A, B and C were cut from."""
    found = counterexample(case, seed, A, B, C, comparison)
    found = found.model_copy(
        update={
            "elements": tuple(
                element.model_copy(
                    update={
                        "row": element.row + corner[0],
                        "column": element.column + corner[1],
                    }
                )
                for element in found.elements
            )
        }
    )
    limit = "must be exact" if case.exact else f"error at most {comparison.limit:g}"
    return WrongAnswer(
        stage=stage,
        message=f"wrong at {case} ({limit}, found {comparison.worst:.3g}): {found.pattern}",
        counterexample=found,
    )


def touched(finished: Finished, case: Case) -> Outcome | None:
    """Whether the launch wrote to anything but C."""
    if finished.changed_inputs:
        names = " and ".join(finished.changed_inputs)
        return RuleViolation(
            stage=Stage.VERIFY,
            rule=Rule.INPUTS_CHANGED,
            message=f"the kernel changed {names} at {case}; inputs are not to be written to",
        )
    if finished.wrote_outside:
        return wrote_outside(finished.wrote_outside[0], f"at {case}", case.shape, Stage.VERIFY)
    return None
