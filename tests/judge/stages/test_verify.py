"""Verification on a fake device: the cases that run, and their results."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.devices.guards import POISON
from harness.judge.grading import Failure
from harness.judge.stages.verify import MAX_LAUNCH_LIMITS, verify
from harness.protocol import report as protocol
from harness.protocol.device import Run
from harness.protocol.request import Fault
from problem.cases import CASES, INTEGERS, Case, Extent, Matrix, Shape
from problem.inputs import Tolerance
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import MAX_ERROR, compare
from tests.judge.stages.fakes import FakeDevice, Watcher, grading, on_cpu, on_gpu, outcome_of, right

SMALL_RANKED = Case(Shape(320, 64, 256))
"""Stands for the ranked size, which takes a second to multiply."""

SEED = 7


FEW = (*CASES[:4], Case(Shape(33, 6144, 17)), Case(Shape(31, 6144, 33), INTEGERS))
"""Instead of all cases, which take seconds."""


PROBLEM = replace(
    MATRIX_MULTIPLICATION,
    ranked=SMALL_RANKED,
    known=FEW,
    quick_known=FEW,
    extent=lambda *_: Extent(0, 0, 0, 0, 1, 1, 1),
)


def run(
    device: FakeDevice, *, sampled: bool = False, printed: list[str] | None = None, **options: Any
) -> protocol.Verification | Failure:
    made = grading(on_cpu(device) if sampled else on_gpu(device), problem=PROBLEM, **options)
    made.printed = [] if printed is None else printed
    outcome = outcome_of(verify, made)
    found = made.failure or made.verification
    assert found is not None and outcome in (None, getattr(found, "outcome", None))
    return found


def outcome(device: FakeDevice, **options: Any) -> protocol.Outcome:
    found = run(device, **options)
    assert isinstance(found, Failure)
    return found.outcome


@pytest.mark.parametrize("quick", [False, True])
def test_a_right_kernel_runs_every_case_of_the_seed(quick: bool) -> None:
    device, progress = FakeDevice(), Watcher()
    found = run(device, quick=quick, progress=progress)
    assert isinstance(found, protocol.Verification) and found.note is None
    largest = PROBLEM.ranked_case(SEED, SMALL_RANKED.shape)
    expected = [*FEW] if quick else [*FEW, largest]
    assert [result.case for result in found.cases] == expected
    steps = len(expected) + (not quick)  # the last step is the accuracy grade
    assert progress.told == [(protocol.Stage.VERIFY, steps), *map(str, expected)]
    for request, result in zip(device.ran, found.cases, strict=True):
        A, B = result.case.draw(SEED)
        assert request.inputs.shape == result.case.shape
        assert all(map(np.array_equal, request.inputs.matrices, (A, B)))
        assert request.time_limit > request.seconds == 20 and request.inputs.blocks is None
        C = right(A, B)
        assert result.error == compare(A, B, C, tolerance=result.case.tolerance).worst
        assert result.sampled_blocks is None and 0 < result.seconds < 60
    errors = [result.error for result in found.cases if result.case.tolerance is Tolerance.RANDOM]
    assert 0 < found.worst_error == max(errors) < MAX_ERROR


@pytest.mark.parametrize("sampled", [False, True])
def test_the_cpu_device_runs_some_blocks_where_there_are_too_many(
    sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.judge.stages.verify.MAX_BLOCKS", 500)
    found = run(FakeDevice(), quick=True, sampled=sampled)
    assert isinstance(found, protocol.Verification)
    of_512_blocks = Case(Shape(512, 384, 256))
    assert of_512_blocks in FEW and [result.case for result in found.cases] == [*FEW]
    parts = [result.case for result in found.cases if result.sampled_blocks is not None]
    assert parts == ([of_512_blocks] if sampled else [])


def test_exact_cases_are_exact_and_do_not_count_as_errors() -> None:
    def multiply(A: Matrix, B: Matrix) -> Matrix:
        C = right(A, B)
        if C.shape == (31, 33):
            C[0, 0] = np.nextafter(C[0, 0], np.float32(np.inf))
        return C

    found = run(FakeDevice(multiply=multiply))
    assert isinstance(found, Failure) and found.case == FEW[5]
    assert isinstance(found.outcome, protocol.WrongAnswer)
    assert "(must be exact, found" in found.outcome.message


def test_a_wrong_case_ends_it_and_can_be_replayed() -> None:
    def multiply(A: Matrix, B: Matrix) -> Matrix:
        C = right(A, B)
        if C.shape == (271, 397):
            C[100, 200] += 50
        return C

    device = FakeDevice(multiply=multiply)
    found = run(device)
    assert isinstance(found, Failure) and isinstance(found.outcome, protocol.WrongAnswer)
    assert found.case.shape == Shape(271, 137, 397) and len(device.ran) == 3
    told = found.outcome.message
    assert told.startswith("wrong at 271×137×397 uniform (error at most 1e-05, found ")
    assert found.outcome.stage is protocol.Stage.VERIFY
    shown = found.outcome.counterexample
    assert (shown.case, shown.seed, shown.worst_block) == (found.case, SEED, (6, 12))
    assert (shown.elements[0].row, shown.elements[0].column) == (100, 200)
    printed: list[str] = []
    trap = Fault(cause="trap", message="it trapped", printed="before it")
    run(FakeDevice(run=lambda _: trap), printed=printed)
    assert printed == ["before it"]


def test_launches_that_stay_below_their_limit_have_one_together() -> None:
    def second(_: Run) -> dict[str, float]:
        return {"seconds": 1.0}

    device = FakeDevice(run=second)
    assert isinstance(run(device, seconds=0.7), protocol.Verification)
    assert len(device.ran) == MAX_LAUNCH_LIMITS * 0.7
    device = FakeDevice(run=second)
    message = "the launches of verification together took more than 4 s"
    assert outcome(device, seconds=0.4) == protocol.TimeLimit(
        stage=protocol.Stage.VERIFY, message=message, seconds=4
    )
    assert len(device.ran) == 5
    found = run(FakeDevice(run=second), seconds=0.4)
    assert isinstance(found, Failure) and found.case == FEW[4]


def sampled(request: Run, tile_of: Any) -> Matrix:
    """Return C after blocks that compute one 16×16 tile each."""
    C = np.full((request.inputs.shape.M, request.inputs.shape.K), POISON, np.uint32).view(
        np.float32
    )
    product = right(*request.inputs.matrices)
    for block in request.inputs.blocks:
        row, column = divmod(tile_of(block), request.inputs.shape.K // 16)
        rows, columns = slice(row * 16, row * 16 + 16), slice(column * 16, column * 16 + 16)
        C[rows, columns] = product[rows, columns]
    return C


def with_tiles(tile_of: Any) -> FakeDevice:
    def told(request: Run) -> dict[str, Any]:
        return {"output": sampled(request, tile_of)} if request.inputs.blocks is not None else {}

    return FakeDevice(run=told)


BLOCKS = SMALL_RANKED.shape.M // 16 * SMALL_RANKED.shape.K // 16


@pytest.mark.parametrize("tile_of", [lambda b: b, lambda b: (7 * b + 3) % BLOCKS])
def test_blocks_with_a_tile_each_pass_in_any_order(tile_of: Any) -> None:
    device = with_tiles(tile_of)
    found = run(device, sampled=True)
    first, second = (set(request.inputs.blocks or ()) for request in device.ran[-2:])
    assert first and second and not first & second
    assert found.cases[-1].sampled_blocks == len(first) + len(second)
    assert found.cases[-1].blocks == BLOCKS
    assert 0 < found.cases[-1].error < MAX_ERROR
    off = iter((4e-6, 0.0))

    def inexact_at_first(request: Run) -> dict[str, Any]:
        if request.inputs.blocks is None:
            return {}
        return {"output": sampled(request, tile_of) * np.float32(1 + next(off)), "seconds": 1.0}

    last = run(FakeDevice(run=inexact_at_first), sampled=True).cases[-1]
    assert last.error > 2e-6 and last.seconds == 2


@pytest.mark.parametrize("tiles", [1, 4])
def test_blocks_that_share_tiles_leave_others_out(tiles: int) -> None:
    found = outcome(with_tiles(lambda b: b % tiles), sampled=True)
    assert isinstance(found, protocol.WrongAnswer)
    assert "same tile" in found.message or "the NaN that the judge puts" in found.message


def test_dependent_blocks_are_run_whole_at_a_smaller_size() -> None:
    device, progress = FakeDevice(), Watcher()
    found = run(device, sampled=True, blocks_depend=True, progress=progress)
    last = found.cases[-1].case
    told = [(protocol.Stage.VERIFY, len(FEW) + 2), *map(str, [*FEW, last])]
    assert progress.told[: len(told)] == told
    assert len(found.cases) == len(FEW) + 1 and last.shape.flop <= SMALL_RANKED.shape.flop
    assert last.inputs is PROBLEM.ranked_case(SEED, last.shape).inputs
    assert found.note == (
        "the kernel's blocks depend on one another, so no sample of 320×64×256 can be run here; "
        f"{last.shape} was run whole"
    )
    assert all(request.inputs.blocks is None for request in device.ran)
    slow = FakeDevice(run=lambda _: {"seconds": 1.0 if len(slow.ran) == 1 else 0.001})
    last = run(slow, sampled=True, blocks_depend=True).cases[-1].case
    assert last.shape == PROBLEM.smaller(FEW[0].shape.flop * 20 / 4), "of the slowest case's speed"


def test_a_missing_tile_is_shown_if_another_was_written_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = ((0, 1, 2, 3), (4, 5, 6, 7))
    monkeypatch.setattr("harness.judge.stages.verify.sampled_blocks", lambda *_: samples)
    found = outcome(with_tiles(lambda b: {4: 2, 5: 3}.get(b, b)), sampled=True)
    assert "wrote the same tile of C (row 0, column 2 of tiles)" in found.message
    assert {(e.row // 16, e.column // 16) for e in found.counterexample.elements} == {(0, 4)}
