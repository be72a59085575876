"""What GPUs are held for is read from their locks, by whoever holds them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.judge.progress import Silent
from harness.judge.workers.gpu_lock import Use, hold_gpu
from tests.occupancy import Occupancy, held_for, watched
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such locks")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_who_came_first_says_what_for() -> None:
    assert held_for("GPU-1") is None, "nobody ever was there"
    with hold_gpu("GPU-1", Use.ALONE, Silent()):
        assert held_for("GPU-1") is Use.ALONE and held_for("GPU-2") is None
    with hold_gpu("GPU-1", Use.SHARED, Silent()), hold_gpu("GPU-1", Use.SHARED, Silent()):
        assert held_for("GPU-1") is Use.SHARED
    assert held_for("GPU-1") is None


def test_shares_are_of_the_time_from_first_to_last_and_the_mean_of_gpus() -> None:
    occupancy = Occupancy(["GPU-1", "GPU-2", "GPU-3"])
    occupancy.look()
    assert occupancy.held is None
    with hold_gpu("GPU-1", Use.ALONE, Silent()):
        occupancy.look()
    occupancy.look()
    with hold_gpu("GPU-2", Use.SHARED, Silent()), hold_gpu("GPU-1", Use.ALONE, Silent()):
        occupancy.look()
        occupancy.look()
    occupancy.look()
    assert occupancy.held == ((3 / 4 + 0) / 2, (0 + 1) / 2, (1 / 4 + 0) / 2)


def test_somebody_looks_as_long_as_it_lasts() -> None:
    with watched(["GPU-1"]) as occupancy, hold_gpu("GPU-1", Use.SHARED, Silent()):
        eventually(lambda: occupancy.held == (0, 1, 0), "a look")
