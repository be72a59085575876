"""Rounds are turned into a score."""

import pytest

from harness.judge.stages.score import is_steady, median_interval, score
from harness.protocol.report import DeviceInfo, DeviceKind, Round, Score, Unscored
from problem.cases import RANKED, SCALED_GROUPS
from tests.judge.stages.fakes import timed_round

INFO = DeviceInfo(kind=DeviceKind.CUDA, name="test", arch="sm_90a", fp32_peak_tflops=60.0)


def timed(kernel_ms: float, baseline_ms: float = 8.0, dropped: bool = False) -> Round:
    throttled = ("hardware slowdown",) if dropped else ()
    return timed_round(kernel_ms, baseline_ms, throttled=throttled, dropped=dropped)


@pytest.mark.parametrize(
    ("n", "ranks"), [(6, (1, 6)), (12, (3, 10)), (30, (10, 21)), (50, (18, 33))]
)
def test_the_interval_of_the_median_has_the_published_ranks(n: int, ranks: tuple[int, int]) -> None:
    assert median_interval(range(1, n + 1)) == ranks


def test_the_score_is_the_median_of_the_ratios() -> None:
    rounds = [timed(4.0), timed(8.0, 16.0), timed(2.0, 2.0)] * 5
    found = scored(rounds)
    assert (found.ratio, found.kernel_ms, found.baseline_ms) == (2.0, 4.0, 8.0)
    assert found.tflops == pytest.approx(2 * 8192 * 6144 * 4096 / 4e-3 / 1e12, rel=1e-12)
    assert found.peak_share == pytest.approx(found.tflops / 60)


@pytest.mark.parametrize(
    ("kernel_cycles", "kernel_ms", "expected"),
    [
        (4_000_000, 2.0, 4.0),  # the baseline's clock is as high as the kernel's
        (3_600_000, 2.0, 4.0),  # the kernel's own is lower
        (4_020_000, 2.0, 4.0),  # the difference is no more than that of readings
        (4_080_000, 2.0, 200 / 51),  # the baseline's is lower by a fiftieth
        (440_000, 0.2, 40.0),  # too short for the clock to fall
    ],
)
def test_a_lower_baseline_clock_does_not_raise_the_score(
    kernel_cycles: int, kernel_ms: float, expected: float
) -> None:
    cycles = {"kernel_cycles": kernel_cycles, "baseline_cycles": 16_000_000}
    found = scored([timed(kernel_ms).model_copy(update=cycles)] * 12)
    assert found.ratio == pytest.approx(expected)
    assert found.ratio_by_cycles == pytest.approx(16_000_000 / kernel_cycles)


def test_steady_needs_six_rounds_and_a_narrow_interval() -> None:
    assert not is_steady([timed(8.0)] * 5)
    assert is_steady([timed(8.0)] * 6)
    for off, steady in ((0.0024, True), (0.0026, False)):  # a quarter of a per cent
        for far in (1 - off, 1 + off):
            rounds = [timed(8.0, 8.0)] * 12 + [timed(8.0, 8.0 * far)] * 11
            assert is_steady(rounds) is steady


def scored(rounds: list[Round]) -> Score:
    found = score(rounds, INFO, RANKED.shape)
    assert isinstance(found, Score)
    return found


def kinds(uniform: float, rescaled: float, count: int = 15) -> list[Round]:
    return [
        round
        for _ in range(count)
        for round in (timed(uniform), timed(rescaled).model_copy(update={"inputs": SCALED_GROUPS}))
    ]


def test_kinds_of_about_the_same_speed_count_together() -> None:
    found = scored(kinds(8.0, 8.04))
    assert found.slower_on is None and found.low < found.ratio < found.high
    found = scored([round for each in (7.8, 8.0, 8.2) for round in kinds(each, each * 1.02, 5)])
    assert found.slower_on is None and found.kernel_ms == pytest.approx((8.0 + 8.16) / 2)


@pytest.mark.parametrize(("count", "ms", "slower"), [(5, 8.4, False), (5, 9, True), (1, 16, True)])
def test_a_few_rounds_of_a_kind_show_large_differences(count: int, ms: float, slower: bool) -> None:
    found = scored([*kinds(8, ms, count), *[timed(8)] * 5])
    assert (found.slower_on == SCALED_GROUPS) is slower


def test_rounds_that_the_clocks_void_leave_no_score() -> None:
    late = timed(4.0).model_copy(update={"dropped": True, "clocks_differ": True})
    found = score([late] * 5 + [timed(4.0)] * 5, INFO, RANKED.shape)
    assert isinstance(found, Unscored) and found.reason == "clocks"


def test_more_than_a_fifth_dropped_is_refused_with_reasons() -> None:
    hot = timed(8.0, dropped=True)
    rounds = [timed(8.0)] * 8 + [hot] * 2
    scored(rounds)
    braked = hot.model_copy(update={"throttled": ("power brake", "hardware slowdown")})
    capped = timed(8.0).model_copy(update={"throttled": ("power cap",)})
    assert score([*rounds[2:], braked, capped], INFO, RANKED.shape) == Unscored(
        reason="throttled",
        message="the GPU lowered its clock in 3 of 10 rounds (hardware slowdown, power brake); "
        "cool it and grade again",
    )


def test_the_slowest_of_many_kinds_is_scored() -> None:
    times = {"a": (8.0, 8.0), "b": (8.01, 8.0), "c": (9.0, 7.875), "d": (8.5, 8.0)}
    found = scored(
        [
            timed_round(*ms, inputs=kind, kernel_cycles=round(1000 * ms[0]), baseline_cycles=7875)
            for kind, ms in times.items()
        ]
        * 6
    )
    assert (found.slower_on, found.kernel_ms, found.baseline_ms) == ("c", 9.0, 7.875)
    assert found.ratio == found.low == found.high == found.ratio_by_cycles == 0.875
