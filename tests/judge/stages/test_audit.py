"""The audit of launches that were timed: what it holds to the product, and what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.judge.stages import audit as module
from harness.judge.stages.audit import Kept, audit, begin
from harness.protocol.report import Outcome, Rule, RuleViolation, Stage, WrongAnswer
from harness.protocol.timing import Fetched
from problem.cases import Case, Shape
from problem.inputs import Draw
from problem.reference import MAX_ERROR
from tests.judge.stages.fakes import Watcher, right

SMALL = Case(Shape(256, 64, 512))
"""Stands for the ranked size."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RANKED", SMALL)


def kept(first_off: float = 0.0, timed_off: float | None = 0.0, timed_scale: float = 1.0) -> Kept:
    """Of a kernel whose last element is off by so much; None where no timed launch was kept."""
    rows, columns = Case(Shape(64, SMALL.shape.N, 64)).draw(9)
    first = np.tile(right(rows, columns), (4, 8))
    first[-1, -1] += first_off
    timed = None
    if timed_off is not None:
        A = Draw.plain(5).matrix(SMALL.shape.M, SMALL.shape.N)
        B = Draw.plain(6).matrix(SMALL.shape.N, SMALL.shape.K)
        C = right(A, B) * np.float32(timed_scale)
        C[-1, -1] += timed_off
        timed = Fetched(seed_of_A=5, seed_of_B=6, C=C)
    return Kept(begin(rows, columns, first), timed)


def told(**launches: Any) -> tuple[list[str], float | Outcome | None]:
    watcher = Watcher()
    return watcher.told, audit(kept(**launches), 9, watcher)


def test_right_launches_have_an_error_within_the_limit() -> None:
    said, error = told()
    assert isinstance(error, float) and 0 < error < MAX_ERROR
    assert said == [
        "product of the first launch on the CPU",
        "full product of a timed launch on the CPU",
    ]


def test_a_timed_launch_may_be_off_by_a_part_of_its_size() -> None:
    """By more than the limit, were it held to be exact."""
    _, error = told(timed_scale=1 + 5e-6)
    assert isinstance(error, float) and 1e-6 < error < MAX_ERROR


def test_where_no_timed_launch_was_kept_there_is_no_error() -> None:
    said, error = told(timed_off=None)
    assert error is None and len(said) == 1


def test_a_wrong_first_launch_is_a_stale_result() -> None:
    _, found = told(first_off=0.02)
    assert isinstance(found, RuleViolation)
    assert (found.stage, found.rule) == (Stage.MEASURE, Rule.STALE_RESULT)
    said, _, limits = found.message.rpartition("is ")
    assert "wrong in the first launches" in said
    assert 10 < float(limits.removesuffix(" times the limit")) < 100


def test_a_timed_launch_that_no_check_found_wrong_is() -> None:
    _, found = told(timed_off=0.5)
    assert isinstance(found, WrongAnswer) and found.stage is Stage.MEASURE
    shown = found.counterexample
    assert (shown.case, shown.seed) == (SMALL, 9)
    assert (shown.elements[0].row, shown.elements[0].column) == (255, 511)
