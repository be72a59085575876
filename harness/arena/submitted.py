"""Reading uploaded files, and submissions that the arena has stored."""

import hashlib
from datetime import UTC, datetime
from pathlib import PurePosixPath

from harness.arena.problems import NotPossible
from harness.board import admission, names
from harness.judge.submission import Unreadable, from_bytes
from harness.protocol.report import Environment, JudgeError, Report, Stage, Submission
from problem.cases import CASES_VERSION

NAMELESS = "nameless"
"""The name of a submission whose own name no report can have."""


def uploaded(file: str, content: bytes, author: str) -> Submission:
    """Return an uploaded file as a submission. Raises NotPossible where it cannot be one."""
    found = from_bytes(content, kernel_name(file), author)
    if isinstance(found, Unreadable):
        raise NotPossible(found.error.message)
    # The hash of the text is that of the file, but for a byte order mark, which is not stored.
    sha256 = hashlib.sha256(found.source.encode()).hexdigest()
    return found.model_copy(update={"sha256": sha256})


def kernel_name(file: str) -> str:
    """Return the name of a kernel from that of its file. Raises NotPossible."""
    given = PurePosixPath(file.replace("\\", "/")).name.removesuffix(".cu")
    name = names.normalised(given)
    problem = names.file_problem(name)
    if not given.isprintable():
        problem = "has characters that cannot be printed"
    if problem is not None:
        raise NotPossible(f"the kernel's name {problem}")
    return name


def stored(name: str, author: str, source: str) -> Submission:
    """Return a submission that the arena has stored. Names that no report can have, which earlier
    versions let in, are replaced."""
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    submission = Submission(name=name, author=author, sha256=sha256, source=source)
    try:
        return admission.named(submission)
    except admission.Inadmissible:
        return submission.model_copy(update={"name": NAMELESS, "author": None})


def report_of_dead_workers(submission: Submission, reason: str) -> Report:
    """Return the report of a submission that no worker could grade to the end."""
    return Report(
        environment=Environment.here(CASES_VERSION),
        created=datetime.now(UTC).replace(microsecond=0),
        seed=0,
        quick=False,
        submission=submission,
        device=None,
        outcome=JudgeError(stage=Stage.READ, message=reason),
    )
