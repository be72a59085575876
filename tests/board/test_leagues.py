"""Leagues: every choice of cores with every choice of a launch."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from harness.board.leagues import Leagues
from harness.protocol.report import Badge


def test_by_default_there_are_nine_of_which_one_takes_all() -> None:
    leagues = Leagues()
    cuda, tensor, default, declared = (
        *("cuda-cores", "tensor-cores"),
        *("default-launch", "declared-launch"),
    )
    assert [set(badges) for badges in leagues.badges()] == [
        *(set(), {default}, {declared}),
        *({cuda}, {cuda, default}, {cuda, declared}),
        *({tensor}, {tensor, default}, {tensor, declared}),
    ]
    assert leagues.core_labels() == ["all cores", "CUDA cores", "tensor cores"]
    assert leagues.launch_labels() == ["every launch", "default launch", "declared launch"]
    assert leagues.of_some_cores() == [3, 6]


def test_a_contest_may_have_fewer() -> None:
    leagues = Leagues(cores=(Badge.TENSOR_CORES, "all"), launch=(Badge.DEFAULT_LAUNCH,))
    assert [set(badges) for badges in leagues.badges()] == [
        {"tensor-cores", "default-launch"},
        {"default-launch"},
    ]
    assert leagues.of_some_cores() == [0]
    assert Leagues(cores=("all",)).of_some_cores() == [0]


@pytest.mark.parametrize("part", ["cores", "launch"])
def test_each_is_named_once_and_one_at_least(part: str) -> None:
    with pytest.raises(ValidationError, match="each of these is named once"):
        Leagues.model_validate({part: ["all", "all"]})
    with pytest.raises(ValidationError, match="at least 1"):
        Leagues.model_validate({part: []})
