"""Text of a submission reaches the terminal as text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from harness.cli.views.console import SafeConsole
from harness.cli.views.progress import TerminalProgress
from harness.judge.submission import read
from harness.protocol.report import Stage, Submission

ATTACK = "\x1b[2J\x1b]0;title\x07 \r\x9b1m\x08 \u202e accepted"


@pytest.mark.parametrize("colour", [False, True])
def test_control_characters_are_shown_and_not_obeyed(colour: bool) -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=colour, width=60)
    table = Table.grid()
    table.add_row(ATTACK)
    console.print(Text(ATTACK, "bold"), table)
    shown = out.getvalue()
    assert "accepted" in shown and "\N{REPLACEMENT CHARACTER}" in shown
    for forbidden in ("\x1b[2J", "\x1b]0", "\x07", "\r", "\x9b", "\x08", "\u202e"):
        assert forbidden not in shown
    assert ("\x1b[1m" in shown) == colour  # the judge's own bold stays


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
