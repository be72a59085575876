"""The cache of compiled kernels, atomic writing, and what a crash tells of this machine."""

import os
from pathlib import Path

import pytest

from harness.protocol.errors import crash
from harness.protocol.files import cache_directory, write_whole


def test_the_cache_directory_follows_xdg_cache_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "wanted"))
    assert cache_directory() == tmp_path / "wanted" / "matmul-arena"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == tmp_path / ".cache" / "matmul-arena"
    assert cache_directory().stat().st_mode & 0o077 == 0


def test_a_file_is_replaced_at_once_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_whole(path, "old")
    write_whole(path, "new")
    assert path.read_text() == "new" and [*tmp_path.iterdir()] == [path]
    assert path.stat().st_mode & 0o777 == 0o644
    write_whole(path, "secret", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_crash_is_described_without_paths_of_this_machine() -> None:
    with pytest.raises(OSError, match="secret") as raised:
        Path("/home/ada/secret").read_text()
    message, details = crash(raised.value)
    assert message.startswith("the judge failed: FileNotFoundError: ") and "…/secret" in message
    assert "tests/protocol/test_files.py:" in details and "pathlib.py:" in details
    assert not any(place in message + details for place in ("/home", str(Path(os.__file__).parent)))
