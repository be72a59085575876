"""The cache of machine code: keyed by content, safe with several processes and against damage."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.devices.cpu.device import CpuDevice
from harness.ptxcpu.execution import native
from harness.ptxcpu.execution.cache import Cache
from problem.cases import Shape
from tests.ptxcpu.runner import Runner
from tests.waiting import PATIENCE


def test_made_once_for_each_key(tmp_path: Path) -> None:
    made = []

    def make() -> bytes:
        made.append(1)
        return b"code"

    assert [Cache(tmp_path).get(("a", "b"), make) for _ in range(3)] == [b"code"] * 3
    assert len(made) == 1
    Cache(tmp_path).get(("ab", ""), make)
    assert len(made) == 2


def entry(folder: Path) -> Path:
    (path,) = (folder / "cpu").iterdir()
    return path


def test_an_entry_under_another_key_is_not_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.get(("key",), lambda: b"code")
    path = entry(tmp_path)
    cache.get(("another",), lambda: b"another")
    for other in (tmp_path / "cpu").iterdir():
        if other != path:
            other.write_bytes(path.read_bytes())
    assert cache.get(("another",), lambda: b"anew") == b"anew"


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40, None])
def test_damaged_entries_are_made_again(tmp_path: Path, damage: bytes | None) -> None:
    cache = Cache(tmp_path)
    cache.get(("key",), lambda: b"first")
    path = entry(tmp_path)
    kept = path.read_bytes()
    path.write_bytes(damage if damage is not None else kept[:-1] + b"!")
    assert cache.get(("key",), lambda: b"second") == b"second"
    assert cache.get(("key",), lambda: b"third") == b"second"


def test_the_oldest_entries_go_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.ptxcpu.execution.cache.MAX_BYTES", 10_000)
    cache, folder = Cache(tmp_path), tmp_path / "cpu"
    for number in range(100):
        cache.get((str(number),), lambda: b"x" * 68)  # and a checksum
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    for number in (0, *range(100, 200)):
        cache.get((str(number),), lambda: b"x" * 68)
    assert 100 <= len([*folder.iterdir()]) < 150
    assert sum(path.stat().st_mtime == 1 for path in folder.iterdir()) < 50
    assert cache.get(("0",), lambda: b"made again") == b"x" * 68, "it was used since"


def test_nobody_else_can_write_to_the_directory(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir(mode=0o777)
    (tmp_path / "cpu").chmod(0o777)
    Cache(tmp_path)
    assert stat.S_IMODE((tmp_path / "cpu").stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="needs another user's folder")
def test_another_users_directory_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    os.chown(tmp_path / "cpu", 12345, 12345)
    assert Cache(tmp_path).get(("key",), lambda: b"made") == b"made"
    assert list((tmp_path / "cpu").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert Cache(tmp_path / "file").get(("key",), lambda: b"made") == b"made"


def test_kernels_are_taken_from_it(cpu: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu.load_file("tile")
    first = cpu.error(Shape(20, 20, 20))

    def never(text: str) -> bytes:
        raise AssertionError("compiled again")

    for name in ("compile_well", "compile_vectors", "compile_plainly"):
        monkeypatch.setattr(native, name, never)
    again = Runner(CpuDevice())
    again.load_file("tile")
    assert again.error(Shape(20, 20, 20)) == first


SCRIPT = """
import sys, time
from pathlib import Path
from harness.ptxcpu.execution import cache as of
cache, made = of.Cache(Path(sys.argv[1])), Path(sys.argv[2])
def make():
    with made.open("a") as file:
        file.write("made\\n")
    time.sleep(0.5)
    return b"code"
of.WAIT_SECONDS = float(sys.argv[3])
with cache.one_at_a_time():
    assert cache.get(("key",), make) == b"code"
"""


def begun(folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SCRIPT, str(folder), str(folder / "made"), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(command, env=environment)


def test_processes_wait_for_an_entry_that_another_makes(tmp_path: Path) -> None:
    running = [begun(tmp_path, PATIENCE) for _ in range(4)]
    assert [process.wait(PATIENCE) for process in running] == [0] * 4
    assert (tmp_path / "made").read_text() == "made\n"


def test_the_wait_for_a_lock_is_bounded(tmp_path: Path) -> None:
    with Cache(tmp_path).one_at_a_time():
        assert begun(tmp_path, 0.1).wait(PATIENCE) == 0
    assert (tmp_path / "made").read_text() == "made\n"
