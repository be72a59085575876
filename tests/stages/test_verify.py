"""Verification on a device that does as it is told: which cases it runs, and what it makes of
them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.devices.guards import POISON
from harness.progress import Silent
from harness.protocol.device import Run
from harness.protocol.request import Fault
from harness.report import (
    JudgeError,
    MemoryFault,
    Outcome,
    Rule,
    RuleViolation,
    RuntimeFault,
    TimeLimit,
    Verification,
    WrongAnswer,
)
from harness.stages.verify import MAX_LAUNCH_LIMITS, Failure, verify
from problem import cases
from problem.cases import CASES, QUICK_CASES, RANKED, Case, Matrix, Shape
from problem.launcher import LaunchLine
from problem.reference import MAX_ERROR
from tests.stages.fakes import FakeDevice, right

SMALL_RANKED = Case(Shape(320, 64, 256))
"""Stands for the ranked size, which takes a second to multiply."""

SEED = 7


@pytest.fixture(autouse=True)
def small_ranked_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.stages.verify.RANKED", SMALL_RANKED)
    monkeypatch.setattr("harness.stages.verify.MID_SIZE_FLOP", 1 << 28)
    monkeypatch.setattr("harness.stages.verify.SAMPLED_MID_SIZE_FLOP", 1 << 28)


def run(device: FakeDevice, **options: Any) -> Verification | Failure:
    chosen: dict[str, Any] = {
        "quick": False,
        "sampled": False,
        "blocks_depend": False,
        "seconds": 20.0,
        "printed": [],
        "progress": Silent(),
    }
    return verify(device, LaunchLine(), SEED, **chosen | options)


def outcome(device: FakeDevice, **options: Any) -> Outcome:
    found = run(device, **options)
    assert isinstance(found, Failure)
    return found.outcome


def test_a_right_kernel_runs_every_case_with_inputs_of_the_seed() -> None:
    device = FakeDevice()
    found = run(device)
    assert isinstance(found, Verification)
    shapes = [request.shape for request in device.ran]
    assert shapes[: len(CASES)] == [case.shape for case in CASES]
    assert shapes[-1] == SMALL_RANKED.shape and len(found.cases) == len(shapes)
    assert shapes[len(CASES) : -1] == [
        case.shape
        for case in (
            *cases.lone_element_cases(SEED, 8),
            *cases.random_cases(SEED, 8),
            *cases.mid_size_cases(SEED, 4, 1 << 28),
        )
    ]
    assert sum(min(shape.M, shape.K) >= 512 for shape in shapes) >= 4
    for request, result in zip(device.ran, found.cases, strict=True):
        A, B = result.case.draw(SEED)
        assert np.array_equal(request.A, A) and np.array_equal(request.B, B)
        assert request.seconds == 20 and request.blocks is None
    assert 0 < found.worst_error < MAX_ERROR


def test_a_quick_grading_has_secret_cases_too_and_no_ranked_size() -> None:
    device = FakeDevice()
    assert isinstance(run(device, quick=True), Verification)
    assert len(device.ran) == len(QUICK_CASES) + 7
    assert SMALL_RANKED.shape not in [request.shape for request in device.ran]


@pytest.mark.parametrize(("factor", "passes"), [(0.9, True), (1.1, False)])
def test_the_limit_is_the_limit(factor: float, passes: bool) -> None:
    """Every element off by that part of its allowed error, where tolerance is allowed at all."""

    def multiply(A: Matrix, B: Matrix) -> Matrix:
        product = A.astype(np.float64) @ B.astype(np.float64)
        if A.shape[1] < 1000:
            return product.astype(np.float32)
        N = A.shape[1]
        S = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=0) / np.sqrt(N)
        larger = np.maximum(np.sqrt((product**2).mean()), np.sqrt((S**2).mean()))
        return (product + factor * MAX_ERROR * larger).astype(np.float32)

    device = FakeDevice(multiply=multiply)
    found = run(device)
    failed_on_long_sum = isinstance(found, Failure) and found.case.shape.N >= 1000
    if passes:
        assert isinstance(found, Verification) or found.case.exact
    else:
        assert failed_on_long_sum and isinstance(found.outcome, WrongAnswer)


def test_a_wrong_case_ends_it_and_can_be_replayed() -> None:
    def multiply(A: Matrix, B: Matrix) -> Matrix:
        C = right(A, B)
        if C.shape == (271, 397):
            C[100, 200] += 50
        return C

    device = FakeDevice(multiply=multiply)
    found = run(device)
    assert isinstance(found, Failure) and isinstance(found.outcome, WrongAnswer)
    assert found.case.shape == Shape(271, 137, 397) and len(device.ran) == 3
    shown = found.outcome.counterexample
    assert (shown.case, shown.seed, shown.worst_block) == (found.case, SEED, (6, 12))
    assert (shown.elements[0].row, shown.elements[0].column) == (100, 200)


def test_changed_inputs_and_canaries_are_verdicts() -> None:
    changed = outcome(FakeDevice(run=lambda _: {"changed_inputs": ("B",)}))
    assert isinstance(changed, RuleViolation) and changed.rule is Rule.INPUTS_CHANGED
    beside = outcome(FakeDevice(run=lambda _: {"wrote_outside": ("before A",)}))
    assert isinstance(beside, MemoryFault) and beside.findings[0].array == "A"
    assert "wrote before A" in beside.message


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ("memory", MemoryFault),
        ("trap", RuntimeFault),
        ("launch-refused", RuntimeFault),
        ("time-limit", TimeLimit),
        ("judge", JudgeError),
    ],
)
def test_a_fault_is_the_verdict_of_its_cause(cause: Any, kind: type) -> None:
    fault = Fault(cause=cause, message="so it was", printed="last words")
    printed: list[str] = []
    found = outcome(FakeDevice(run=lambda _: fault), printed=printed)
    assert isinstance(found, kind) and printed == ["last words"]
    assert cause == "judge" or str(CASES[0].shape) in getattr(found, "message", "")


def test_launches_that_stay_below_their_limit_have_one_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    device = FakeDevice()
    found = outcome(device, seconds=1.5)
    assert isinstance(found, TimeLimit) and "together" in found.message
    assert len(device.ran) == int(MAX_LAUNCH_LIMITS * 1.5) + 1


# ------------------------------------------------------------------------------------- samples


def sampled(request: Run, tile_of: Any) -> Matrix:
    """What blocks make of C that compute this tile each: 16×16, by their number."""
    assert request.blocks is not None
    C = np.full((request.shape.M, request.shape.K), POISON, np.uint32).view(np.float32)
    product = right(request.A, request.B)
    for block in request.blocks:
        row, column = divmod(tile_of(block), request.shape.K // 16)
        rows, columns = slice(row * 16, row * 16 + 16), slice(column * 16, column * 16 + 16)
        C[rows, columns] = product[rows, columns]
    return C


def with_tiles(tile_of: Any) -> FakeDevice:
    def told(request: Run) -> dict[str, Any]:
        return {"C": sampled(request, tile_of)} if request.blocks is not None else {}

    return FakeDevice(run=told)


BLOCKS = SMALL_RANKED.shape.M // 16 * SMALL_RANKED.shape.K // 16


@pytest.mark.parametrize("tile_of", [lambda b: b, lambda b: (7 * b + 3) % BLOCKS])
def test_blocks_with_a_tile_each_pass_in_any_order(tile_of: Any) -> None:
    device = with_tiles(tile_of)
    found = run(device, sampled=True)
    assert isinstance(found, Verification)
    first, second = (set(request.blocks or ()) for request in device.ran[-2:])
    assert first and second and not first & second
    assert found.cases[-1].sampled_blocks == len(first) + len(second)


@pytest.mark.parametrize("tiles", [1, 4])
def test_blocks_that_share_tiles_leave_others_out(tiles: int) -> None:
    """Where all of a sample's tiles are its own, what is missing is seen at once."""
    found = outcome(with_tiles(lambda b: b % tiles), sampled=True)
    assert isinstance(found, WrongAnswer)
    assert "same tile" in found.message or "no element of C was written" in found.message


def test_blocks_that_depend_on_one_another_are_run_whole_at_a_smaller_size() -> None:
    device = FakeDevice()
    found = run(device, sampled=True, blocks_depend=True)
    assert isinstance(found, Verification) and found.note is not None
    assert all(request.blocks is None for request in device.ran)
    assert device.ran[-1].shape.flop <= RANKED.shape.flop
