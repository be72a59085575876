"""The one place in which the arena calls the judge."""

from __future__ import annotations

import hashlib
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness import __version__
from harness.grade import GradingOptions, grade
from harness.progress import Progress
from harness.report import Environment, JudgeError, Report, Stage, Submission
from harness.submission import Unreadable, read
from harness.workers.session import Choice, Session, open_session
from problem.cases import CASES_VERSION


class Judge:
    """Grades one submission after another on one device."""

    def __init__(self, session: Session, quick: bool) -> None:
        self._session = session
        self._options = GradingOptions(quick=quick)

    def grade(self, submission: Submission, progress: Progress) -> Report:
        return grade(submission, self._session, self._options, progress)


@contextmanager
def open_judge(device: Choice, quick: bool) -> Iterator[Judge]:
    """Raises UsageError or JudgeFailure where the device cannot be used."""
    with open_session(device) as session:
        yield Judge(session, quick)


def examine(name: str, content: bytes, author: str) -> Submission | str:
    """What was handed in as a submission, or why it cannot be one, in a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "submission.cu")
        path.write_bytes(content)
        found = read(path, author)
    if isinstance(found, Unreadable):
        return found.error.message
    return found.model_copy(
        update={"name": name, "sha256": hashlib.sha256(found.source.encode()).hexdigest()}
    )


def gave_up(submission: Submission, attempts: int, quick: bool) -> Report:
    """The report of a grading under which one worker after another has died."""
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
        outcome=JudgeError(
            stage=Stage.READ,
            message=f"{attempts} workers died while they graded this; an organiser can have it "
            "graded again",
        ),
    )
