"""The order of kernels follows from the rounds of a play-off, and a result must agree with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from harness.judge.stages.playoff import (
    Difference,
    Game,
    Ordered,
    Player,
    PlayOff,
    difference,
    differences,
)
from harness.protocol.report import DeviceInfo, Round
from problem.cases import SCALED_GROUPS, UNIFORM
from tests.judge.stages.fakes import INFO


def on(uuid: str) -> DeviceInfo:
    return INFO.model_copy(update={"uuid": uuid})


def timed(ms: float, inputs: str = UNIFORM, dropped: bool = False) -> Round:
    return Round(
        kernel_ms=ms,
        baseline_ms=8.0,
        inputs=inputs,
        kernel_first=True,
        clock_mhz=1980,
        power_w=500,
        dropped=dropped,
        check=0.1,
    )


def test_a_difference_is_the_median_of_the_ratios_of_one_round() -> None:
    one = [timed(2.0 + n / 100) for n in range(8)]
    other = [timed(1.01 * (2.0 + n / 100)) for n in range(8)]
    found = difference(one, other)
    assert found is not None and found.value == pytest.approx(math.log(1.01))
    assert found.below == pytest.approx(0) and found.above == pytest.approx(0)
    back = difference(other, one)
    assert back is not None and back.value == pytest.approx(-math.log(1.01))


def test_a_round_that_is_dropped_for_one_counts_for_neither() -> None:
    one = [timed(2.0), *(timed(2.0) for _ in range(6)), timed(9.0, dropped=True)]
    other = [timed(9.0, dropped=True), *(timed(2.02) for _ in range(6)), timed(2.02)]
    found = difference(one, other)
    assert found is not None and found.value == pytest.approx(math.log(1.01))
    assert difference(one[1:], other[1:]) is not None  # six are enough
    assert difference(one[2:], other[2:]) is None  # five are not


def by_kind(uniform: float, rescaled: float) -> list[Round]:
    return [
        timed(ms * (1 + n / 1e5), kind)
        for n in range(10)
        for ms, kind in ((uniform, UNIFORM), (rescaled, SCALED_GROUPS))
    ]


def test_two_that_are_slower_on_one_kind_of_inputs_are_compared_there() -> None:
    found = difference(by_kind(2.0, 2.4), by_kind(2.2, 2.3))
    assert found is not None and found.value == pytest.approx(math.log(2.3 / 2.4), abs=1e-3)
    found = difference(by_kind(2.4, 2.0), by_kind(2.3, 2.2))
    assert found is not None and found.value == pytest.approx(math.log(2.3 / 2.4), abs=1e-3)


Rounds = tuple[tuple[Round, ...], ...]
"""Of each player."""


def with_ratio(percent: float, spread: float = 0.0) -> Rounds:
    """Return rounds of two players, the first of which is faster by so much."""
    ratios = [1 + (percent + spread * step) / 100 for step in (-1, -0.5, -0.2, 0, 0, 0.2, 0.5, 1)]
    return (timed(2.0),) * 8, tuple(timed(2.0 * ratio) for ratio in ratios)


def on_gpus(*games: Rounds) -> list[Game]:
    """A game on a GPU of its own for each of these rounds."""
    return [Game(device=on(f"GPU-{n}"), rounds=rounds) for n, rounds in enumerate(games)]


def of_games(*games: Rounds) -> Difference:
    (only,) = differences(on_gpus(*games))
    return only


@pytest.mark.parametrize(
    ("percent", "spread", "ordered"),
    [
        (1.0, 0.0, Ordered.FASTER),
        (-1.0, 0.0, Ordered.SLOWER),
        (1.0, 0.9, Ordered.FASTER),
        (-1.0, 0.9, Ordered.SLOWER),
        (1.0, 1.5, Ordered.UNKNOWN),
        (-1.0, 1.5, Ordered.UNKNOWN),
        (0.08, 0.0, Ordered.EQUAL),
        (-0.08, 0.0, Ordered.EQUAL),
        (0.12, 0.0, Ordered.FASTER),
        (-0.12, 0.0, Ordered.SLOWER),
        (0.08, 0.03, Ordered.FASTER),
        (0.0, 0.2, Ordered.UNKNOWN),
    ],
)
def test_an_order_is_known_where_the_interval_says_it(
    percent: float, spread: float, ordered: Ordered
) -> None:
    found = of_games(with_ratio(percent, spread))
    assert found.ordered is ordered
    assert found.percent == pytest.approx(percent, abs=0.01)
    assert found.low == pytest.approx(percent - spread, abs=0.02)
    assert found.high == pytest.approx(percent + spread, abs=0.02)


def test_how_sure_several_gpus_are_follows_from_how_far_they_agree() -> None:
    two = of_games(with_ratio(1.0), with_ratio(1.2))
    assert two.percent == pytest.approx(1.1, abs=0.01)
    # Student's interval of one degree of freedom: 12.7 times the deviation of the mean.
    assert two.low == pytest.approx(1.1 - 12.706 * 0.1, abs=0.02)
    assert two.high == pytest.approx(1.1 + 12.706 * 0.1, abs=0.02)
    # And its distribution there: 1/2 + atan(t) / pi, at t = 1.1 / 0.1.
    assert two.confidence == pytest.approx(0.5 + math.atan(11) / math.pi, abs=0.001)
    assert two.ordered is Ordered.UNKNOWN
    three = of_games(with_ratio(1.0), with_ratio(1.1), with_ratio(1.2))
    assert three.ordered is Ordered.FASTER and three.percent == pytest.approx(1.1, abs=0.01)


def altered(change: Callable[[Any], None]) -> None:
    """Read a result after a change of its data."""
    games = on_gpus(with_ratio(1.0, 0.1), with_ratio(1.0, 0.1))
    players = [Player(name=n, author=None, sha256=n * 64, code=n * 64) for n in "ab"]
    found = PlayOff(
        judge="1",
        cases=1,
        created=datetime(2026, 1, 1, tzinfo=UTC),
        players=tuple(players),
        games=tuple(games),
        differences=differences(games),
    )
    data = found.model_dump()
    change(data)
    PlayOff.model_validate(data)


def test_what_a_result_says_must_follow_from_its_rounds() -> None:
    altered(lambda data: None)
    for field, value in (("first", 1), ("second", 0), ("percent", 1.1), ("ordered", "equal")):
        with pytest.raises(ValidationError, match="does not follow from its rounds"):
            altered(lambda data, f=field, v=value: data["differences"][0].update({f: v}))
    altered(
        lambda data: data["differences"][0].update(percent=data["differences"][0]["percent"] + 1e-8)
    )
    with pytest.raises(ValidationError):
        altered(lambda data: data.update(differences=()))


def test_a_game_is_on_a_gpu_of_its_own_of_one_model() -> None:
    for uuid in ("GPU-0", "", None):
        with pytest.raises(ValidationError, match="a GPU of its own"):
            altered(lambda data, u=uuid: data["games"][1]["device"].update(uuid=u))
    with pytest.raises(ValidationError, match="more than one model"):
        altered(lambda data: data["games"][1]["device"].update(name="another"))


def test_every_player_has_a_launch_in_every_round_that_took_time() -> None:
    def without(data: Any, player: int) -> None:
        rounds = [*data["games"][1]["rounds"]]
        rounds[player] = rounds[player][:-1]
        data["games"][1]["rounds"] = rounds

    for player in range(2):
        with pytest.raises(ValidationError, match="its launch in every round"):
            altered(lambda data, p=player: without(data, p))
    with pytest.raises(ValidationError, match="its launch in every round"):
        altered(lambda data: data["games"][0].update(rounds=data["games"][0]["rounds"][:1]))
    for field in ("kernel_ms", "baseline_ms"):
        with pytest.raises(ValidationError, match="took no time"):
            altered(lambda data, f=field: data["games"][0]["rounds"][1][3].update({f: 0.0}))

    def faster(data: Any) -> None:
        for game in data["games"]:
            for each in (each for rounds in game["rounds"] for each in rounds):
                each.update(kernel_ms=each["kernel_ms"] / 16, baseline_ms=each["baseline_ms"] / 16)

    altered(faster)  # a launch may take less than a millisecond
