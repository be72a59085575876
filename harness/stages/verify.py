"""Verify: is C right in every case, and was nothing but C touched?"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.devices.guards import unwritten
from harness.progress import Progress
from harness.protocol.device import Device, Finished, Run
from harness.protocol.request import Fault
from harness.report import (
    Array,
    CaseResult,
    Finding,
    Hazard,
    MemoryFault,
    Outcome,
    Place,
    Rule,
    RuleViolation,
    RunStage,
    Stage,
    TimeLimit,
    Tool,
    Verification,
    WrongAnswer,
)
from harness.stages.counterexample import counterexample
from harness.stages.outcomes import launch_outcome
from problem.cases import CASES, QUICK_CASES, RANKED, Case, Matrix, Shape, random_cases
from problem.launcher import LaunchLine
from problem.reference import MAX_ERROR, Comparison, compare

SAMPLED_BLOCKS = 24
"""Blocks of the ranked size that a device without a GPU runs, chosen afresh each time."""

MAX_LAUNCH_LIMITS = 10
"""All launches together may take so many times what one may: a kernel that stays just below the
limit in each of eighty cases must not cost half an hour."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The case at which verification stopped, and why."""

    case: Case
    outcome: Outcome


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
) -> Verification | Failure:
    """Run every case until one goes wrong, the ranked size last.

    sampled: the device is slow: of the ranked size only some blocks are run. blocks_depend: they
    depend on one another, so that a sample of them would not end: a smaller size is run whole
    instead. seconds: limit of one launch. printed: gets what the launches print.
    """
    cases = [*(QUICK_CASES if quick else (*CASES, *random_cases(seed)))]
    whole = sampled and blocks_depend and not quick
    progress.begin(Stage.VERIFY, len(cases) + (not quick))
    results: list[CaseResult] = []
    for number in range(len(cases) + (not quick)):
        if number < len(cases):
            case = cases[number]
        else:
            case = Case(_largest(results, seconds)) if whole else RANKED
        progress.step(str(case))
        blocks = _sample(launch, case.shape) if sampled and case is RANKED else None
        result = _verify_case(device, launch, case, seed, blocks, seconds, printed)
        if not isinstance(result, CaseResult):
            return Failure(case, result)
        results.append(result)
        if sum(result.seconds for result in results) > MAX_LAUNCH_LIMITS * seconds:
            return Failure(case, _too_slow(MAX_LAUNCH_LIMITS * seconds))
    return Verification(
        cases=tuple(results),
        worst_error=max(result.error for result in results if not result.case.exact),
        note=(
            f"the kernel's blocks depend on one another, so no sample of {RANKED.shape} can be "
            f"run here; {results[-1].case.shape} was run whole"
            if whole
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


def _sample(launch: LaunchLine, shape: Shape) -> tuple[int, ...]:
    """Some of the launch's blocks: all four corners, the rest at random."""
    columns, rows, _ = launch.grid(shape.M, shape.K)
    last = columns * rows - 1
    corners = {0, columns - 1, last - (columns - 1), last}
    chosen = {secrets.randbelow(columns * rows) for _ in range(SAMPLED_BLOCKS)}
    per_block = launch.tile_rows * launch.tile_columns
    most = max(4, min(SAMPLED_BLOCKS, SAMPLED_BLOCKS * 16_384 // per_block))
    return tuple(sorted([*corners, *(chosen - corners)][:most]))


def _verify_case(
    device: Device,
    launch: LaunchLine,
    case: Case,
    seed: int,
    blocks: tuple[int, ...] | None,
    seconds: float,
    printed: list[str],
) -> CaseResult | Outcome:
    A, B = case.draw(seed)
    started = time.perf_counter()
    finished = device.ask(Run(shape=case.shape, A=A, B=B, blocks=blocks, seconds=seconds))
    elapsed = time.perf_counter() - started
    printed.append(finished.printed)
    if isinstance(finished, Fault):
        return launch_outcome(finished, case.shape, seconds, Stage.VERIFY)
    C = finished.C
    touched = _touched(finished, case)
    if touched is not None:
        return touched
    if blocks is None:
        error = _check(case, seed, A, B, C)
    else:
        error = _check_blocks(case, seed, A, B, C, launch, blocks)
    if isinstance(error, WrongAnswer):
        return error
    return CaseResult(
        case=case,
        error=error,
        seconds=elapsed,
        sampled_blocks=len(blocks) if blocks is not None else None,
    )


def _check(case: Case, seed: int, A: Matrix, B: Matrix, C: Matrix) -> float | WrongAnswer:
    comparison = compare(A, B, C, exact=case.exact)
    if comparison.passed:
        return comparison.worst
    return wrong_answer(Stage.VERIFY, case, seed, A, B, C, comparison)


def _check_blocks(
    case: Case,
    seed: int,
    A: Matrix,
    B: Matrix,
    C: Matrix,
    launch: LaunchLine,
    blocks: tuple[int, ...],
) -> float | WrongAnswer:
    """Compare only what these blocks of the launch computed, each tile with its own reference.

    A kernel may compute its tiles in another order than that of its blocks, so what was written
    says which tiles those are. Only where they are all among the blocks' own is it known that
    every one of those had to be written.
    """
    columns = launch.grid(case.shape.M, case.shape.K)[0]
    own = {divmod(block, columns) for block in blocks}
    written = _tiles(~unwritten(C), launch)
    chosen = own if written <= own else written
    worst = 0.0
    for row, column in sorted(chosen):
        top, left = row * launch.tile_rows, column * launch.tile_columns
        rows, across = (
            slice(top, top + launch.tile_rows),
            slice(left, left + launch.tile_columns),
        )
        tile = np.ascontiguousarray(C[rows, across])
        comparison = compare(A[rows], B[:, across], tile, exact=case.exact)
        if not comparison.passed:
            return wrong_answer(
                Stage.VERIFY, case, seed, A[rows], B[:, across], tile, comparison, (top, left)
            )
        worst = max(worst, comparison.worst)
    return worst


def _tiles(written: NDArray[np.bool_], launch: LaunchLine) -> set[tuple[int, int]]:
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
    limit = "must be exact" if case.exact else f"error at most {MAX_ERROR:g}"
    return WrongAnswer(
        stage=stage,
        message=f"wrong at {case} ({limit}, found {comparison.worst:.3g}): {found.pattern}",
        counterexample=found,
    )


def _touched(finished: Finished, case: Case) -> Outcome | None:
    """Whether the launch wrote to anything but C."""
    if finished.changed_inputs:
        names = " and ".join(finished.changed_inputs)
        return RuleViolation(
            stage=Stage.VERIFY,
            rule=Rule.INPUTS_CHANGED,
            message=f"the kernel changed {names} at {case}; inputs are not to be written to",
        )
    if finished.wrote_outside:
        place = finished.wrote_outside[0]
        message = f"the kernel wrote {place} at {case}: outside the matrix"
        finding = Finding(
            tool=Tool.MEMCHECK,
            hazard=Hazard.OUT_OF_BOUNDS,
            message=message,
            at=Place(),
            access="write",
            array=Array(place.split()[-1]),
            shape=case.shape,
        )
        return MemoryFault(stage=Stage.VERIFY, message=message, findings=(finding,))
    return None
