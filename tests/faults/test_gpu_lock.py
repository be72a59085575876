"""Two gradings on one GPU do not time each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from harness.progress import Silent
from harness.report import Stage
from harness.workers.gpu_lock import GpuBusy, exclusive_gpu, lock_file
from tests.waiting import PATIENCE

SPAWN = multiprocessing.get_context("spawn")


class Told(Silent):
    def __init__(self) -> None:
        self.steps: list[str] = []

    def begin(self, stage: Stage, total: int | None) -> None: ...

    def step(self, text: str) -> None:
        self.steps.append(text)


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
    told = Told()
    busy = pytest.raises(GpuBusy, match="another grading has held this GPU")
    with busy, exclusive_gpu("GPU-1", told, seconds=0.3):
        pass
    assert set(told.steps) == {"waiting: another grading is on this GPU"}
    give_back.set()
    with exclusive_gpu("GPU-1", Silent(), seconds=PATIENCE):
        pass
    process.join(PATIENCE)


def test_another_gpu_is_free() -> None:
    process, give_back = held_elsewhere("GPU-1")
    told = Told()
    with exclusive_gpu("GPU-2", told, seconds=0):
        assert told.steps == []
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
