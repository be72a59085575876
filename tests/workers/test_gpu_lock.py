"""Two gradings on one GPU do not time each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from harness.progress import Silent
from harness.report import Stage
from harness.workers import gpu_lock
from harness.workers.gpu_lock import GpuBusy, exclusive_gpu, lock_file
from tests.stages.fakes import Watcher
from tests.waiting import PATIENCE

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def _hold(gpu: str, held: Event, give_back: Event) -> None:
    with exclusive_gpu(gpu, Silent()):
        held.set()
        give_back.wait(PATIENCE)


def held_elsewhere(gpu: str) -> tuple[multiprocessing.Process, Event]:
    held, give_back = SPAWN.Event(), SPAWN.Event()
    process = SPAWN.Process(target=_hold, args=(gpu, held, give_back))
    process.start()
    assert held.wait(PATIENCE)
    return process, give_back  # type: ignore[return-value]  # a spawned one is one


def test_who_comes_second_waits_and_says_so() -> None:
    process, give_back = held_elsewhere("GPU-1")
    watcher = Watcher()
    busy = pytest.raises(GpuBusy, match="another grading has held this GPU")
    with busy, exclusive_gpu("GPU-1", watcher, seconds=0.3):
        pass
    assert watcher.told[0] == (Stage.READ, None)
    assert set(watcher.told[1:]) == {"waiting: another grading is on this GPU"}
    give_back.set()
    with exclusive_gpu("GPU-1", Silent(), seconds=PATIENCE):
        pass
    process.join(PATIENCE)


def test_another_gpu_is_free() -> None:
    process, give_back = held_elsewhere("GPU-1")
    watcher = Watcher()
    with exclusive_gpu("GPU-2", watcher, seconds=0):
        assert watcher.told == []
    give_back.set()
    process.join(PATIENCE)


def test_a_killed_grading_gives_the_gpu_back() -> None:
    process, _ = held_elsewhere("GPU-1")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    with exclusive_gpu("GPU-1", Silent(), seconds=PATIENCE):
        pass
    process.join(PATIENCE)


def test_an_exception_gives_the_gpu_back() -> None:
    with pytest.raises(ZeroDivisionError), exclusive_gpu("GPU-1", Silent()):
        _ = 1 / 0
    with exclusive_gpu("GPU-1", Silent(), seconds=0):
        pass


def test_a_file_of_another_user_will_do() -> None:
    lock_file("GPU-1").touch(mode=0o444)
    with exclusive_gpu("GPU-1", Silent(), seconds=0):
        pass


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    assert lock_file("../../etc/passwd").parent == tmp_path


@pytest.fixture
def held() -> Iterator[None]:
    """GPU-1, by another grading; locks of one process keep each other out as those of two do."""
    with exclusive_gpu("GPU-1", Silent()):
        yield


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.mark.usefixtures("held")
def test_who_waits_looks_again_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, watcher = Clock(), Watcher()
    monkeypatch.setattr(gpu_lock, "time", clock)
    with pytest.raises(GpuBusy) as busy, exclusive_gpu("GPU-1", watcher, seconds=0.5):
        pass
    assert clock.slept == [0.2, 0.2, 0.2]
    assert watcher.told == [
        (Stage.READ, None),
        *["waiting: another grading is on this GPU"] * 3,
    ]
    assert str(busy.value) == (
        f"another grading has held this GPU for 0.5 s ({lock_file('GPU-1')}); "
        "grade again when it is over"
    )


@pytest.mark.usefixtures("held")
def test_one_waits_a_quarter_of_an_hour_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(gpu_lock, "time", clock)
    with pytest.raises(GpuBusy, match="for 900 s"), exclusive_gpu("GPU-1", Silent()):
        pass
    assert 900 < clock.now - 1000 < 901


def test_a_name_is_made_one_of_a_file(tmp_path: Path) -> None:
    assert lock_file("GPU-12ab/é x") == tmp_path / "matmul-arena.GPU-12ab___x.lock"


def test_the_file_can_be_opened_by_others() -> None:
    with exclusive_gpu("GPU-1", Silent()):
        assert lock_file("GPU-1").stat().st_mode & 0o777 & ~0o644 == 0
        assert lock_file("GPU-1").stat().st_mode & 0o400


def test_a_system_without_such_locks_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with exclusive_gpu("GPU-1", Silent()), exclusive_gpu("GPU-1", Silent(), seconds=0):
        assert not lock_file("GPU-1").exists()
