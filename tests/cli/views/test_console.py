"""Text of a submission reaches the terminal as text."""

from __future__ import annotations

import io
from pathlib import Path

from harness.cli.views.console import SafeConsole
from harness.cli.views.progress import TerminalProgress
from harness.judge.submission import read
from harness.protocol.report import Stage, Submission


def test_a_files_name_is_shown_as_words(tmp_path: Path) -> None:
    path = tmp_path / "evil\x1b[31m\u202ename.cu"
    path.write_text("x")
    submission = read(path)
    assert isinstance(submission, Submission)
    assert submission.name.isprintable() and "name" in submission.name


def test_a_name_that_looks_like_markup_is_no_markup() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, width=80)
    with TerminalProgress(console, "a[/b][bold]c.cu") as progress:
        progress.begin(Stage.VERIFY, 3)
        progress.step("[/x]")
    assert "a[/b][bold]c.cu" in out.getvalue()
