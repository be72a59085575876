"""What one program's runs say together: alone to the last digit, several by their mean."""

from __future__ import annotations

import math

import pytest

from harness.board.result import results
from tests.board.factory import entry


def test_a_single_run_is_its_score_to_the_last_digit() -> None:
    scores = [7 + n / 7 for n in range(50)]
    assert any(math.exp(math.log(score)) != score for score in scores)
    for score in scores:
        run = entry("tile")._replace(score=score, low=score - 0.002, high=score + 0.002)
        (only,) = results([run], {})
        ratio, low, high = only.score()
        assert ratio == score
        assert (low, high) == (pytest.approx(score - 0.002), pytest.approx(score + 0.002))


def test_several_runs_have_the_mean_of_their_scores() -> None:
    runs = [entry("tile", score=score, source="one") for score in (0.8, 0.9)]
    (only,) = results(runs, {})
    assert only.score()[0] == pytest.approx(math.sqrt(0.8 * 0.9))
