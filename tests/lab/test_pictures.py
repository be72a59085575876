"""`pictures`: what the README shows is made of reports, and where it cannot be made it says why."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness.cli.main import main as run_command
from lab import commands

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_BYTES = 200_000


def main(arguments: list[str]) -> int:
    return run_command(arguments, commands)


BROWSER = """#!/bin/sh
for argument in "$@"; do
  case "$argument" in
    --screenshot=*) picture="${argument#--screenshot=}" ;;
    file://*) page="${argument#file://}" ;;
  esac
done
cp "$page" "$picture"
"""
"""Instead of a picture it leaves the page that it was to draw."""


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "chromium"
    program.parent.mkdir()
    program.write_text(BROWSER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_all_three_are_made_of_the_reports(browser: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["pictures", "--reports", str(ROOT / "reports"), "--out", str(out)]) == 0
    grading = (out / "grading.svg").read_text()
    scores = re.findall(r"([\d.]+)&#160;×&#160;cuBLAS</text>", grading)
    assert scores and "accepted" in grading
    assert "@font-face" not in grading, "nothing is loaded from elsewhere"
    board = (out / "board.png").read_text()
    assert board.count('class="rank"') > 10
    live = (out / "live.png").read_text()
    assert f" {scores[0][:3]}" in live and "cuBLAS so far" in live
    assert "nothing found by memcheck" in live and "s left" in live


def test_without_a_browser_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["pictures", "--out", str(tmp_path / "out")]) == 2
    assert "need Chromium" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_browser_that_draws_nothing_is_said(
    browser: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin" / "chromium").write_text("#!/bin/sh\nexit 1\n")
    reports = str(ROOT / "reports")
    assert main(["pictures", "--reports", reports, "--out", str(tmp_path / "out")]) == 2
    assert "did not draw index.html" in capsys.readouterr().err


def test_the_readme_shows_them_and_none_is_large() -> None:
    shown = re.findall(r"!\[[^]]+\]\((docs/[^)]+)\)", (ROOT / "README.md").read_text())
    assert len(shown) == 3
    for each in shown:
        assert 10_000 < (ROOT / each).stat().st_size < MAX_BYTES
