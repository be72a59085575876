"""Scratch folders are removed with their worker, or by the next judge if theirs was killed."""

import os
import time
from pathlib import Path

import pytest

from harness.judge.workers.processes import sweep
from tests.forked import python

pytestmark = pytest.mark.usefixtures("own_folder")


def aged(path: Path) -> Path:
    old = time.time() - 3600
    os.utime(path, (old, old), follow_symlinks=False)
    return path


def test_the_folder_of_a_killed_judge_is_removed() -> None:
    program = (
        "import sys; from harness.judge.workers.processes import Scratch; s = Scratch(); "
        "print(s.path, flush=True); sys.stdin.read()"
    )
    judge = python("-c", program)
    folder = Path(judge.stdout.readline().strip())
    (folder / "file").write_text("x")
    aged(folder)
    sweep()
    assert folder.is_dir(), "it is in use"
    judge.kill()
    judge.communicate()
    os.utime(folder)
    sweep()
    assert folder.is_dir(), "it may be a moment old and not yet locked"
    aged(folder)
    sweep()
    assert not folder.exists()


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
