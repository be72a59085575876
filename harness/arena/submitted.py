"""Reading uploaded files, and submissions that the arena has stored."""

from __future__ import annotations

import hashlib
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from harness import __version__
from harness.board import admission
from harness.judge.submission import Unreadable, read
from harness.protocol.report import (
    CompileError,
    Diagnostic,
    Environment,
    JudgeError,
    Report,
    Stage,
    Submission,
)
from problem.cases import CASES_VERSION

NAMELESS = "nameless"
"""The name of a submission whose own name cannot be used."""


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


def gave_up(submitted: Submission | Unreadable, reason: str, quick: bool) -> Report:
    """Return the report of a submission that no worker could grade to the end."""
    return Report(
        environment=Environment(
            judge=__version__,
            cases=CASES_VERSION,
            python=platform.python_version(),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
        ),
        created=datetime.now(UTC).replace(microsecond=0),
        seed=0,
        quick=quick,
        submission=submitted.submission if isinstance(submitted, Unreadable) else submitted,
        device=None,
        outcome=JudgeError(stage=Stage.READ, message=reason),
    )
