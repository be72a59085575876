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
from harness.protocol.report import Environment, JudgeError, Report, Stage, Submission
from problem.cases import CASES_VERSION

NAMELESS = "nameless"
"""The name of a submission whose own name no report can have."""


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


def stored(name: str, author: str, source: str) -> Submission:
    """Return a submission that the arena has stored. Names that no report can have, which earlier
    versions let in, are replaced."""
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    submission = Submission(name=name, author=author, sha256=sha256, source=source)
    try:
        return admission.named(submission)
    except admission.Inadmissible:
        return submission.model_copy(update={"name": NAMELESS, "author": None})


def gave_up(submission: Submission, reason: str, quick: bool) -> Report:
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
        submission=submission,
        device=None,
        outcome=JudgeError(stage=Stage.READ, message=reason),
    )
