"""From rounds to a score."""

import numpy as np
import pytest

from harness.report import DeviceInfo, DeviceKind, Round, Score, Unscored
from harness.stages.score import MAX_DROPPED, is_steady, median_interval, score

INFO = DeviceInfo(kind=DeviceKind.CUDA, name="test", arch="sm_90a", fp32_peak_tflops=60.0)


def timed(kernel_ms: float, baseline_ms: float = 8.0, dropped: bool = False) -> Round:
    return Round(
        kernel_ms=kernel_ms,
        baseline_ms=baseline_ms,
        kernel_first=False,
        clock_mhz=1980,
        power_w=500,
        throttled=("hardware slowdown",) if dropped else (),
        dropped=dropped,
        check=0.1,
    )


@pytest.mark.parametrize(
    ("n", "ranks"), [(6, (1, 6)), (12, (3, 10)), (30, (10, 21)), (50, (18, 33))]
)
def test_the_interval_of_the_median_has_the_published_ranks(n: int, ranks: tuple[int, int]) -> None:
    """The usual table of order statistics for a 95 % interval."""
    assert median_interval(range(1, n + 1)) == ranks


def test_the_interval_covers_the_median_95_times_in_100() -> None:
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        low, high = median_interval(list(generator.exponential(size=30)))
        inside += low <= np.log(2) <= high
    assert inside / 2000 >= 0.94


def test_the_score_is_the_median_of_the_ratios() -> None:
    rounds = [timed(4.0), timed(8.0, 16.0), timed(2.0, 2.0)] * 5
    found = score(rounds, INFO)
    assert isinstance(found, Score)
    assert (found.ratio, found.kernel_ms, found.baseline_ms) == (2.0, 4.0, 8.0)
    assert found.tflops == pytest.approx(2 * 8192 * 6144 * 4096 / 4e-3 / 1e12)
    assert found.peak_share == pytest.approx(found.tflops / 60)


def test_dropped_rounds_do_not_count_and_too_many_void_the_score() -> None:
    few = [timed(8.0)] * 18 + [timed(80.0, dropped=True)] * 2
    found = score(few, INFO)
    assert isinstance(found, Score) and found.low == found.high == 1.0
    many = [timed(8.0)] * 7 + [timed(80.0, dropped=True)] * 3
    assert MAX_DROPPED < 0.3
    void = score(many, INFO)
    assert isinstance(void, Unscored) and "hardware slowdown" in void.message


def test_steady_is_a_narrow_interval_not_a_lucky_start() -> None:
    assert not is_steady([timed(8.0)] * 11)
    assert is_steady([timed(8.0)] * 12)
    assert not is_steady([timed(8.0), timed(8.2)] * 20)
