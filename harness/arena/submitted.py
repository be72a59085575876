"""Reading uploaded files, and submissions that the arena has stored."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from harness.board import admission
from harness.judge.submission import Unreadable, read
from harness.protocol.report import CompileError, Diagnostic, Stage, Submission

NAMELESS = "nameless"
"""What is submitted under a name that is none."""


def examine(name: str, content: bytes, author: str) -> Submission | str:
    """Return an uploaded file as a submission, or a sentence that says why it cannot be one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "submission.cu")
        path.write_bytes(content)
        found = read(path, author)
    if isinstance(found, Unreadable):
        return found.error.message
    return found.model_copy(
        update={"name": name, "sha256": hashlib.sha256(found.source.encode()).hexdigest()}
    )


def stored(name: str, author: str, source: str) -> Submission | Unreadable:
    """Return a submission as it is stored. One with a name that no report can have, which did not
    come through the web service, is unreadable."""
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    try:
        return admission.named(Submission(name=name, author=author, sha256=sha256, source=source))
    except admission.Inadmissible as error:
        problem = f"{error}; submit it under another name"
    found = Diagnostic(severity="error", message=problem)
    return Unreadable(
        Submission(name=NAMELESS, author=None, sha256=sha256, source=""),
        CompileError(stage=Stage.READ, message=problem, diagnostics=(found,)),
    )
