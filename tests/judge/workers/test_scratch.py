"""Scratch folders are removed with their worker, or by the next judge if theirs was killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.judge.workers.processes import sweep

pytestmark = pytest.mark.usefixtures("own_folder")
ROOT = Path(__file__).resolve().parents[3]


def aged(path: Path) -> Path:
    old = time.time() - 3600
    os.utime(path, (old, old), follow_symlinks=False)
    return path


def test_folders_of_killed_judges_are_removed(tmp_path: Path) -> None:
    program = (
        "import os; from harness.judge.workers.processes import Scratch; "
        "s = Scratch(); os.kill(os.getpid(), 9)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    (left,) = tmp_path.glob("matmul-arena-*")
    (left / "file").write_text("x")
    sweep()
    assert left.exists(), "it may be a moment old and not yet locked"
    aged(left)
    sweep()
    assert not left.exists()


def test_a_folder_in_use_stays(tmp_path: Path) -> None:
    program = (
        "import sys; from harness.judge.workers.processes import Scratch; s = Scratch(); "
        "print(s.path, flush=True); sys.stdin.read()"
    )
    judge = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    folder = aged(Path(judge.stdout.readline().strip()))
    sweep()
    assert folder.is_dir()
    judge.communicate("")


def test_only_our_folders_are_swept(tmp_path: Path) -> None:
    other, target = tmp_path / "another-folder", tmp_path / "target"
    other.mkdir()
    target.mkdir()
    link = tmp_path / "matmul-arena-link"
    link.symlink_to(target)
    file = tmp_path / "matmul-arena-file"
    file.write_text("x")
    for path in (other, target, link, file):
        aged(path)
    sweep()
    assert other.is_dir() and target.is_dir() and link.is_symlink() and file.is_file()
