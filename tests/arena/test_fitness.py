"""Whether a GPU may judge: each rule is broken once, and what is ordinary passes."""

from __future__ import annotations

import random

import pytest

from harness.arena.checkup import CheckUp, Known, reference_set
from harness.arena.fitness import fault
from harness.protocol.report import Unscored, Verdict
from tests.arena.checkups import WELL, checkup, known

TWINS = [checkup("GPU-2", tensor=4.84), checkup("GPU-3", tensor=4.79)]


def with_known(found: CheckUp, *changed: Known) -> CheckUp:
    names = {each.name: each for each in changed}
    return found.model_copy(
        update={"known": tuple(names.get(each.name, each) for each in found.known)}
    )


@pytest.mark.parametrize("others", [[], TWINS[:1], TWINS])
def test_an_ordinary_gpu_is_fit(others: list[CheckUp]) -> None:
    assert fault(checkup(), others) is None
    assert fault(checkup(tensor=4.74), others) is None, "twins differ by 1.1 %"


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (checkup(itself=1.02), "cuBLAS beside itself scores 1.0200 here, and not 1"),
        (
            checkup(health=WELL.model_copy(update={"uncorrected_errors": 2})),
            "2 errors that could not be corrected",
        ),
        (
            checkup(health=WELL.model_copy(update={"remapping_failed": True})),
            "can mend itself no more",
        ),
        (
            checkup(health=WELL.model_copy(update={"power_limit_w": 500.0})),
            "limited to 500 W, and its model has 700 W",
        ),
        (
            with_known(
                checkup(),
                Known.of("02_shared_tile", Verdict.WRONG_ANSWER, None, (), "wrong at 16×16×16"),
            ),
            "02_shared_tile, which is right, was found wrong-answer here: wrong at 16×16×16",
        ),
        (
            with_known(
                checkup(),
                Known.of(
                    "02_shared_tile",
                    Verdict.ACCEPTED,
                    Unscored(reason="throttled", message="too hot"),
                    (),
                ),
            ),
            "could not be scored here: too hot",
        ),
    ],
)
def test_a_gpu_that_is_off_by_itself_is_told_why(found: CheckUp, sentence: str) -> None:
    why = fault(found, [])
    assert why is not None and sentence in why


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (checkup(tensor=4.5), "36_wgmma_one_accumulator scores 4.5000 here, 6.5% off the median"),
        (checkup(tensor=5.2), "8.0% off"),
        (checkup(baseline_ms=8.6), "cuBLAS takes 8.600 ms here"),
        (checkup(driver="12.8"), "its driver (its CUDA version) is 12.8"),
    ],
)
def test_a_gpu_that_is_off_beside_its_twins_is_told_how_far(found: CheckUp, sentence: str) -> None:
    why = fault(found, TWINS)
    assert why is not None and sentence in why
    assert fault(found, []) is None, "alone there is nothing to hold it against"


def test_a_model_that_spreads_widely_may() -> None:
    wide = [checkup(f"GPU-{n}", tensor=4.8 * (1 + n / 100)) for n in range(-5, 6)]
    assert fault(checkup(tensor=4.8 * 1.08), wide) is None
    assert fault(checkup(tensor=4.8 * 1.3), wide) is not None


def test_what_this_gpu_cannot_run_is_no_fault_of_it() -> None:
    unsupported = Known.of("36_wgmma_one_accumulator", Verdict.UNSUPPORTED, None, ())
    assert fault(with_known(checkup(), unsupported), TWINS) is None


def test_of_gpus_that_differ_by_chance_alone_none_is_set_aside() -> None:
    """By the spread that was measured: a deviation of 0.8 %."""
    generator = random.Random(1)
    for _ in range(200):
        crew = [checkup(f"GPU-{n}", tensor=generator.gauss(4.8, 0.038)) for n in range(32)]
        assert fault(crew[0], crew[1:]) is None


def test_the_reference_set_is_there_for_every_architecture() -> None:
    for arch in ("sm_75", "sm_80", "sm_90a", "sm_100a"):
        paths = reference_set(arch)
        assert len(paths) == 3 and all(path.is_file() for path in paths)
    assert known("a", 1.0).score is not None
