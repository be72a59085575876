"""The lock on a GPU: shared to check kernels, exclusive to measure."""

import multiprocessing
import os
import signal
import threading
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from harness.judge.progress import Silent
from harness.judge.workers.gpu_lock import hold_gpu, lock_of
from harness.protocol.errors import UsageError
from tests.judge.stages.fakes import Watcher
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("own_folder")
FORK = multiprocessing.get_context("fork")


def _hold(gpu: str, exclusive: bool, held: Event, give_back: Event) -> None:
    with hold_gpu(gpu, Silent(), exclusive=exclusive):
        held.set()
        give_back.wait(PATIENCE)


def held_elsewhere(gpu: str, exclusive: bool) -> tuple[multiprocessing.Process, Event]:
    held, give_back = FORK.Event(), FORK.Event()
    process = FORK.Process(target=_hold, args=(gpu, exclusive, held, give_back))
    process.start()
    assert held.wait(PATIENCE)
    return process, give_back  # type: ignore[return-value]  # a forked process is one


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_an_exclusive_lock_excludes_all_others(first: bool, second: bool) -> None:
    process, give_back = held_elsewhere("GPU-1", first)
    watcher = Watcher()
    busy = pytest.raises(UsageError, match=r"another grading has held this GPU for 0\.3 s")
    with busy, hold_gpu("GPU-1", watcher, exclusive=second, seconds=0.3):
        pass
    assert set(watcher.told) == {"waiting: another grading is on this GPU"}
    with hold_gpu("GPU-2", Silent(), exclusive=True, seconds=0):
        pass
    give_back.set()
    with hold_gpu("GPU-1", Silent(), exclusive=second, seconds=PATIENCE):
        pass
    process.join(PATIENCE)


def test_several_share_a_gpu() -> None:
    process, give_back = held_elsewhere("GPU-1", False)
    with (
        hold_gpu("GPU-1", Silent(), exclusive=False, seconds=0),
        hold_gpu("GPU-1", Silent(), exclusive=False, seconds=0),
    ):
        give_back.set()
    process.join(PATIENCE)


def test_a_waiting_exclusive_lock_is_not_overtaken() -> None:
    order: list[str] = []

    def come(name: str, exclusive: bool) -> None:
        with hold_gpu("GPU-1", waiting[name], exclusive=exclusive):
            order.append(name)

    waiting = {"exclusive": Watcher(), "shared": Watcher()}
    kinds = {"exclusive": True, "shared": False}
    with hold_gpu("GPU-1", Silent(), exclusive=False):
        threads = []
        for name, exclusive in kinds.items():
            threads.append(threading.Thread(target=come, args=(name, exclusive)))
            threads[-1].start()
            eventually(lambda n=name: waiting[n].told, "it waits")  # type: ignore[misc]
        assert order == []
    for thread in threads:
        thread.join(PATIENCE)
    assert order == ["exclusive", "shared"]


def test_a_killed_holder_frees_the_gpu() -> None:
    process, _ = held_elsewhere("GPU-1", True)
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    with hold_gpu("GPU-1", Silent(), exclusive=True, seconds=0):
        pass


def test_every_user_of_the_machine_can_open_the_files(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        for _ in range(2):
            with hold_gpu("GPU-1", Silent(), exclusive=True):
                pass
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}


def test_a_file_that_cannot_be_opened_is_a_usage_error() -> None:
    lock_of("GPU-1").symlink_to("/nowhere/at/all")
    with (
        pytest.raises(UsageError, match=r"the GPU cannot be locked: .*GPU-1\.lock"),
        hold_gpu("GPU-1", Silent(), exclusive=True),
    ):
        pass


def test_a_uuid_becomes_a_file_name_in_the_folder(tmp_path: Path) -> None:
    assert lock_of("GPU-12ab/é x") == tmp_path / "matmul-arena.GPU-12ab___x.lock"
    assert lock_of("../../etc/passwd").parent == tmp_path
