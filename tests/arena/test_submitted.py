"""Tests that a submission read from the database is unchanged, or refused in a sentence."""

from __future__ import annotations

import pytest

from harness.arena.submitted import NAMELESS, stored
from harness.judge.submission import Unreadable
from harness.protocol.report import Submission
from tests.arena.submitting import submission
from tests.board.factory import SOURCE


def test_a_stored_submission_is_unchanged() -> None:
    assert stored("tile", "ada", SOURCE) == submission("tile", "ada", SOURCE)


@pytest.mark.parametrize(
    ("name", "author", "sentence"),
    [
        ("../tile", "ada", "'../tile' cannot be the name of a kernel file: it would lead to"),
        ("", "ada", "'' cannot be the name of a kernel file"),
    ],
)
def test_a_name_that_no_report_can_have_is_refused(name: str, author: str, sentence: str) -> None:
    refused = stored(name, author, SOURCE)
    assert isinstance(refused, Unreadable) and sentence in refused.error.message
    assert refused.error.message.endswith("; submit it under another name")
    hash = submission(source=SOURCE).sha256
    assert refused.submission == Submission(name=NAMELESS, author=None, sha256=hash, source="")
