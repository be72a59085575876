"""Who shares a GPU and who has it alone, in the order in which they come."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from harness.judge.progress import Silent
from harness.judge.workers import gpu_lock
from harness.judge.workers.gpu_lock import GpuBusy, Use, hold_gpu, share_gpu_if_free, tickets_of
from harness.protocol.errors import UsageError
from tests.judge.stages.fakes import Watcher
from tests.waiting import PATIENCE, eventually

SPAWN = multiprocessing.get_context("spawn")
WAITING = "waiting: another grading is on this GPU"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def _hold(gpu: str, use: Use, held: Event, give_back: Event) -> None:
    with hold_gpu(gpu, use, Silent()):
        held.set()
        give_back.wait(PATIENCE)


def held_elsewhere(gpu: str, use: Use) -> tuple[multiprocessing.Process, Event]:
    held, give_back = SPAWN.Event(), SPAWN.Event()
    process = SPAWN.Process(target=_hold, args=(gpu, use, held, give_back))
    process.start()
    assert held.wait(PATIENCE)
    return process, give_back  # type: ignore[return-value]  # a spawned one is one


@pytest.mark.parametrize(
    ("first", "second"), [(Use.ALONE, Use.ALONE), (Use.ALONE, Use.SHARED), (Use.SHARED, Use.ALONE)]
)
def test_who_comes_second_waits_and_says_so(first: Use, second: Use) -> None:
    process, give_back = held_elsewhere("GPU-1", first)
    watcher = Watcher()
    busy = pytest.raises(GpuBusy, match="another grading has held this GPU")
    with busy, hold_gpu("GPU-1", second, watcher, seconds=0.3):
        pass
    assert set(watcher.told) == {WAITING}
    give_back.set()
    with hold_gpu("GPU-1", second, Silent(), seconds=PATIENCE):
        pass
    process.join(PATIENCE)


def test_who_only_shares_a_gpu_is_on_it_together() -> None:
    process, give_back = held_elsewhere("GPU-1", Use.SHARED)
    with (
        hold_gpu("GPU-1", Use.SHARED, Silent(), seconds=0),
        hold_gpu("GPU-1", Use.SHARED, Silent(), seconds=0),
    ):
        pass
    give_back.set()
    process.join(PATIENCE)


@pytest.mark.parametrize(("first", "free"), [(Use.SHARED, True), (Use.ALONE, False)])
def test_who_would_only_share_need_not_wait(first: Use, free: bool) -> None:
    process, give_back = held_elsewhere("GPU-1", first)
    with share_gpu_if_free("GPU-1") as is_free:
        assert is_free is free
    give_back.set()
    with hold_gpu("GPU-1", Use.ALONE, Silent(), seconds=PATIENCE):
        pass  # and nobody has a ticket left
    process.join(PATIENCE)


def test_who_wants_a_gpu_alone_waits_for_whom_shares_it_while_it_is_free() -> None:
    alone = hold_gpu("GPU-1", Use.ALONE, Silent(), seconds=0)
    with share_gpu_if_free("GPU-1") as is_free, pytest.raises(GpuBusy), alone:
        pass
    assert is_free


class Line:
    """Some who come one after the other, each in a thread of its own."""

    def __init__(self, uses: list[Use]) -> None:
        self.had: list[int] = []
        self.done = [threading.Event() for _ in uses]
        self._threads = []
        for number, use in enumerate(uses):
            thread = threading.Thread(target=self._come, args=(number, use))
            self._threads.append(thread)
            thread.start()
            eventually(lambda n=number: len(tickets()) == n + 2, "a ticket")  # type: ignore[misc]

    def _come(self, number: int, use: Use) -> None:
        with hold_gpu("GPU-1", use, Silent()):
            self.had.append(number)
            assert self.done[number].wait(PATIENCE)

    def end(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)


def tickets() -> list[str]:
    folder = tickets_of("GPU-1")
    return sorted(path.name for path in folder.iterdir() if path.name != "door")


def test_first_come_first_served() -> None:
    """Nobody overtakes who wants the GPU alone; those who share it and come together have it
    together."""
    alone, shared = Use.ALONE, Use.SHARED
    with ExitStack() as first:
        first.enter_context(hold_gpu("GPU-1", alone, Silent()))
        line = Line([alone, shared, shared, alone, shared])
        assert tickets() == ["1-alone", "2-alone", "3-shared", "4-shared", "5-alone", "6-shared"]
        first.close()
    eventually(lambda: line.had == [0], "the second's turn")
    line.done[0].set()
    eventually(lambda: sorted(line.had) == [0, 1, 2], "those who share it")
    line.done[2].set()
    eventually(lambda: len(tickets()) == 3, "one of them is done")
    assert len(line.had) == 3, "the other is not"
    line.done[1].set()
    eventually(lambda: line.had[3:] == [3], "who wants it alone")
    line.done[3].set()
    eventually(lambda: line.had[4:] == [4], "the last")
    line.done[4].set()
    line.end()
    assert tickets() == []


def test_another_gpu_is_free() -> None:
    process, give_back = held_elsewhere("GPU-1", Use.ALONE)
    watcher = Watcher()
    with hold_gpu("GPU-2", Use.ALONE, watcher, seconds=0):
        assert watcher.told == []
    give_back.set()
    process.join(PATIENCE)


def test_a_killed_grading_gives_the_gpu_back_and_its_ticket_goes() -> None:
    process, _ = held_elsewhere("GPU-1", Use.ALONE)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    assert tickets() == ["1-alone"]
    with hold_gpu("GPU-1", Use.ALONE, Silent(), seconds=0):
        assert tickets() == ["2-alone"]


def test_an_exception_gives_the_gpu_back() -> None:
    with pytest.raises(ZeroDivisionError), hold_gpu("GPU-1", Use.ALONE, Silent()):
        _ = 1 / 0
    assert tickets() == []


def test_who_gives_up_leaves_the_line(held: None) -> None:
    with pytest.raises(GpuBusy), hold_gpu("GPU-1", Use.SHARED, Silent(), seconds=0):
        pass
    assert tickets() == ["1-alone"]


def test_tickets_of_another_user_will_do() -> None:
    folder = tickets_of("GPU-1")
    folder.mkdir()
    for name in ("door", "7-alone", "notes", "9-times", "nobody-alone"):
        (folder / name).touch(mode=0o444)
    with hold_gpu("GPU-1", Use.ALONE, Silent(), seconds=0):
        assert "8-alone" in tickets()


def test_a_ticket_that_only_another_may_remove_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, unlink = tickets_of("GPU-1"), Path.unlink
    folder.mkdir()
    (folder / "7-alone").touch()

    def sticky(path: Path, missing_ok: bool = False) -> None:
        if path.name == "7-alone":
            raise PermissionError
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", sticky)
    with hold_gpu("GPU-1", Use.ALONE, Silent(), seconds=0):
        assert tickets() == ["7-alone", "8-alone"]
    assert tickets() == ["7-alone"]


def test_who_goes_while_the_tickets_are_read_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = (tickets_of("GPU-1") / "1-alone", 1, Use.ALONE)
    read = gpu_lock._all
    monkeypatch.setattr(gpu_lock, "_all", lambda folder: [gone, *read(folder)])
    with hold_gpu("GPU-1", Use.ALONE, Silent(), seconds=0):
        assert tickets() == ["2-alone"]


def test_a_ticket_that_somebody_has_removed_is_given_back() -> None:
    with hold_gpu("GPU-1", Use.ALONE, Silent()):
        (tickets_of("GPU-1") / "1-alone").unlink()
    assert tickets() == []


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    tickets_of("GPU-1").write_text("")
    said = pytest.raises(UsageError, match=r"no ticket for this GPU can be had in .*GPU-1: Not a")
    with said, hold_gpu("GPU-1", Use.ALONE, Silent()):
        pass


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    assert tickets_of("../../etc/passwd").parent == tmp_path


@pytest.fixture
def held() -> Iterator[None]:
    """GPU-1, by another grading; tickets of one process keep each other out as those of two do."""
    with hold_gpu("GPU-1", Use.ALONE, Silent()):
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
    with pytest.raises(GpuBusy) as busy, hold_gpu("GPU-1", Use.ALONE, watcher, seconds=0.12):
        pass
    assert clock.slept == [0.05, 0.05, 0.05]
    assert watcher.told == [WAITING] * 3
    assert str(busy.value) == (
        f"another grading has held this GPU for 0.12 s ({tickets_of('GPU-1')}); "
        "grade again when it is over"
    )


@pytest.mark.usefixtures("held")
def test_one_waits_a_quarter_of_an_hour_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(gpu_lock, "time", clock)
    with pytest.raises(GpuBusy, match="for 900 s"), hold_gpu("GPU-1", Use.ALONE, Silent()):
        pass
    assert 900 < clock.now - 1000 < 901


def test_a_name_is_made_one_of_a_file(tmp_path: Path) -> None:
    assert tickets_of("GPU-12ab/é x") == tmp_path / "matmul-arena.GPU-12ab___x"


def test_others_of_the_machine_can_stand_in_line() -> None:
    before = os.umask(0o077)
    try:
        with hold_gpu("GPU-1", Use.ALONE, Silent()):
            folder = tickets_of("GPU-1")
            assert folder.stat().st_mode & 0o7777 == 0o1777
            for path in folder.iterdir():
                assert path.stat().st_mode & 0o777 == 0o644, path
    finally:
        os.umask(before)


def test_a_system_without_such_locks_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with (
        hold_gpu("GPU-1", Use.ALONE, Silent()),
        hold_gpu("GPU-1", Use.ALONE, Silent(), seconds=0),
        share_gpu_if_free("GPU-1") as is_free,
    ):
        assert is_free
        assert not tickets_of("GPU-1").exists()
