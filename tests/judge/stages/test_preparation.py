"""What is made ready before it is launched: how much, in which order, and until when."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from harness.judge.stages.preparation import Preparation, Prepared
from problem.cases import INTEGERS, Case, Matrix, Shape
from problem.reference import Expected, compare
from tests.waiting import eventually

CASES = [Case(Shape(size, 20, 24)) for size in range(1, 9)]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """M of the cases that were drawn so far."""
    found: list[int] = []
    draw = Case.draw

    def noted(case: Case, seed: int) -> tuple[Matrix, Matrix]:
        found.append(case.shape.M)
        return draw(case, seed)

    monkeypatch.setattr(Case, "draw", noted)
    return found


def test_only_so_many_are_ready_before_the_one_at_hand_is_done_with(drawn: list[int]) -> None:
    preparation = Preparation(CASES, 7, whole=True, ahead=2)
    eventually(lambda: len(drawn) == 2, "two of them")
    each = iter(preparation)
    assert next(each).case == CASES[0]
    eventually(lambda: len(drawn) == 3, "one more")
    assert next(each).case == CASES[1]
    eventually(lambda: len(drawn) == 4, "one more")
    assert [prepared.case for prepared in each] == CASES[2:]
    assert drawn == [*range(1, 9)]
    preparation.close()


def test_each_is_what_its_seed_draws_with_its_product() -> None:
    cases = [Case(Shape(40, 20, 24)), Case(Shape(33, 9, 17), INTEGERS)]
    preparation = Preparation(cases, 7, whole=True, ahead=9)
    for case, prepared in zip(cases, preparation, strict=True):
        A, B = case.draw(7)
        assert np.array_equal(prepared.A, A) and np.array_equal(prepared.B, B)
        assert prepared.expected is not None
        C = (A @ B) * np.float32(1 + 1e-6)
        found, whole = prepared.expected.compare(C), compare(A, B, C, tolerance=case.tolerance)
        assert np.array_equal(found.block_errors, whole.block_errors) and found.worst > 0
    preparation.close()


def test_of_the_last_only_parts_may_be_looked_at() -> None:
    def expected(whole: bool) -> list[bool]:
        preparation = Preparation(CASES[:3], 7, whole=whole, ahead=2)
        found = [isinstance(each.expected, Expected) for each in preparation]
        preparation.close()
        return found

    assert expected(True) == [True, True, True]
    assert expected(False) == [True, True, False]


def test_nothing_more_is_begun_once_it_is_closed(
    drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    of = Expected.of

    def slow(A: Matrix, B: Matrix, *, exact: bool) -> Expected:
        assert go.wait(60)
        return of(A, B, exact=exact)

    monkeypatch.setattr(Expected, "of", slow)
    preparation = Preparation(CASES, 7, whole=True, ahead=8)
    eventually(lambda: drawn == [1], "the first is at its product")
    preparation.close()
    go.set()
    eventually(lambda: not _at_work(), "its thread has ended")
    assert drawn == [1]


def _at_work() -> bool:
    return any(thread.name.startswith("preparation") for thread in threading.enumerate())


def test_what_goes_wrong_comes_out_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: Case, seed: int) -> Prepared:
        raise MemoryError

    monkeypatch.setattr(Case, "draw", broken)
    preparation = Preparation(CASES, 7, whole=True, ahead=1)
    with pytest.raises(MemoryError):
        next(iter(preparation))
    preparation.close()
